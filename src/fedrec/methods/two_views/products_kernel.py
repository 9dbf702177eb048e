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

LANES = 16
ROWS, WIDE = 4, 2 * LANES
"""What one tile of a result covers."""

_WORD, _INDEX, _FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_FUSE = ("contract",)  # a * b + c in one rounding


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Where an array's numbers begin."""
    return context.make_array(kind)(context, builder, array).data


def _place(builder: Any, data: Any, at: Any, vector: Any = _VECTOR) -> Any:
    """Pointer to a vector ``at`` numbers from the beginning."""
    return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())


def _spread(builder: Any, number: Any, vector: Any = _VECTOR) -> Any:
    """A number, in every lane."""
    nothing = ir.Constant(vector, ir.Undefined)
    single = builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(single, nothing, ir.Constant(ir.VectorType(_INDEX, vector.count), [0] * vector.count))


def _tile(rows: int, vectors: int) -> Any:
    """``tile(out, o, left, l, right, r, count)``: ``rows`` x ``vectors * LANES`` numbers of ``out += left @ right``.

    ``o``, ``l``, ``r`` say where each begins: ``(offset, step from row to row)``; the left one has a step from column
    to column, too.
    """

    @intrinsic
    def tile(typing, out, o, left, l, right, r, count):
        signature = types.void(out, o, left, l, right, r, types.int64)

        def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            into, factors, values = (_data(context, builder, sig.args[i], args[i]) for i in (0, 2, 4))
            (o_at, o_row), (l_at, l_row, l_column), (r_at, r_row) = (
                cgutils.unpack_tuple(builder, args[i]) for i in (1, 3, 5)
            )

            def moved(at: Any, step: Any, by: int) -> Any:
                return builder.add(at, builder.mul(step, ir.Constant(_WORD, by)))

            def vector(data: Any, at: Any, number: int) -> Any:
                return _place(builder, data, builder.add(at, ir.Constant(_WORD, number * LANES)))

            places = [vector(into, moved(o_at, o_row, i), k) for i in range(rows) for k in range(vectors)]
            sums = [cgutils.alloca_once(builder, _VECTOR) for _ in places]
            for place, total in zip(places, sums, strict=True):
                builder.store(builder.load(place, align=4), total)
            with cgutils.for_range(builder, args[6]) as loop:
                at = builder.add(r_at, builder.mul(loop.index, r_row))
                terms = [builder.load(vector(values, at, k), align=4) for k in range(vectors)]
                at = builder.add(l_at, builder.mul(loop.index, l_column))
                for i in range(rows):
                    factor = builder.load(builder.gep(factors, [moved(at, l_row, i)]))
                    factor = _spread(builder, factor)
                    for k, term in enumerate(terms):
                        total = sums[i * vectors + k]
                        product = builder.fmul(factor, term, flags=_FUSE)
                        builder.store(builder.fadd(builder.load(total), product, flags=_FUSE), total)
            for place, total in zip(places, sums, strict=True):
                builder.store(builder.load(total), place, align=4)
            return context.get_dummy_value()

        return signature, build

    return tile


_large, _broad, _row, _single = _tile(ROWS, 2), _tile(ROWS, 1), _tile(1, 2), _tile(1, 1)


_table = types.float32[:, ::1]


@njit(types.void(_table, types.float32[:, :], _table), cache=True, nogil=True, error_model="numpy", fastmath=set(_FUSE))
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
    return [
        (_VECTOR, ir.Constant(_WORD, 0), whole),
        (ir.VectorType(_FLOAT, 1), begin, builder.sub(width, begin)),
    ]


def _sources(context: Any, builder: Any, sig: Any, args: Any, of: int) -> list[tuple[Any, Any]]:
    """A tuple of arrays and one of offsets that follows it: data and offset of each."""
    arrays, starts = cgutils.unpack_tuple(builder, args[of]), cgutils.unpack_tuple(builder, args[of + 1])
    data = [_data(context, builder, kind, one) for kind, one in zip(sig.args[of], arrays, strict=True)]
    return list(zip(data, starts, strict=True))


@intrinsic
def mix(typing, out, o, factors, sources, offsets, width):
    """``out[o :] = sum of factor * source[offset :]`` over ``width`` numbers; ``out`` may be one of the sources."""
    signature = types.void(out, types.int64, factors, sources, offsets, types.int64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, factors_ = _data(context, builder, sig.args[0], args[0]), cgutils.unpack_tuple(builder, args[2])
        terms = _sources(context, builder, sig, args, 3)
        for vector, begin, count in _pieces(builder, args[5]):
            scales = [_spread(builder, one, vector) for one in factors_]
            with cgutils.for_range(builder, count) as loop:
                along = builder.add(begin, builder.mul(loop.index, ir.Constant(_WORD, vector.count)))
                total = ir.Constant(vector, [0.0] * vector.count)
                for scale, (data, start) in zip(scales, terms, strict=True):
                    value = builder.load(_place(builder, data, builder.add(start, along), vector), align=4)
                    total = builder.fadd(total, builder.fmul(scale, value, flags=_FUSE), flags=_FUSE)
                builder.store(total, _place(builder, into, builder.add(args[1], along), vector), align=4)
        return context.get_dummy_value()

    return signature, build


@intrinsic
def dots(typing, left, l, right, r, width):
    """Dot products of pairs of rows of ``width`` numbers, in one pass: a tuple."""
    signature = types.UniTuple(types.float32, len(left))(left, l, right, r, types.int64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pairs = list(
            zip(_sources(context, builder, sig, args, 0), _sources(context, builder, sig, args, 2), strict=True)
        )
        results = [ir.Constant(_FLOAT, 0.0)] * len(pairs)
        for vector, begin, count in _pieces(builder, args[4]):
            zero = ir.Constant(vector, [0.0] * vector.count)
            sums = [cgutils.alloca_once_value(builder, zero) for _ in pairs]
            for total in sums:
                builder.store(zero, total)  # where the call stands in a loop
            with cgutils.for_range(builder, count) as loop:
                along = builder.add(begin, builder.mul(loop.index, ir.Constant(_WORD, vector.count)))
                for total, pair in zip(sums, pairs, strict=True):
                    one, other = (
                        builder.load(_place(builder, data, builder.add(start, along), vector), align=4)
                        for data, start in pair
                    )
                    product = builder.fmul(one, other, flags=_FUSE)
                    builder.store(builder.fadd(builder.load(total), product, flags=_FUSE), total)
            kind = ir.FunctionType(_FLOAT, [_FLOAT, vector])
            name = f"llvm.vector.reduce.fadd.v{vector.count}f32"
            reduce = cgutils.get_or_insert_function(builder.module, kind, name)
            results = [
                builder.call(reduce, [result, builder.load(total)], fastmath=("reassoc",))
                for result, total in zip(results, sums, strict=True)
            ]
        return context.make_tuple(builder, sig.return_type, results)

    return signature, build
