"""Whether all numbers in a nested value are finite; the value may be large."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

CHUNK = 1 << 22


def finite(value: Any) -> bool:
    """Whether every number in dataclasses, dictionaries, lists and arrays is one."""
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
