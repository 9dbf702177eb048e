"""A fingerprint of what is learnt from: equal for equal interactions, whatever the order of their rows."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.data.interactions import Interactions

_SAID = {
    "users": "its user ids are others",
    "items": "its item ids are others",
    "pairs": "users have other items",
    "times": "its times are others",
    "split": "it is split in another way",
    "clients": "its users belong to other clients",
}


@dataclass(frozen=True)
class Fingerprint:
    """Counts for people, and a digest of each part, so that one can say what has changed."""

    name: str = field(compare=False)
    counts: dict[str, int]
    """Users, items, interactions."""
    parts: dict[str, str]
    """SHA-256 (64 hex digits) of user ids, item ids, pairs, times, split and clients."""

    @property
    def whole(self) -> str:
        """One digest over all parts."""
        return hashlib.sha256("\n".join(f"{key} {self.parts[key]}" for key in _SAID).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def change_to(self, now: Fingerprint) -> str | None:
        """What has changed, for people; None where nothing has. Names do not count."""
        if self.parts == now.parts:
            return None
        counts = [
            f"{self.counts[key]} {key} then, {now.counts[key]} now"
            for key in ("users", "items", "interactions")
            if self.counts.get(key) != now.counts.get(key)
        ]
        others = [text for key, text in _SAID.items() if self.parts.get(key) != now.parts.get(key)]
        return ", ".join(counts) or f"as many users, items and interactions, but {others[0]}"


def fingerprint(data: Interactions) -> Fingerprint:
    """Users, items, times, parts and clients of all interactions, by their own ids.

    Ratings count through what they decide: which rows are interactions. Names, titles and notes do not count.
    """
    order = np.lexsort((data.items, data.users))  # ids are numbered in their own order, and no pair occurs twice
    clients = [] if data.client_ids is None else _texts(data.client_ids)
    return Fingerprint(
        data.name,
        {"users": data.n_users, "items": data.n_items, "interactions": len(data)},
        {
            "users": _digest(*_texts(data.user_ids)),
            "items": _digest(*_texts(data.item_ids)),
            "pairs": _digest(_bytes(data.users[order]), _bytes(data.items[order])),
            "times": _digest(_bytes(None if data.times is None else data.times[order])),
            "split": _digest(_bytes(None if data.part is None else data.part[order])),
            "clients": _digest(_bytes(data.client_of_user), *clients),
        },
    )


def _digest(*contents: bytes) -> str:
    found = hashlib.sha256(b"fedrec interactions 1\n")
    for content in contents:
        found.update(f"{len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def _bytes(values: NDArray[np.integer] | None) -> bytes:
    return b"none" if values is None else np.ascontiguousarray(values, dtype="<i8").tobytes()


def _texts(ids: NDArray[np.str_]) -> tuple[bytes, bytes]:
    texts = [text.encode("utf-8") for text in ids.tolist()]
    return _bytes(np.array([len(text) for text in texts], dtype=np.int64)), b"".join(texts)
