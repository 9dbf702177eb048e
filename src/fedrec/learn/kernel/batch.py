"""A mini-batch of a client with one user, as explicit vector instructions (numba intrinsics).

Scores of several samples at a time, the loss's slopes of a whole batch, and the steps of all its rows: what stays the
same from sample to sample (the user's vector, its gradient) stays in registers.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fedrec.learn.kernel.vectors import GRADIENT, LANES, Code, adam_moved

_INTS = ir.VectorType(ir.IntType(32), LANES)
_LOG_2 = math.log(2)
_LOG_2_HIGH = round(_LOG_2 * 2**15) / 2**15
"""The first bits of log 2: its products with small whole numbers are exact."""
_WHOLE = 1.5 * 2**23
"""Added to a small float32 it leaves the nearest whole number in the lowest bits."""
_LARGEST = 87.0
"""Beyond it exp leaves float32, and a slope is 0 or 1 to the last bit long before."""
_TERMS = 7


def _exp(code: Code, x: Any) -> Any:
    """``exp(x)`` to a rounding or two, ``|x|`` up to 87: ``2^k exp(r)`` with ``|r| <= log(2) / 2``; NaN stays NaN."""
    builder = code.builder
    for bound, order in ((_LARGEST, ">"), (-_LARGEST, "<")):
        x = builder.select(builder.fcmp_ordered(order, x, code.spread(bound)), code.spread(bound), x)
    shifted = code.plus(code.times(x, code.spread(1 / _LOG_2)), code.spread(_WHOLE))
    whole = code.minus(shifted, code.spread(_WHOLE))  # k
    r = code.minus(x, code.times(whole, code.spread(_LOG_2_HIGH)))
    r = code.minus(r, code.times(whole, code.spread(_LOG_2 - _LOG_2_HIGH)))
    series = code.spread(1 / math.factorial(_TERMS))
    for power in range(_TERMS - 1, -1, -1):
        series = code.plus(code.times(series, r), code.spread(1 / math.factorial(power)))
    exponent = builder.shl(builder.bitcast(shifted, _INTS), ir.Constant(_INTS, [23] * LANES))  # k, where exponents are
    return builder.bitcast(builder.add(builder.bitcast(series, _INTS), exponent), code.spread(0.0).type)


@intrinsic
def slopes_of(typing, score, label, groups, share):
    """``score = (1 / (1 + exp(-score)) - label) share`` for ``groups`` times LANES samples."""
    signature = types.void(score, label, types.int64, types.float32)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code, wanted = (Code(context, builder, sig.args[n], args[n]) for n in range(2))
        one, share_ = code.spread(1.0), code.spread(args[3])
        with cgutils.for_range(builder, args[2]) as loop:
            at = builder.mul(loop.index, ir.Constant(ir.IntType(64), LANES))
            chance = code.over(one, code.plus(one, _exp(code, code.minus(code.spread(-0.0), code.load(at)))))
            code.store(code.times(code.minus(chance, wanted.load(at)), share_), at)
        return context.get_dummy_value()

    return signature, build


def _sums(code: Code, vectors: list[Any]) -> Any:
    """The sum of the lanes of each of LANES vectors, as one vector: halves are added, as :meth:`Code.sum` does it."""
    half = LANES // 2
    while half:
        pairs = zip(vectors[: len(vectors) // 2], vectors[len(vectors) // 2 :], strict=True)
        vectors = [_halves_added(code, one, other, half) for one, other in pairs]
        half //= 2
    return vectors[0]


def _halves_added(code: Code, one: Any, other: Any, half: int) -> Any:
    """In every group of ``2 half`` lanes: ``one``'s two halves added, then ``other``'s."""
    groups = range(0, LANES, 2 * half)
    low = [g + k + side for g in groups for side in (0, LANES) for k in range(half)]
    chosen = (ir.Constant(_INTS, low), ir.Constant(_INTS, [lane + half for lane in low]))
    return code.plus(*(code.builder.shuffle_vector(one, other, lanes) for lanes in chosen))


@intrinsic
def dots(typing, state, user, places, groups, blocks, out):
    """``out[j]``: dot product of the values at ``user`` and at ``places[j]``, for ``groups`` times LANES places."""
    signature = types.void(state, types.uint64, places, types.int64, types.uint64, out)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code, where, into = (Code(context, builder, sig.args[n], args[n]) for n in (0, 2, 5))
        totals = [cgutils.alloca_once_value(builder, code.spread(0.0)) for _ in range(LANES)]
        with cgutils.for_range(builder, args[3]) as group:
            at = builder.mul(group.index, ir.Constant(ir.IntType(64), LANES))
            rows = [builder.load(where.element(at, t)) for t in range(LANES)]
            for total in totals:
                builder.store(code.spread(0.0), total)
            with code.each_block(args[4]) as loop:
                person = code.load(code.advanced(args[1], loop.index))
                for total, row in zip(totals, rows, strict=True):
                    product = code.times(person, code.load(code.advanced(row, loop.index)))
                    builder.store(code.plus(builder.load(total), product), total)
            into.store(_sums(code, [builder.load(total) for total in totals]), at)
        return context.get_dummy_value()

    return signature, build


@intrinsic
def adam_steps_of_one(typing, state, listed, slopes, count, wide, blocks, size, scale):
    """One Adam step of each listed row, whose gradient is its slope times the user at offset 0.

    The user's gradient becomes the sum of slopes times rows as they were.
    """
    kinds = (types.int64, types.uint64, types.uint64, types.float32, types.float32)
    signature = types.void(state, listed, slopes, *kinds)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code, rows, steep = (Code(context, builder, sig.args[n], args[n]) for n in range(3))
        size_, scale_ = code.spread(args[6]), code.spread(args[7])
        total = cgutils.alloca_once_value(builder, code.spread(0.0))
        with code.each_block(args[5]) as block:
            person = code.advanced(ir.Constant(ir.IntType(64), 0), block.index)
            user = code.load(person)
            builder.store(code.spread(0.0), total)
            with cgutils.for_range(builder, args[3]) as loop:
                row = builder.zext(builder.load(rows.element(loop.index)), ir.IntType(64))
                slope = code.spread(builder.load(steep.element(row)))
                o = code.advanced(builder.mul(row, args[4]), block.index)
                value = code.load(o)
                builder.store(code.plus(builder.load(total), code.times(slope, value)), total)
                adam_moved(code, o, code.times(slope, user), value, size_, scale_)
            code.store(builder.load(total), person, GRADIENT)
        return context.get_dummy_value()

    return signature, build
