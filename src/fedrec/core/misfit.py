"""What a message or a state must not be: checks of arrays, before anything is computed from them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Rows

MAGNITUDE = 1e9
"""Larger numbers are no model's: sums of their squares would leave the range of 32-bit numbers."""
CHUNK = 1 << 22
"""Numbers looked at at once: a check takes little memory, however large the array."""


class Misfit(Exception):
    """A message that is not what the method sends; the text says where."""


def require(fits: bool | np.bool_, said: str) -> None:
    """Refuse what does not fit."""
    if not fits:
        raise Misfit(said)


def flat(name: str, array: Any, kinds: str) -> None:
    """An array with one axis, of one of these kinds of number."""
    fits = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in kinds
    require(fits, f"{name} is not a list of numbers of the right kind")


def cut(name: str, start: NDArray[Any], lists: int, length: int) -> None:
    """Where lists begin: from 0 to ``length``, never going back."""
    flat(name, start, "i")
    require(len(start) == lists + 1, f"{name} is cut into {len(start) - 1} lists, not {lists}")
    fits = start[0] == 0 and start[-1] == length and bool((start[1:] >= start[:-1]).all())
    require(fits, f"{name} is not cut as it says")


def ascending(name: str, start: NDArray[Any], index: NDArray[Any], below: int) -> None:
    """Numbers in ``[0, below)`` that ascend within each list."""
    flat(name, index, "iu")
    if not len(index):
        return
    require(int(index.min()) >= 0 and int(index.max()) < below, f"{name} names what is not in the catalogue")
    rises = np.ones(len(index), bool)
    rises[1:] = index[1:] > index[:-1]
    rises[start[:-1][start[1:] > start[:-1]]] = True  # the first of a list follows nothing
    require(rises.all(), f"{name} is not in order")


def rows(name: str, found: Rows, clients: int, n_items: int, width: int) -> None:
    """Rows of so many clients' tables, ``[n_items, width]`` each."""
    require(
        found.n_items == n_items and found.values.shape[1:] == (width,),
        f"{name} is for {found.n_items} items with rows {found.values.shape[1:]}, not {n_items} with {(width,)}",
    )
    require(len(found.values) == len(found.ids), f"{name} has {len(found.values)} rows for {len(found.ids)} items")
    require(found.start.dtype == np.int64 and found.ids.dtype == np.int32, f"{name} has ids of {found.ids.dtype}")
    cut(name, found.start, clients, len(found.ids))
    ascending(name, found.start, found.ids, n_items)


def bounded(name: str, values: NDArray[Any], most: float = MAGNITUDE) -> None:
    """Floating numbers that are finite and not absurd."""
    if values.dtype.kind != "f":
        return
    numbers = values.reshape(-1)
    for first in range(0, len(numbers), CHUNK):
        part = numbers[first : first + CHUNK]
        low, high = float(part.min()), float(part.max())
        require(np.isfinite(low) and np.isfinite(high), f"{name} is not finite")
        require(max(-low, high) <= most, f"{name} has numbers as large as {max(-low, high):.3g}")


def finite(value: Any) -> bool:
    """Whether every number in dataclasses, dictionaries, lists and arrays is one; the value may be large."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or _array(value)
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(finite(part) for part in value.values())
    if isinstance(value, list | tuple):
        return all(finite(part) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(finite(getattr(value, spec.name)) for spec in dataclasses.fields(value))
    return True


def _array(array: Any) -> bool:
    if array.size <= CHUNK or array.ndim == 0:
        return bool(np.isfinite(array).all())
    if array.strides[0] == 0:  # the same entry again and again
        return _array(array[0])
    step = max(1, CHUNK * len(array) // array.size)
    if step == 1 and array.ndim > 1:
        return all(_array(part) for part in array)
    return all(np.isfinite(array[first : first + step]).all() for first in range(0, len(array), step))
