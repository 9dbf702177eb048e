"""The sums of a node's clients as bytes: the method's fields one after another, in 64 bits.

Both sides know which fields there are and how large they are (:meth:`fedrec.core.method.Method.sum_fields`), so the
bytes say nothing about themselves, and there is nothing in them to be believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from fedrec.core.fold import Float64
from fedrec.core.misfit import MAGNITUDE, Misfit
from fedrec.core.sums import SumField

KIND = "<f8"
WIDTH = np.dtype(KIND).itemsize


def pack_totals(totals: Mapping[str, Float64]) -> bytes:
    """The totals of some clients, in the order of their names."""
    return b"".join(np.ascontiguousarray(totals[name], KIND).tobytes() for name in sorted(totals))


def unpack_totals(data: bytes, fields: Mapping[str, SumField], clients: int) -> dict[str, Float64]:
    """The totals of so many clients; anything else than finite numbers of this method's sizes is a misfit."""
    sizes = {name: prod(fields[name].shape) for name in sorted(fields)}
    if len(data) != WIDTH * sum(sizes.values()):
        raise Misfit(f"sums of {len(data)} bytes, not {WIDTH * sum(sizes.values())}")
    numbers = np.frombuffer(data, KIND)
    largest = MAGNITUDE * clients * max((field.weight for field in fields.values()), default=1.0)
    if not (np.abs(numbers) <= largest).all():  # neither is a number that is none
        raise Misfit("sums that are not finite, or larger than these clients can make them")
    bounds = np.cumsum([0, *sizes.values()])
    return {
        name: numbers[first:last].reshape(fields[name].shape).astype(np.float64)
        for name, first, last in zip(sizes, bounds[:-1], bounds[1:], strict=True)
    }
