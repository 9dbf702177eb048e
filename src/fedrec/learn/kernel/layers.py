"""Products of small matrices, and moving rows between layouts, as explicit vector instructions (numba intrinsics).

A network's layer is such a product in all three directions: forward, to the layer's inputs and to its weights. The
order of every sum is fixed, so what comes out depends neither on threads nor on what else is in a batch.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fedrec.learn.kernel.vectors import LANES, Code

TILE = 8
"""Rows of a product that are worked out at once: their sums stay in registers."""

_LAYOUT = (types.int64, types.int64, types.int64)


@intrinsic
def multiply_add(typing, a, a_at, a_row, a_inner, b, b_at, b_inner, b_block, c, c_at, c_row, c_block, tiles, blocks, n):
    """``C += A B`` for ``C [tiles * TILE, blocks * LANES]`` and ``n`` summands each.

    Each matrix is an array, where it begins in it, and two distances: of A from row to row and from summand to
    summand, of B from summand to summand and from block to block, of C from row to row and from block to block.
    """
    signature = types.void(a, *_LAYOUT, b, *_LAYOUT, c, *_LAYOUT, *_LAYOUT)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, out = (Code(context, builder, sig.args[at], args[at]) for at in (0, 4, 8))
        (a_at, a_row, a_inner), (b_at, b_inner, b_block) = args[1:4], args[5:8]
        (c_at, c_row, c_block), (tiles, blocks, n) = args[9:12], args[12:]

        def at(*terms: tuple[Any, Any], base: Any) -> Any:
            for index, distance in terms:
                base = builder.add(base, builder.mul(index, distance))
            return base

        word = partial(ir.Constant, ir.IntType(64))
        sums = [cgutils.alloca_once_value(builder, out.spread(0.0)) for _ in range(TILE)]

        def square(row: Any, block: Any, wide: int) -> None:
            """``TILE / wide`` rows and ``wide`` blocks of C: as many sums as registers hold beside the factors."""
            high = TILE // wide
            rows, blocks = [word(one) for one in range(high)], [word(one) for one in range(wide)]
            from_a, into = at((row, a_row), base=a_at), at((row, c_row), (block, c_block), base=c_at)
            from_b = at((block, b_block), base=b_at)
            places = [at((one, c_row), (other, c_block), base=into) for one in rows for other in blocks]
            for total, place in zip(sums, places, strict=True):
                builder.store(out.load(place), total)
            with cgutils.for_range(builder, n) as inner:
                factors = [right.load(at((inner.index, b_inner), (one, b_block), base=from_b)) for one in blocks]
                for one in range(high):
                    place = at((rows[one], a_row), (inner.index, a_inner), base=from_a)
                    single = left.spread(builder.load(builder.gep(left.data, [place])))
                    for total, factor in zip(sums[one * wide : (one + 1) * wide], factors, strict=True):
                        builder.store(left.plus(builder.load(total), left.times(single, factor)), total)
            for total, place in zip(sums, places, strict=True):
                out.store(builder.load(total), place)

        with cgutils.for_range(builder, tiles) as tile:
            row = builder.mul(tile.index, word(TILE))
            with cgutils.for_range(builder, builder.lshr(blocks, word(1))) as pair:
                block = builder.shl(pair.index, word(1))
                for half in (0, TILE // 2):
                    square(builder.add(row, word(half)), block, 2)
            with builder.if_then(builder.trunc(blocks, ir.IntType(1))):
                square(row, builder.sub(blocks, word(1)), 1)
        return context.get_dummy_value()

    return signature, build


def _along_blocks(add: bool, into: Any, source: Any) -> Any:
    signature = types.void(into, types.int64, types.int64, source, types.int64, types.int64, types.int64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        to, from_ = (Code(context, builder, sig.args[at], args[at]) for at in (0, 3))
        with cgutils.for_range(builder, args[6]) as loop:
            o, p = (builder.add(args[at], builder.mul(loop.index, args[at + 1])) for at in (1, 4))
            vector = from_.load(p)
            to.store(to.plus(to.load(o), vector) if add else vector, o)
        return context.get_dummy_value()

    return signature, build


@intrinsic
def copy_row(typing, into, into_at, into_block, source, source_at, source_block, blocks):
    """``into = source`` for a row of ``blocks * LANES`` numbers; each array has its distance from block to block."""
    return _along_blocks(False, into, source)


@intrinsic
def add_row(typing, into, into_at, into_block, source, source_at, source_block, blocks):
    """``into += source`` for such a row."""
    return _along_blocks(True, into, source)


def padded(width: int) -> int:
    """The whole vectors' worth of numbers that hold ``width``."""
    return -(-width // LANES) * LANES
