"""One Adam step of one row of a private layer, as explicit vector instructions (a numba intrinsic).

Both moments of a few numbers of the row are summed over the epochs in registers; the compiler, which vectorises
innermost loops alone, would write them to memory after every epoch.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fedrec.learn.adam import EPS
from fedrec.learn.kernel.vectors import LANES, Code

VECTORS = 4
WIDE = VECTORS * LANES
"""Numbers of a row that are handled at once."""


@intrinsic
def adam_of_factors(typing, row, now, first, second, places, once, twice, count, blocks, rate):
    """``row . now``, then ``row -= rate m / (sqrt(v) + eps)``, for the first ``blocks * WIDE`` numbers of a row.

    ``m = sum_e once[e] first[places[e]:]`` and ``v = sum_e twice[e] second[places[e]:]`` over ``count`` epochs.
    """
    given = (row, now, first, second, places, once, twice)
    signature = types.float32(*given, types.int64, types.int64, types.float32)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        codes = [Code(context, builder, kind, value) for kind, value in zip(sig.args[:7], args[:7], strict=True)]
        row_, now_, first_, second_, places_, once_, twice_ = codes
        wide = ir.Constant(ir.IntType(64), WIDE)
        zero, eps, speed = row_.spread(0.0), row_.spread(EPS), row_.spread(args[9])
        total = cgutils.alloca_once_value(builder, zero)
        means = [cgutils.alloca_once_value(builder, zero) for _ in range(VECTORS)]
        squares = [cgutils.alloca_once_value(builder, zero) for _ in range(VECTORS)]
        builder.store(zero, total)
        with cgutils.for_range(builder, args[8]) as block:
            at = builder.mul(block.index, wide)
            values = [row_.load(at, LANES * t) for t in range(VECTORS)]
            for t in range(VECTORS):
                builder.store(zero, means[t])
                builder.store(zero, squares[t])
                product = row_.times(values[t], now_.load(at, LANES * t))
                builder.store(row_.plus(builder.load(total), product), total)
            with cgutils.for_range(builder, args[7]) as epoch:
                place, a, b = (builder.load(builder.gep(code.data, [epoch.index])) for code in (places_, once_, twice_))
                place, a, b = builder.add(place, at), row_.spread(a), row_.spread(b)
                for t in range(VECTORS):
                    mean = row_.times(a, first_.load(place, LANES * t))
                    builder.store(row_.plus(builder.load(means[t]), mean), means[t])
                    square = row_.times(b, second_.load(place, LANES * t))
                    builder.store(row_.plus(builder.load(squares[t]), square), squares[t])
            for t in range(VECTORS):
                root = row_.plus(row_.root(builder.load(squares[t])), eps)
                move = row_.over(row_.times(speed, builder.load(means[t])), root)
                row_.store(row_.minus(values[t], move), at, LANES * t)
        return row_.sum(builder.load(total))

    return signature, build
