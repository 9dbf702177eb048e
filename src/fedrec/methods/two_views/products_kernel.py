"""Products and sums of rows as explicit vector code, for kernels that hold a block of rows in cache (numba).

Four rows by two vectors of the result stay in registers while a product is summed up: eight sums, which do not wait for
one another. Every number of a result adds its terms in their order, however many rows there are.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fedrec.compiled import njit
from fedrec.learn.kernel.vectors import Code

LANES = 16
ROWS, WIDE = 4, 2 * LANES
"""What one tile of a result covers."""

_WORD, _FLOAT = ir.IntType(64), ir.FloatType()
_FUSE = {"contract"}  # a * b + c in one rounding
_VECTOR, _NUMBER = ir.VectorType(_FLOAT, LANES), ir.VectorType(_FLOAT, 1)


def _tile(rows: int, vectors: int) -> Any:
    """``tile(out, o, left, l, right, r, count)``: ``rows`` x ``vectors * LANES`` numbers of ``out += left @ right``.

    ``o``, ``l``, ``r`` say where each begins: ``(offset, step from row to row)``; the left one has a step from column
    to column, too.
    """

    @intrinsic
    def tile(typing, out, o, left, l, right, r, count):
        signature = types.void(out, o, left, l, right, r, types.int64)

        def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            into, factors, values = (Code(context, builder, sig.args[i], args[i], _VECTOR) for i in (0, 2, 4))
            (o_at, o_row), (l_at, l_row, l_column), (r_at, r_row) = (
                cgutils.unpack_tuple(builder, args[i]) for i in (1, 3, 5)
            )

            def moved(at: Any, step: Any, by: int) -> Any:
                return builder.add(at, builder.mul(step, ir.Constant(_WORD, by)))

            places = [into.place(moved(o_at, o_row, i), k * LANES) for i in range(rows) for k in range(vectors)]
            sums = [cgutils.alloca_once(builder, _VECTOR) for _ in places]
            for place, total in zip(places, sums, strict=True):
                builder.store(builder.load(place, align=4), total)
            with cgutils.for_range(builder, args[6]) as loop:
                at = builder.add(r_at, builder.mul(loop.index, r_row))
                terms = [values.load(at, k * LANES) for k in range(vectors)]
                at = builder.add(l_at, builder.mul(loop.index, l_column))
                for i in range(rows):
                    factor = factors.spread(builder.load(factors.element(moved(at, l_row, i))))
                    for k, term in enumerate(terms):
                        total = sums[i * vectors + k]
                        builder.store(into.plus(builder.load(total), into.times(factor, term)), total)
            for place, total in zip(places, sums, strict=True):
                builder.store(builder.load(total), place, align=4)
            return context.get_dummy_value()

        return signature, build

    return tile


_large, _broad, _row, _single = _tile(ROWS, 2), _tile(ROWS, 1), _tile(1, 2), _tile(1, 1)


_table = types.float32[:, ::1]


@njit(
    types.void(_table, types.float32[:, :], _table), cache=True, nogil=True, error_model="numpy", fastmath={"contract"}
)
def add_product(out, left, right):
    """``out += left @ right``; rows of ``out`` and ``right`` are runs of memory, ``left`` may be turned."""
    rows, count = left.shape
    width = right.shape[1]
    o_row, r_row = out.strides[0] // 4, right.strides[0] // 4
    l_row, l_column = left.strides[0] // 4, left.strides[1] // 4
    full = rows - rows % ROWS
    k = 0
    while k + WIDE <= width:
        for i in range(0, full, ROWS):
            _large(out, (i * o_row + k, o_row), left, (i * l_row, l_row, l_column), right, (k, r_row), count)
        for i in range(full, rows):
            _row(out, (i * o_row + k, o_row), left, (i * l_row, l_row, l_column), right, (k, r_row), count)
        k += WIDE
    if k + LANES <= width:
        for i in range(0, full, ROWS):
            _broad(out, (i * o_row + k, o_row), left, (i * l_row, l_row, l_column), right, (k, r_row), count)
        for i in range(full, rows):
            _single(out, (i * o_row + k, o_row), left, (i * l_row, l_row, l_column), right, (k, r_row), count)
        k += LANES
    if k < width:
        for i in range(rows):
            for t in range(count):
                for at in range(k, width):
                    out[i, at] += left[i, t] * right[t, at]


def _pieces(builder: Any, width: Any) -> list[tuple[Any, Any, Any]]:
    """A row as whole vectors, then number by number: the kind of vector, where the piece begins, how many it has."""
    lanes = ir.Constant(_WORD, LANES)
    whole = builder.sdiv(width, lanes)
    begin = builder.mul(whole, lanes)
    return [(_VECTOR, ir.Constant(_WORD, 0), whole), (_NUMBER, begin, builder.sub(width, begin))]


def _sources(context: Any, builder: Any, sig: Any, args: Any, of: int, vector: Any) -> list[tuple[Code, Any]]:
    """A tuple of arrays and one of offsets that follows it: code and offset of each."""
    arrays, starts = cgutils.unpack_tuple(builder, args[of]), cgutils.unpack_tuple(builder, args[of + 1])
    code = [Code(context, builder, kind, one, vector) for kind, one in zip(sig.args[of], arrays, strict=True)]
    return list(zip(code, starts, strict=True))


@intrinsic
def mix(typing, out, o, factors, sources, offsets, width):
    """``out[o :] = sum of factor * source[offset :]`` over ``width`` numbers; ``out`` may be one of the sources."""
    signature = types.void(out, types.int64, factors, sources, offsets, types.int64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        for vector, begin, count in _pieces(builder, args[5]):
            into = Code(context, builder, sig.args[0], args[0], vector)
            terms = _sources(context, builder, sig, args, 3, vector)
            scales = [into.spread(one) for one in cgutils.unpack_tuple(builder, args[2])]
            with cgutils.for_range(builder, count) as loop:
                along = builder.add(begin, builder.mul(loop.index, ir.Constant(_WORD, vector.count)))
                total = into.spread(0.0)
                for scale, (code, start) in zip(scales, terms, strict=True):
                    total = into.plus(total, into.times(scale, code.load(builder.add(start, along))))
                into.store(total, builder.add(args[1], along))
        return context.get_dummy_value()

    return signature, build


@intrinsic
def dots(typing, left, l, right, r, width):
    """Dot products of pairs of rows of ``width`` numbers, in one pass: a tuple."""
    signature = types.UniTuple(types.float32, len(left))(left, l, right, r, types.int64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        results = [ir.Constant(_FLOAT, 0.0)] * len(left)
        for vector, begin, count in _pieces(builder, args[4]):
            lefts, rights = (_sources(context, builder, sig, args, of, vector) for of in (0, 2))
            sums = [cgutils.alloca_once(builder, vector) for _ in lefts]
            for total, (code, _) in zip(sums, lefts, strict=True):
                builder.store(code.spread(0.0), total)  # where the call stands in a loop
            with cgutils.for_range(builder, count) as loop:
                along = builder.add(begin, builder.mul(loop.index, ir.Constant(_WORD, vector.count)))
                for total, pair in zip(sums, zip(lefts, rights, strict=True), strict=True):
                    one, other = (code.load(builder.add(start, along)) for code, start in pair)
                    code = pair[0][0]
                    builder.store(code.plus(builder.load(total), code.times(one, other)), total)
            results = [
                code.sum(builder.load(total), result)
                for (code, _), total, result in zip(lefts, sums, results, strict=True)
            ]
        return context.make_tuple(builder, sig.return_type, results)

    return signature, build
