"""Law 6: wire encoding round-trips, and private values cannot be encoded."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.core import wire
from fedrec.core.messages import Axis, fields_of
from fedrec.core.method import Keys, Update
from fedrec.core.state import flatten
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import SEED, simulator, world
from fedrec.simulate.runtime import Simulator

TELLING = 3
"""So many numbers in a row that are found again in an upload are no coincidence."""


def exchanged(method: str) -> tuple[Simulator, Any, Update[Any, Any]]:
    """Before a first round: what holds the method and the server's state, what all clients receive, what they do."""
    sim = simulator(method, world("tiny"))
    block = sim.people.block
    download = sim.method.download(sim.server, block.clients)
    return sim, download, sim.method.local_update(sim.private, download, block, Keys(SEED, 1))


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
    sim, download, update = exchanged(method)
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
    crossed = wire.encode(update.upload, wire.Form.of(sim.method.settings))
    for name, axis, content in fields_of(update.private):
        if name in sim.method.also_sent or axis is Axis.SHARED:
            continue
        for values in content.values() if isinstance(content, dict) else [content]:
            if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and _shows(values, crossed):
                raise law.broken(f"numbers of the private field {name!r} leave the client in the upload")


def _shows(values: Any, crossed: bytes) -> bool:
    """Whether a telling row of the numbers is in the bytes, as it is."""
    rows = values.reshape(len(values), -1) if len(values) else values.reshape(0, 1)
    if rows.shape[1] < TELLING:
        return False
    kinds = {np.dtype(np.float32), values.dtype}  # as it is, or as most numbers cross
    parts = [part for part in map(_telling, rows) if len(part)]
    return any(part.astype(kind).tobytes() in crossed for part in parts for kind in kinds)


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
