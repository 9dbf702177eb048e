"""Types of what kernels are called with (numba)."""

from __future__ import annotations

from typing import Any

from numba import types


def flat(kind: Any) -> Any:
    """A run of numbers that is only read; one type for all, so that a read-only input compiles no other variant."""
    return types.Array(kind, 1, "C", readonly=True)
