"""Types of what kernels are called with (numba)."""

from __future__ import annotations

from typing import Any, Literal

from numba import types


def flat(kind: Any) -> Any:
    """A run of numbers that is only read; one type for all, so that a read-only input compiles no other variant."""
    return types.Array(kind, 1, "C", readonly=True)


def of_clients(order: Literal["A", "C"], *more: Any) -> Any:
    """The explicit signature of a kernel that :func:`fedrec.learn.kernel.call.on_all_cores` calls.

    ``order`` is how the numbers of tables and users lie ("A": rows in any distance); ``more`` the kernel's own types.
    """
    i32, i64, f32 = types.int32, types.int64, types.float32
    return types.void(
        flat(i64), flat(i64), flat(i32), flat(i32), flat(i32), flat(types.uint8),  # clients .. label
        flat(i64), flat(i32), flat(i64),  # rows_start, rows_ids, user_start
        types.Array(f32, 3, order, readonly=True), types.boolean,  # table, personal
        types.Array(f32, 2, order, readonly=True), f32[:, ::1],  # users
        f32[:, ::1], types.float64[::1],  # changes, loss
        flat(types.uint64), i64, i64,  # keys, epochs, batch
        *more,
    )  # fmt: skip
