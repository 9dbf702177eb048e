"""How letters become bytes: a small head of plain values and blocks of bytes.

Whoever unpacks does not trust who packed: what is not the letter it should be is a :class:`BadLetter`, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fedrec.core.block import World
from fedrec.deploy.messages import plain_values as read
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Hello, Meet, Selected, Step, Stepped
from fedrec.deploy.messages.plain_values import BadLetter
from fedrec.evaluation.sums import MetricSums

MOST_METRICS = 1000
MOST_PARTS = 1 << 16
"""Uploads in one answer; a node makes one for each block of its clients."""
MOST_STEP = 4
"""The last step of a secure sum."""
MOST_REASON = 300
MOST_ITEMS = 10**7
MOST_ID = 10_000
"""Characters of an item's id."""
MOST_USERS = 10**7
"""Of one client."""

Plain = tuple[dict[str, Any], dict[str, bytes]]
"""A head that JSON can say, and blocks of bytes."""


def pack_meet(word: Meet) -> Plain:
    head = {"kind": "meet", "run": word.run, "settings": word.settings, "challenge": word.challenge}
    return head, {"catalogue": "\n".join(word.catalogue).encode()}


def pack_selected(word: Selected) -> Plain:
    return {"kind": "selected", "run": word.run, "selected": word.selected}, {}


def unpack_word(plain: Plain) -> Meet | Selected:
    head, blocks = _opened(plain, "meet", "selected")
    if head["kind"] == "selected":
        return Selected(_run(head), read.whole(head, "selected"))
    listed = _catalogue(read.block(blocks, "catalogue"))
    return Meet(_run(head), read.text(head, "settings", read.MOST_HEAD), listed, read.text(head, "challenge"))


def _catalogue(data: bytes) -> tuple[str, ...]:
    if data.count(b"\n") >= MOST_ITEMS:
        raise BadLetter(f"the catalogue has more than {MOST_ITEMS} items")
    try:
        listed = tuple(data.decode().split("\n")) if data else ()
    except UnicodeDecodeError:
        raise BadLetter("the catalogue is not text") from None
    if len(set(listed)) < len(listed) or not all(0 < len(item) <= MOST_ID for item in listed):
        raise BadLetter("the catalogue names an item twice, or one without a name or with too long a one")
    return listed


def pack_hello(hello: Hello) -> Plain:
    blocks = {
        "client_keys": hello.client_keys.astype("<u8").tobytes(),
        "users": hello.users.astype("<i8").tobytes(),
        "proof": hello.proof,
    }
    return {"kind": "hello", "name": hello.name}, blocks


def unpack_hello(plain: Plain) -> Hello:
    head, blocks = _opened(plain, "hello")
    keys, users = read.numbers(blocks, "client_keys", "<u8"), read.numbers(blocks, "users", "<i8")
    if len(keys) != len(users) or not len(keys):
        raise BadLetter(f"{len(keys)} clients with {len(users)} numbers of users")
    if len(np.unique(keys)) < len(keys):
        raise BadLetter("the node names a client twice")
    if users.min() < 0 or users.max() > MOST_USERS:
        raise BadLetter(f"a client with {int(users.min())} or {int(users.max())} users")
    return Hello(read.text(head, "name"), keys.astype(np.uint64), users.astype(np.int64), read.block(blocks, "proof"))


ASKED: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("first", "base", "selected", "evaluate", "train"), read.whole),
    **dict.fromkeys(("local", "whole"), read.flag),
}
"""Plain entries of an ask, and what reads them."""


def pack_ask(ask: Ask) -> Plain:
    world = ask.world
    head = {
        "kind": "ask",
        "run": ask.run,
        "world": [world.name, world.n_items, world.n_users, world.n_clients],
        **{name: getattr(ask, name) for name in ASKED},
    }
    return head, {"positions": ask.positions.astype("<i8").tobytes(), "download": ask.download}


def unpack_ask(plain: Plain) -> Ask:
    head, blocks = _opened(plain, "ask")
    read.exactly(blocks, ("positions", "download"))
    world = read.entry(head, "world")
    if not isinstance(world, list) or len(world) != 4 or not isinstance(world[0], str) or len(world[0]) > 1000:
        raise BadLetter("world is not a name and three sizes")
    return Ask(
        run=_run(head),
        world=World(world[0], *(read.whole_number("a size of the world", size) for size in world[1:])),
        **{name: reader(head, name) for name, reader in ASKED.items()},
        positions=read.numbers(blocks, "positions", "<i8").astype(np.int64),
        download=read.block(blocks, "download"),
    )


def pack_answer(answer: Answer) -> Plain:
    return {"kind": "answer", **answer.about()}, {f"upload{i}": data for i, data in enumerate(answer.uploads)}


def unpack_answer(plain: Plain) -> Answer:
    head, blocks = _opened(plain, "answer")
    counts = read.entry(head, "counts")
    if not isinstance(counts, list) or len(counts) > min(MOST_PARTS, len(blocks)):
        raise BadLetter("counts is not a list with an entry for each upload")
    names = tuple(f"upload{i}" for i in range(len(counts)))
    read.exactly(blocks, names)
    return Answer(
        uploads=tuple(read.block(blocks, name) for name in names),
        counts=tuple(read.whole_number("a count", count) for count in counts),
        loss=read.number("the loss", read.entry(head, "loss")),
        valid=_sums(read.entry(head, "valid")),
        test=_sums(read.entry(head, "test")),
    )


def _sums(plain: Any) -> MetricSums:
    sums = read.entry(plain, "sums")
    if not isinstance(sums, dict) or len(sums) > MOST_METRICS:
        raise BadLetter("metric sums are not a table of names and numbers")
    named = {name: read.number("a metric sum", total) for name, total in sums.items()}
    return MetricSums(named, read.whole(plain, "count"))


def pack_step(step: Step) -> Plain:
    head = {"kind": "step", "run": step.run, "step": step.step, "members": list(step.contents)}
    return head, {f"member{i}": content for i, content in enumerate(step.contents.values())}


def unpack_step(plain: Plain) -> Step:
    head, blocks = _opened(plain, "step")
    return Step(_run(head), read.whole(head, "step", MOST_STEP), _members(head, blocks))


def pack_stepped(stepped: Stepped) -> Plain:
    head = {"kind": "stepped", "members": list(stepped.contents)}
    return head, {f"member{i}": content for i, content in enumerate(stepped.contents.values())}


def unpack_stepped(plain: Plain) -> Stepped:
    return Stepped(_members(*_opened(plain, "stepped")))


def _members(head: dict[str, Any], blocks: dict[str, bytes]) -> dict[str, bytes]:
    """Contents by the member's name, each name once."""
    names = read.entry(head, "members")
    if not isinstance(names, list) or len(names) != len(blocks) or not all(isinstance(name, str) for name in names):
        raise BadLetter("members is not a list with a name for each block")
    if len(set(names)) < len(names) or any(len(name) > read.MOST_NAME for name in names):
        raise BadLetter("members names somebody twice, or with too long a name")
    return {name: read.block(blocks, f"member{i}") for i, name in enumerate(names)}


def pack_fault(fault: Fault) -> Plain:
    return {"kind": "fault", "reason": fault.reason}, {}


def fault_in(plain: Plain) -> Fault | None:
    """The fault that a letter is, if it is one; its reason is shown in logs, so it is one short line."""
    head, _ = _opened(plain)
    if head.get("kind") != "fault":
        return None
    return Fault(one_line(head.get("reason", "")))


def one_line(said: Any) -> str:
    """Foreign text for a log: printable, on one line, of limited length."""
    text = " ".join(str(said)[: 4 * MOST_REASON].split())
    return "".join(c if c.isprintable() else "?" for c in text)[:MOST_REASON]


def kind_of(plain: Any) -> str:
    """The kind of letter that this says it is."""
    return str(_opened(plain)[0].get("kind"))


def _run(head: Any) -> str:
    """A run's name, which names a folder on a node."""
    name = read.text(head, "run")
    if not re.fullmatch(r"[0-9a-z-]{1,64}", name):
        raise BadLetter("run does not name a run")
    return name


def _opened(plain: Any, *kinds: str) -> Plain:
    """Head and blocks of a letter of one of these kinds (of any kind where none is given)."""
    if not isinstance(plain, tuple | list) or len(plain) != 2 or not isinstance(plain[0], dict):
        raise BadLetter("not a letter: it has no head")
    head, blocks = plain
    if not isinstance(blocks, dict) or (kinds and head.get("kind") not in kinds):
        raise BadLetter(f"not a letter of the kind {' or '.join(kinds)}")
    return head, blocks
