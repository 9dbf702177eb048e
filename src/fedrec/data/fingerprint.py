"""A fingerprint of what is learnt from: equal for equal interactions, whatever the order of their rows."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from fedrec.data.interactions import Interactions


def fingerprint(data: Interactions) -> str:
    """SHA-256 (64 hex digits) over users, items, times, parts and clients of all interactions, by their own ids.

    Ratings count through what they decide: which rows are interactions. Names, titles and notes do not count.
    """
    found = hashlib.sha256(b"fedrec interactions 1\n")
    order = np.lexsort((data.items, data.users))  # ids are numbered in their own order, and no pair occurs twice
    _add_ids(found, "users", data.user_ids)
    _add_ids(found, "items", data.item_ids)
    _add(found, "user", data.users[order])
    _add(found, "item", data.items[order])
    _add(found, "time", None if data.times is None else data.times[order])
    _add(found, "part", None if data.part is None else data.part[order])
    _add(found, "client", data.client_of_user)
    if data.client_ids is not None:
        _add_ids(found, "clients", data.client_ids)
    return found.hexdigest()


def _add(found: hashlib._Hash, name: str, values: NDArray[np.integer] | None) -> None:
    found.update(f"{name} {-1 if values is None else len(values)}\n".encode())
    if values is not None:
        found.update(np.ascontiguousarray(values, dtype="<i8").tobytes())


def _add_ids(found: hashlib._Hash, name: str, ids: NDArray[np.str_]) -> None:
    texts = [text.encode("utf-8") for text in ids.tolist()]
    _add(found, name, np.array([len(text) for text in texts], dtype=np.int64))
    found.update(b"".join(texts))
