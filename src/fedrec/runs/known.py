"""What a finished model must know of its data to recommend without it: ids, titles, what its users have.

``data.safetensors`` lies beside the model. With ``histories=hashed`` it names no item that a user has: there stands a
keyed hash of the pair of user and item, whose key lies elsewhere (:mod:`fedrec.runs.history_key`). Who has the key
finds a user's items by hashing the whole catalogue for that user; who has not, finds nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block, World
from fedrec.core.kinds import Parts
from fedrec.core.population import Population
from fedrec.core.state import BadState, Expected
from fedrec.data import limits
from fedrec.data.ragged import Int64, Ragged, offsets
from fedrec.evaluation.task import Task, sort_lists, union

SCHEMA = "fedrec.known/1"
DIGEST = 8
"""Bytes of a hash of user and item."""

_TEXTS = Parts({"start": NDArray[np.int64], "bytes": NDArray[np.uint8]})
_LISTS = Parts({"start": NDArray[np.int64], "values": NDArray[np.integer]})
STORED = Expected(
    Parts(
        {
            "items": _TEXTS, "titles": Parts(_TEXTS.hints, optional=True), "users": _TEXTS,
            "clients": Parts(_TEXTS.hints, optional=True), "user_start": NDArray[np.int64],
            "train": _LISTS, "beside": _LISTS,
        }
    )
)  # fmt: skip
"""What the file must hold."""


@dataclass
class Known:
    """A model's items and users; users stand in the order of its clients."""

    people: Population
    item_ids: NDArray[np.str_]
    titles: NDArray[np.object_] | None
    user_ids: NDArray[np.str_]
    owned: Ragged
    """All items each user has, trained on or held out or rated low, ascending: none of them is recommended."""
    hashed: NDArray[np.uint64] | None = None
    """Where histories are hashed: a hash for each entry of ``train``, then of ``beside``; the lists are empty yet."""
    beside: Int64 = field(default_factory=lambda: np.zeros(1, np.int64))
    negatives: str = "train"

    @property
    def world(self) -> World:
        return self.people.world


def known_of(task: Task, people: Population) -> Known:
    """What is known while the data is there."""
    data, users = task.data, people.users
    return Known(people, data.item_ids, data.titles, data.user_ids[users], task.known.take(users))


def stored(known: Known, negatives: str, key: bytes | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The value for a state file, and what is said about it; histories hashed where a key is given."""
    block = known.people.block
    beside = _without(known.owned, block.train, block.n_items)
    single = block.single and list(known.people.client_ids) == known.user_ids.tolist()

    def lists(part: Ragged) -> dict[str, Any]:
        return {"start": part.start, "values": part.values if key is None else _hashes(known, part, key)}

    value = {
        "items": _packed(known.item_ids.tolist()),
        "titles": None if known.titles is None else _packed([str(title) for title in known.titles]),
        "users": _packed(known.user_ids.tolist()),
        "clients": None if single else _packed(list(known.people.client_ids)),
        "user_start": block.user_start,
        "train": lists(block.train),
        "beside": lists(beside),
    }
    about = {"schema": SCHEMA, "name": known.world.name, "negatives": negatives, "hashed": key is not None}
    return value, about | {"ordered": block.ordered}


def restored(value: dict[str, Any], about: dict[str, Any]) -> Known:
    """The same again; :class:`BadState` where the parts do not go together."""
    if about.get("schema") != SCHEMA or about.get("negatives") not in ("train", "all"):
        raise BadState("it is not what this version writes of a model's data")
    items, users = _unpacked(value["items"]), _unpacked(value["users"])
    clients = users if value["clients"] is None else _unpacked(value["clients"])
    if not items or not users:
        raise BadState("it has no users or no items")
    for ids in (items, users):
        _check_ids(ids)
    user_start = _checked_start(value["user_start"], len(users))
    train, beside = (_checked_lists(value[name], len(users)) for name in ("train", "beside"))
    if len(user_start) != len(clients) + 1:
        raise BadState("its clients do not hold its users")
    hashes = None
    if about.get("hashed"):
        hashes = np.concatenate([train.values, beside.values]).astype(np.uint64)
        train, beside = (Ragged(part.start, np.zeros(len(part.values), np.int32)) for part in (train, beside))
    elif any(
        len(part.values) and not 0 <= part.values.min() <= part.values.max() < len(items) for part in (train, beside)
    ):
        raise BadState("it names items that it does not have")
    train, beside = (Ragged(part.start, part.values.astype(np.int32)) for part in (train, beside))
    owned = Ragged(offsets(train.counts + beside.counts), np.zeros(len(train.values) + len(beside.values), np.int32))
    owned = union(train, beside) if hashes is None else owned
    honest = about["negatives"] == "train"
    exclude = owned if not honest else sort_lists(train) if hashes is None else Ragged(train.start, train.values.copy())
    world = World(str(about.get("name")), len(items), len(users), len(clients))
    block = Block(
        n_items=len(items),
        clients=np.arange(len(clients)),
        client_keys=keyed.keys_of(clients),
        user_start=user_start,
        user_keys=keyed.keys_of(users),
        train=train,
        exclude=exclude,
        ordered=bool(about.get("ordered", True)),
    )
    titles = None if value["titles"] is None else np.array(_unpacked(value["titles"]), dtype=object)
    if titles is not None and len(titles) != len(items):
        raise BadState("its titles are not those of its items")
    people = Population(world, block, np.arange(len(users)), tuple(clients))
    item_ids, user_ids = (np.array(ids, dtype=np.str_) for ids in (items, users))
    return Known(people, item_ids, titles, user_ids, owned, hashes, beside.start, about["negatives"])


def opened(known: Known, users: Int64, key: bytes) -> None:
    """Fill in what some users have, where it is hashed; :class:`BadState` where the key is another one."""
    if known.hashed is None:
        return
    block = known.people.block
    for user in users:
        table = {_hash(known.user_ids[user], item, key): number for number, item in enumerate(known.item_ids)}
        train = slice(block.train.start[user], block.train.start[user + 1])
        first = len(block.train.values)
        rest = slice(first + known.beside[user], first + known.beside[user + 1])
        try:
            learnt, others = ([table[int(word)] for word in known.hashed[part]] for part in (train, rest))
        except KeyError:
            raise BadState("the key of its histories is another one") from None
        block.train.values[train] = learnt
        known.owned.values[known.owned.start[user] : known.owned.start[user + 1]] = sorted(learnt + others)
        if known.negatives == "train":
            block.exclude.values[train] = sorted(learnt)


def _hash(user: str, item: str, key: bytes) -> int:
    """A hash of a pair that only the key's owner can compute; the same item is another number for every user."""
    digest = hashlib.blake2b(f"{len(str(user))} {user}{item}".encode(), key=key, digest_size=DIGEST).digest()
    return int.from_bytes(digest, "little")


def _hashes(known: Known, lists: Ragged, key: bytes) -> NDArray[np.uint64]:
    users, items = known.user_ids.tolist(), known.item_ids.tolist()
    pairs = zip(lists.owners.tolist(), lists.values.tolist(), strict=True)
    return np.fromiter((_hash(users[u], items[i], key) for u, i in pairs), np.uint64, len(lists.values))


def _without(lists: Ragged, less: Ragged, n_items: int) -> Ragged:
    """The lists without the entries that ``less`` has."""
    place = lists.owners * np.int64(n_items) + lists.values
    keep = ~np.isin(place, less.owners * np.int64(n_items) + less.values)
    return Ragged(offsets(np.bincount(lists.owners[keep], minlength=len(lists))), lists.values[keep])


def _packed(texts: list[str]) -> dict[str, Any]:
    encoded = [text.encode() for text in texts]
    return {
        "start": offsets(np.array([len(text) for text in encoded], np.int64)),
        "bytes": np.frombuffer(b"".join(encoded), np.uint8),
    }


def _unpacked(packed: dict[str, Any]) -> list[str]:
    letters = packed["bytes"]
    if letters.ndim != 1 or letters.dtype != np.uint8:
        raise BadState("its texts are no bytes")
    start, whole = _checked_start(packed["start"], len(letters)), letters.tobytes()
    try:
        return [whole[a:b].decode() for a, b in pairwise(start.tolist())]
    except UnicodeDecodeError:
        raise BadState("an id in it is not text") from None


def _check_ids(ids: list[str]) -> None:
    """As data has them: a table of ids is as wide as the widest, so that one long id could take all memory."""
    if any(len(one) > limits.ID or "\0" in one for one in ids):
        raise BadState(f"an id in it has more than {limits.ID} letters, or a zero byte")
    if len(set(ids)) < len(ids):
        raise BadState("an id in it occurs twice")


def _checked_lists(value: dict[str, Any], count: int) -> Ragged:
    values = value["values"]
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise BadState("its histories are no lists of whole numbers")
    start = _checked_start(value["start"], len(values))
    if len(start) != count + 1:
        raise BadState("its histories are not those of its users")
    return Ragged(start, values)


def _checked_start(start: NDArray[Any], end: int) -> Int64:
    whole = start.ndim == 1 and len(start) > 0 and start.dtype.kind in "iu"
    found = np.asarray(start, np.int64) if whole else np.full(1, -1)  # beyond 63 bits is below 0
    if found[0] != 0 or found[-1] != end or (np.diff(found) < 0).any():
        raise BadState("its lists do not fit together")
    return found
