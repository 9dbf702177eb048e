"""Row arithmetic as explicit vector instructions, for the fused kernel (numba intrinsics).

Left to itself the compiler does not vectorise these short loops over four quantities that it must assume
to overlap. So each operation is written as the vector code it should be. A row of ``blocks * LANES``
numbers is stored as blocks of ``[value | m | s | gradient]``, LANES numbers each: value, Adam's first moment,
root of its second moment, gradient. One row is one run of memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fedrec.learn.adam import BETA_1, BETA_2, EPS

LANES = 8
STRIDE = 4 * LANES
"""Floats from one block of a row to its next."""
VALUE, FIRST, ROOT, GRADIENT = 0, LANES, 2 * LANES, 3 * LANES
"""Where the four quantities lie in a block."""

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_WORD = ir.IntType(64)
_FUSE = ("contract",)  # a * b + c in one rounding; divisions and roots stay correctly rounded


class Code:
    """A few words to write vector code with; vectors are of LANES numbers, or of as many as ``vector`` has."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any, vector: Any = _VECTOR) -> None:
        self.builder, self.vector = builder, vector
        self.data = context.make_array(array_type)(context, builder, array).data

    def element(self, offset: Any, inside: int = 0) -> Any:
        """Pointer to the number at ``offset + inside``."""
        index = self.builder.add(offset, ir.Constant(_WORD, inside)) if inside else offset
        return self.builder.gep(self.data, [index])

    def place(self, offset: Any, inside: int = 0) -> Any:
        """Pointer to the vector that begins there."""
        return self.builder.bitcast(self.element(offset, inside), self.vector.as_pointer())

    def load(self, offset: Any, inside: int = 0) -> Any:
        return self.builder.load(self.place(offset, inside), align=4)

    def store(self, vector: Any, offset: Any, inside: int = 0) -> None:
        self.builder.store(vector, self.place(offset, inside), align=4)

    def spread(self, number: Any) -> Any:
        """A number, in every lane."""
        if isinstance(number, float):
            return ir.Constant(self.vector, [number] * self.vector.count)
        nothing = ir.Constant(self.vector, ir.Undefined)
        single = self.builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.vector.count), [0] * self.vector.count)
        return self.builder.shuffle_vector(single, nothing, lanes)

    def times(self, left: Any, right: Any) -> Any:
        return self.builder.fmul(left, right, flags=_FUSE)

    def plus(self, left: Any, right: Any) -> Any:
        return self.builder.fadd(left, right, flags=_FUSE)

    def minus(self, left: Any, right: Any) -> Any:
        return self.builder.fsub(left, right, flags=_FUSE)

    def over(self, left: Any, right: Any) -> Any:
        return self.builder.fdiv(left, right)

    def root(self, vector: Any) -> Any:
        kind = ir.FunctionType(self.vector, [self.vector])
        root = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.sqrt.v{self.vector.count}f32")
        return self.builder.call(root, [vector])

    def sum(self, vector: Any, start: Any = ir.Constant(_FLOAT, 0.0)) -> Any:
        """All lanes of a vector, added up as a tree: the order is fixed here, so every machine rounds alike."""
        kind, name = ir.FunctionType(_FLOAT, [_FLOAT, self.vector]), f"llvm.vector.reduce.fadd.v{self.vector.count}f32"
        reduce = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(reduce, [start, vector], fastmath=("reassoc",))

    def each_block(self, blocks: Any) -> Any:
        return cgutils.for_range(self.builder, blocks)

    def advanced(self, offset: Any, index: Any) -> Any:
        """Offset of block ``index`` of the row at ``offset``."""
        return self.builder.add(offset, self.builder.mul(index, ir.Constant(_WORD, STRIDE)))


def adam_moved(code: Code, o: Any, g: Any, value: Any, size: Any, scale: Any) -> None:
    """Adam's step of one block with gradient ``g``."""
    s = code.load(o, ROOT)
    m = code.plus(code.times(code.spread(BETA_1), code.load(o, FIRST)), code.times(code.spread(1 - BETA_1), g))
    square = code.plus(
        code.times(code.spread(BETA_2), code.times(s, s)), code.times(code.spread(1 - BETA_2), code.times(g, g))
    )
    s = code.root(square)
    move = code.over(code.times(size, m), code.plus(code.times(s, scale), code.spread(EPS)))
    code.store(code.minus(value, move), o, VALUE)
    code.store(m, o, FIRST)
    code.store(s, o, ROOT)


@intrinsic
def adam_step(typing, state, offset, blocks, size, scale):
    """One Adam step of a row: ``value -= size m / (scale s + eps)`` with the moments brought forward."""
    signature = types.void(state, types.uint64, types.uint64, types.float32, types.float32)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code = Code(context, builder, sig.args[0], args[0])
        size_, scale_ = code.spread(args[3]), code.spread(args[4])
        with code.each_block(args[2]) as loop:
            o = code.advanced(args[1], loop.index)
            adam_moved(code, o, code.load(o, GRADIENT), code.load(o, VALUE), size_, scale_)
        return context.get_dummy_value()

    return signature, build


@intrinsic
def adam_gap(typing, state, offset, blocks, a, eps, decay_m, decay_s):
    """The Adam steps of a row since its last gradient, in one go (see :mod:`fedrec.learn.adam`)."""
    signature = types.void(state, types.uint64, types.uint64, *[types.float32] * 4)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code = Code(context, builder, sig.args[0], args[0])
        a_, eps_, decay_m_, decay_s_ = (code.spread(number) for number in args[3:])
        with code.each_block(args[2]) as loop:
            o = code.advanced(args[1], loop.index)
            m, s = code.load(o, FIRST), code.load(o, ROOT)
            move = code.over(code.times(a_, m), code.plus(s, eps_))
            code.store(code.minus(code.load(o, VALUE), move), o, VALUE)
            code.store(code.times(m, decay_m_), o, FIRST)
            code.store(code.times(s, decay_s_), o, ROOT)
        return context.get_dummy_value()

    return signature, build


@intrinsic
def add_scaled(typing, state, into, factor, source, blocks):
    """``state[into] += factor * state[source]``, blockwise; offsets say which of the four quantities."""
    signature = types.void(state, types.uint64, types.float32, types.uint64, types.uint64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code = Code(context, builder, sig.args[0], args[0])
        factor_ = code.spread(args[2])
        with code.each_block(args[4]) as loop:
            o, p = code.advanced(args[1], loop.index), code.advanced(args[3], loop.index)
            code.store(code.plus(code.load(o), code.times(factor_, code.load(p))), o)
        return context.get_dummy_value()

    return signature, build


@intrinsic
def placed(typing, state, offset, source, at):
    """Put LANES numbers, ``source[at:]``, into the block at ``offset``, with moments of zero."""
    signature = types.void(state, types.uint64, source, types.int64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code, given = Code(context, builder, sig.args[0], args[0]), Code(context, builder, sig.args[2], args[2])
        for inside, vector in ((VALUE, given.load(args[3])), (FIRST, code.spread(0.0)), (ROOT, code.spread(0.0))):
            code.store(vector, args[1], inside)
        return context.get_dummy_value()

    return signature, build


@intrinsic
def changed(typing, state, offset, source, at, into):
    """``into[at:] = value - source[at:]`` for the LANES numbers of the block at ``offset``."""
    signature = types.void(state, types.uint64, source, types.int64, into)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code, given, out = (Code(context, builder, sig.args[n], args[n]) for n in (0, 2, 4))
        out.store(code.minus(code.load(args[1]), given.load(args[3])), args[3])
        return context.get_dummy_value()

    return signature, build


@intrinsic
def clear(typing, state, offset, blocks):
    """``state[offset] = 0``, blockwise."""
    signature = types.void(state, types.uint64, types.uint64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code = Code(context, builder, sig.args[0], args[0])
        with code.each_block(args[2]) as loop:
            code.store(code.spread(0.0), code.advanced(args[1], loop.index))
        return context.get_dummy_value()

    return signature, build


@intrinsic
def dot(typing, state, left, right, blocks):
    """Dot product of the values of two rows."""
    signature = types.float32(state, types.uint64, types.uint64, types.uint64)

    def build(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        code = Code(context, builder, sig.args[0], args[0])
        total = cgutils.alloca_once_value(builder, code.spread(0.0))
        builder.store(code.spread(0.0), total)
        with code.each_block(args[3]) as loop:
            o, p = code.advanced(args[1], loop.index), code.advanced(args[2], loop.index)
            builder.store(code.plus(builder.load(total), code.times(code.load(o), code.load(p))), total)
        return code.sum(builder.load(total))

    return signature, build
