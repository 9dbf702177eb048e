"""The sums of a node's clients as bytes: the method's fields one after another, in 64 bits.

Both sides know which fields there are and how large they are (:meth:`fedrec.core.method.Method.sum_fields`), so the
bytes say nothing about themselves, and there is nothing in them to be believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from fedrec.core.fold import Float64
from fedrec.core.misfit import Misfit
from fedrec.core.sums import SumField
from fedrec.data.ragged import offsets

KIND = "<f8"
WIDTH = np.dtype(KIND).itemsize


def pack_totals(totals: Mapping[str, Float64]) -> bytes:
    """The totals of some clients, in the order of their names."""
    return b"".join(np.ascontiguousarray(totals[name], KIND).tobytes() for name in sorted(totals))


def unpack_totals(data: bytes, fields: Mapping[str, SumField], bounds: Mapping[str, float]) -> dict[str, Float64]:
    """The totals, of which each number is at most the field's bound; anything else than this is a misfit."""
    sizes = {name: prod(fields[name].shape) for name in sorted(fields)}
    if len(data) != WIDTH * sum(sizes.values()):
        raise Misfit(f"sums of {len(data)} bytes, not {WIDTH * sum(sizes.values())}")
    numbers, start = np.frombuffer(data, KIND), offsets(np.array(list(sizes.values()), np.int64))
    found = {
        name: numbers[first:last].reshape(fields[name].shape).astype(np.float64)
        for name, first, last in zip(sizes, start[:-1], start[1:], strict=True)
    }
    for name, total in found.items():
        least = -bounds[name] if fields[name].protected else 0.0  # what is not protected is how much data there is
        if not ((total >= least) & (total <= bounds[name])).all():  # a number that is none is neither
            raise Misfit(f"{name}: sums that are not finite, or larger or less than these clients can make them")
    return found
