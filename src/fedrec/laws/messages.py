"""Law 6: wire encoding round-trips, and private values cannot be encoded."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from fedrec.core import wire
from fedrec.core.messages import Axis, fields_of
from fedrec.core.method import Keys, Update
from fedrec.core.state import flatten
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import SEED, plan, run, simulator, world
from fedrec.simulate.runtime import Simulator

TELLING = 3
"""So many numbers in a row that are found again in an upload are no coincidence."""
EQUAL = 1e-6
"""Multiples in 32 bits differ by less than this part from one another."""


def exchanged(method: str, rounds: int = 0) -> tuple[Simulator, Any, Update[Any, Any]]:
    """After so many rounds: what holds the method and all state before the next one, what all clients receive then,
    and what they do."""
    sim = simulator(method, world("tiny"))
    run(sim, plan(rounds))
    block = sim.people.block
    download = sim.method.download(sim.server, block.clients)
    before = copy.deepcopy(sim.private)  # local work may write into it
    return sim, download, sim.method.local_update(before, download, block, Keys(SEED, rounds + 1))


def messages_round_trip(method: str) -> None:
    """Law 6: what is encoded and decoded is the same again, of the size that is counted."""
    law = Comparison("6", method)
    sim, download, update = exchanged(method)
    for rows in ("dense", "rows"):
        form = wire.Form(rows, "float64")
        for kind, message in ((sim.method.Download, download), (sim.method.Upload, update.upload)):
            data = wire.encode(message, form)
            back = wire.decode(kind, data)
            if rows == "rows":
                mine, theirs = flatten(message)[0], flatten(back)[0]
                for name in mine:
                    what = f"{kind.__name__}{name.replace('/', '.')}"
                    law.arrays(mine[name].astype(float), theirs[name].astype(float), what, "after the wire", 1e-6)
            if wire.encode(back, form) != data:
                raise law.broken(f"{kind.__name__} has other bytes when it is encoded again")
            header = int.from_bytes(data[:8], "little")
            extra = sum(a.nbytes for n, a in wire.message_arrays(message, form) if wire.is_bookkeeping(n))
            size = wire.payload(message, form) + extra
            if len(data) - 8 - header != size:
                raise law.broken(f"{kind.__name__} takes {len(data) - 8 - header} bytes, and {size} are counted")


def private_stays(method: str) -> None:
    """Law 6: neither private state nor a model nor the server's state can be encoded, and none is in an upload."""
    law = Comparison("6", method)
    for rounds in (0, 1):  # in the second round, what was private before it has been learnt
        sim, download, update = exchanged(method, rounds)
        _cannot_be_encoded(law, sim, download, update)
        form = wire.Form.of(sim.method.settings)
        crossed = wire.encode(update.upload, form)
        numbers = [a for n, a in wire.message_arrays(update.upload, form) if rounds and not wire.is_bookkeeping(n)]
        for private, when in ((update.private, ""), (sim.private, ", as they were before local work")):
            for name, values in _numbers(private, sim.method.also_sent):
                if _shows(values, crossed):
                    raise law.broken(f"numbers of the private field {name!r} leave the client in the upload{when}")
                if any(_shows_multiplied(values, array) for array in numbers):
                    raise law.broken(f"multiples of the private field {name!r} leave the client in the upload{when}")


def _cannot_be_encoded(law: Comparison, sim: Simulator, download: Any, update: Update[Any, Any]) -> None:
    kept = {"private state": update.private, "the server's state": sim.server}
    kept["a client's model"] = sim.method.model(download)
    if update.local is not None:
        kept["a client's local model"] = update.local
    for what, value in kept.items():
        try:
            wire.encode(value)
        except wire.WireError:
            continue
        raise law.broken(f"{what} ({type(value).__name__}) can be encoded; it must not be a message")


def _numbers(private: Any, also_sent: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Private arrays that must not leave, by the field that they are of."""
    for name, axis, content in fields_of(private):
        if name in also_sent or axis is Axis.SHARED:
            continue
        for values in content.values() if isinstance(content, dict) else [content]:
            if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
                yield name, values


def _shows(values: Any, crossed: bytes) -> bool:
    """Whether a telling row of the numbers is in the bytes, as it is."""
    kinds = {np.dtype(np.float32), values.dtype}  # as it is, or as most numbers cross
    return any(part.astype(kind).tobytes() in crossed for part in _parts(values) for kind in kinds)


def _shows_multiplied(values: Any, array: Any) -> bool:
    """Whether half of a few clients' telling rows are among these numbers, all multiplied by the same.

    A client's gradient is often a multiple of its user vector, by another number for every client and item.
    """
    parts = _parts(values)
    parts = parts[:: max(1, len(parts) // (2 * TELLING))]
    numbers = np.ravel(array).astype(np.float64)
    found = [_factors(part.astype(np.float64), numbers) for part in parts]
    rows = np.repeat(np.arange(len(parts)), [len(own) for own in found])
    factors = np.concatenate([np.zeros(0), *found])
    order = np.argsort(factors)
    alike = np.cumsum(np.diff(factors[order], prepend=0.0) > EQUAL * np.abs(factors[order]))
    counts = np.bincount(np.unique(np.stack([alike, rows[order]]), axis=1)[0])
    return bool(counts.max(initial=0) >= max(TELLING, len(parts) // 2))


def _factors(part: Any, numbers: Any) -> Any:
    """By what this part of a row is multiplied wherever a multiple of it is among the numbers."""
    ends = len(numbers) - len(part) + 1
    if ends <= 0:
        return numbers[:0]
    first, second = numbers[:ends], numbers[1 : ends + 1]
    wanted = part / part[0]
    places = np.flatnonzero((np.abs(second - wanted[1] * first) <= EQUAL * np.abs(second)) & (first != 0))
    for step in range(2, len(part)):
        later = numbers[places + step]
        places = places[np.abs(later - wanted[step] * numbers[places]) <= EQUAL * np.abs(later)]
    return numbers[places] / part[0]


def _parts(values: Any) -> list[Any]:
    """What tells whose they are, of every row."""
    rows = values.reshape(len(values), -1) if len(values) else values.reshape(0, 1)
    if rows.shape[1] < TELLING:
        return []
    return [part for part in map(_telling, rows) if len(part)]


def _telling(row: Any) -> Any:
    """The part of a row that says whose it is, from its first number that is not zero; empty where none does."""
    places = np.flatnonzero(row)
    if not len(places):
        return row[:0]
    part = row[places[0] :][: 4 * TELLING]
    if len(set(part.tolist())) >= TELLING:
        return part
    whole = row[places[0] : places[-1] + 1]  # equal marks at items: where they stand is the history
    return whole if np.count_nonzero(np.diff(whole != 0)) >= 2 * TELLING else row[:0]


def strangers_are_refused(method: str) -> None:
    """Law 6: a message of another type, or no message at all, is refused."""
    law = Comparison("6", method)
    sim, download, _ = exchanged(method)
    for what, data in (("a download", wire.encode(download)), ("nonsense", b"nonsense")):
        try:
            wire.decode(sim.method.Upload, data)
        except wire.WireError:
            continue
        raise law.broken(f"{what} is taken for an upload")
