"""One Adam step of a few rows of a private layer, as explicit vector instructions (a numba intrinsic).

Both moments of a few numbers of each row are summed over the epochs in registers; the compiler, which vectorises
innermost loops alone, would write them to memory after every epoch. Rows are taken a few at a time, so that factors
are loaded once for all of them, and the next ones are fetched from memory meanwhile.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fedrec.learn.adam import EPS
from fedrec.learn.kernel.vectors import Code

LANES = 16
VECTORS = 2
WIDE = VECTORS * LANES
"""Numbers of a row that are handled at once."""
TOGETHER = 4
"""Rows that are handled at once."""

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INDEX = ir.IntType(64)
_SMALLEST = 2.0**-126  # below it the estimate of 1 / sqrt is infinite


def _number(value: int) -> Any:
    return ir.Constant(_INDEX, value)


def _called(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _fetch(code: Code, place: Any) -> None:
    """Ask for the cache line at a place that is about to be read and written."""
    pointer = code.builder.bitcast(place, ir.IntType(8).as_pointer())
    hints = [ir.Constant(ir.IntType(32), hint) for hint in (1, 3, 1)]  # to be written, close by, data
    _called(code.builder, "llvm.prefetch.p0i8", ir.VoidType(), [pointer, *hints])


def _estimate(code: Code, name: str, vector: Any) -> Any:
    """An AVX-512 estimate, right to 14 bits."""
    everywhere = ir.Constant(ir.IntType(16), -1)
    return _called(code.builder, f"llvm.x86.avx512.{name}.ps.512", _VECTOR, [vector, code.spread(0.0), everywhere])


def _ratio(code: Code, mean: Any, square: Any, estimates: bool) -> Any:
    """``mean / (sqrt(square) + eps)``; where the processor has ``estimates``, by one Newton step for each of the two.

    A correctly rounded root and quotient take half of the time of a step; this is within 2e-7 of them.
    """
    if not estimates:
        return code.over(mean, code.plus(code.root(square), code.spread(EPS)))
    bounded = _called(code.builder, f"llvm.maxnum.v{LANES}f32", _VECTOR, [square, code.spread(_SMALLEST)])
    inverse = _estimate(code, "rsqrt14", bounded)
    root = code.times(bounded, inverse)
    error = code.minus(code.spread(0.5), code.times(root, code.times(inverse, code.spread(0.5))))
    below = code.plus(code.plus(root, code.times(root, error)), code.spread(EPS))
    inverse = _estimate(code, "rcp14", below)
    ratio = code.times(mean, inverse)
    ratio = code.plus(ratio, code.times(inverse, code.minus(mean, code.times(below, ratio))))
    finite = code.builder.fcmp_unordered("<", square, code.spread(math.inf))
    return code.builder.select(finite, ratio, code.spread(0.0))


def _step_of_rows(rows: int) -> Any:
    @intrinsic
    def step_of_rows(typing, weights, at, width, now, first, second, once, twice, count, blocks, rate, back):
        """``back[at:] = weights[at:] . now``, then ``weights[at:] -= rate m / (sqrt(v) + eps)``, for some rows.

        Of each row the first ``blocks * WIDE`` numbers. ``m = sum_e once[:, e] first[e]`` and ``v = sum_e twice[:, e]
        second[e]`` over ``count`` epochs.
        """
        arrays = (now, first, second, once, twice)
        numbers = (types.int64, types.int64)
        signature = types.void(weights, *numbers, *arrays, *numbers, types.float32, back)

        def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def code_of(place: int) -> Code:
                return Code(context, builder, sig.args[place], args[place], _VECTOR)

            weights_, now_, first_, second_, once_, twice_, back_ = (code_of(place) for place in (0, *range(3, 8), 11))
            begin, width_, count_, rate_ = args[1], args[2], args[8], weights_.spread(args[10])
            estimates = "+avx512f" in str(context.codegen().magic_tuple())
            starts = [builder.mul(builder.add(begin, _number(t)), width_) for t in range(rows)]
            zero = weights_.spread(0.0)

            def kept(among: int) -> list[Any]:
                return [cgutils.alloca_once(builder, _VECTOR) for _ in range(among)]

            totals, means, squares = kept(rows), kept(rows * VECTORS), kept(rows * VECTORS)
            for total in totals:
                builder.store(zero, total)
            with cgutils.for_range(builder, args[9]) as block:
                at_ = builder.mul(block.index, _number(WIDE))
                for t in range(rows):
                    for k in range(VECTORS):
                        ahead = builder.add(builder.add(starts[t], at_), builder.mul(width_, _number(rows)))
                        _fetch(weights_, weights_.element(ahead, LANES * k))
                for sum_ in (*means, *squares):
                    builder.store(zero, sum_)
                with cgutils.for_range(builder, count_) as epoch:
                    place = builder.add(builder.mul(epoch.index, width_), at_)
                    pairs = [(first_.load(place, LANES * k), second_.load(place, LANES * k)) for k in range(VECTORS)]
                    for t in range(rows):
                        given = builder.add(builder.mul(count_, _number(t)), epoch.index)
                        a, b = (c.spread(builder.load(builder.gep(c.data, [given]))) for c in (once_, twice_))
                        for k, (mean, square) in enumerate(pairs):
                            for factor, value, sum_ in ((a, mean, means), (b, square, squares)):
                                into = sum_[t * VECTORS + k]
                                more = weights_.times(factor, value)
                                builder.store(weights_.plus(builder.load(into), more), into)
                for t in range(rows):
                    here = builder.add(starts[t], at_)
                    for k in range(VECTORS):
                        value = weights_.load(here, LANES * k)
                        product = weights_.times(value, now_.load(at_, LANES * k))
                        builder.store(weights_.plus(builder.load(totals[t]), product), totals[t])
                        mean, square = (builder.load(sum_[t * VECTORS + k]) for sum_ in (means, squares))
                        move = _ratio(weights_, weights_.times(rate_, mean), square, estimates)
                        weights_.store(weights_.minus(value, move), here, LANES * k)
            for t in range(rows):
                builder.store(weights_.sum(builder.load(totals[t])), back_.element(begin, t))
            return context.get_dummy_value()

        return signature, build

    return step_of_rows


step_of_several = _step_of_rows(TOGETHER)
"""TOGETHER rows."""
step_of_one = _step_of_rows(1)
"""One row."""
