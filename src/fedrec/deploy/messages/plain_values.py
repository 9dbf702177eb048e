"""Reading plain values that somebody else wrote: each of the kind and size it must have, or one clear error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_HEAD = 1 << 20
"""Characters of a letter's head; real ones have a few thousand."""
MOST_WHOLE = 1 << 31
MOST_NAME = 200


class BadLetter(ValueError):
    """A letter that is not one; the text says where."""


def parse(text: Any, most: int = MOST_HEAD) -> dict[str, Any]:
    """A JSON object of limited length."""
    if not isinstance(text, str) or len(text) > most:
        raise BadLetter("the head of a letter is not text, or too long")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadLetter("the head of a letter is not JSON") from None
    if not isinstance(found, dict):
        raise BadLetter("the head of a letter is not an object")
    return found


def entry(head: Any, key: str) -> Any:
    if not isinstance(head, dict) or key not in head:
        raise BadLetter(f"the letter has no {key!r}")
    return head[key]


def text(head: Any, key: str, most: int = MOST_NAME) -> str:
    found = entry(head, key)
    if not isinstance(found, str) or len(found) > most:
        raise BadLetter(f"{key} is not a text of at most {most} characters")
    return found


def whole(head: Any, key: str, high: int = MOST_WHOLE) -> int:
    """A whole number from 0 to ``high``; not a truth value, not a floating number."""
    return whole_number(key, entry(head, key), high)


def whole_number(name: str, found: Any, high: int = MOST_WHOLE) -> int:
    if type(found) is not int or not 0 <= found <= high:
        raise BadLetter(f"{name} is not a whole number from 0 to {high}")
    return found


def number(name: str, found: Any) -> float:
    """A finite number."""
    if type(found) not in (int, float) or abs(found) > 1e300 or not math.isfinite(found):
        raise BadLetter(f"{name} is not a finite number")
    return float(found)


def flag(head: Any, key: str) -> bool:
    found = entry(head, key)
    if type(found) is not bool:
        raise BadLetter(f"{key} is neither true nor false")
    return found


def block(blocks: Any, key: str) -> bytes:
    if not isinstance(blocks, Mapping) or not isinstance(blocks.get(key), bytes):
        raise BadLetter(f"the letter has no block {key!r}")
    found: bytes = blocks[key]
    return found


def exactly(blocks: Any, names: tuple[str, ...]) -> None:
    """These blocks and no others."""
    if not isinstance(blocks, Mapping) or len(blocks) != len(names) or set(blocks) != set(names):
        raise BadLetter("the letter has other blocks than it should have")


def numbers(blocks: Any, key: str, kind: str) -> NDArray[Any]:
    """A block as numbers of eight bytes each."""
    data = block(blocks, key)
    if len(data) % 8:
        raise BadLetter(f"the block {key!r} is not made of whole numbers")
    return np.frombuffer(data, kind)
