"""The building block of all dense kernels: a small block of a matrix product, kept in vector registers.

LLVM turns plain loops over a matrix product into code that is two to three times slower than BLAS, because it neither
keeps a block of sums in registers nor uses the widest vectors of some processors. So this one block is spelled out
for it. Every sum is made in the order of the inner index, one fused multiplication and addition at a time (without
fusing where the processor has no such instruction): its bits depend on nothing but the numbers that it multiplies.
"""

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from netpurify.lad.kernels.compiled import inner

_settings: Any = config
_named = _settings.CPU_FEATURES
_FEATURES = llvm.get_host_cpu_features().flatten() if _named is None else _named
_WIDE = "+avx512f" in _FEATURES.split(",")
ROWS, VECTORS, VECTOR_BYTES = (8, 2, 64) if _WIDE else (4, 2, 32)
"""Rows and vectors of a block, and bytes of a vector: as many sums as fit into the registers."""


def tile(vectors: int, *, width: int = VECTOR_BYTES, subtract: bool = False) -> Any:
    """A compiled function that adds a block of a product to a matrix.

    It is called with ``(left, right, out, i, j, low, high)`` and adds the product of left[i : i + ROWS, low:high] and
    right[low:high, j : j + n] to out[i : i + ROWS, j : j + n]; n is ``vectors`` times the numbers in ``width`` bytes.
    Rows of ``right`` and ``out`` must be contiguous; ``left`` may have any strides.

    Args:
        vectors: How many vectors wide the block is.
        width: Bytes of a vector.
        subtract: Whether to subtract instead.
    """

    @intrinsic
    def run(_context, left, right, out, i, j, low, high):  # noqa: ARG001 - the last four are whole numbers
        whole = types.intp
        signature = types.void(left, right, out, whole, whole, whole, whole)

        def generate(context, builder, _signature, arguments):
            block = _Block(context, builder, left.dtype, width)
            kinds = zip((left, right, out), arguments[:3], strict=True)
            arrays = [cgutils.create_struct_proxy(kind)(context, builder, value) for kind, value in kinds]
            block.multiply(arrays, arguments[3:], vectors=vectors, subtract=subtract)
            return context.get_dummy_value()

        return signature, generate

    return run


class _Block:
    """Writes the instructions of one block."""

    def __init__(self, context: Any, builder: Any, number: Any, width: int) -> None:
        self.builder = builder
        self.size = number.bitwidth // 8
        self.lanes = width // self.size
        self.vector = ir.VectorType(context.get_value_type(number), self.lanes)
        name = f"llvm.fmuladd.v{self.lanes}f{number.bitwidth}"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        self.multiply_add = cgutils.get_or_insert_function(builder.module, kind, name)

    def multiply(self, arrays: Any, place: Any, *, vectors: int, subtract: bool) -> None:
        """Write the block: left, right and out, and the numbers i, j, low and high."""
        (left, right, out), (i, j, low, high) = arrays, place
        builder, whole = self.builder, low.type
        zero = ir.Constant(self.vector, None)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(ROWS)]
        rows = [builder.add(i, whole(a)) for a in range(ROWS)]
        with cgutils.for_range_slice(builder, low, high, whole(1), whole) as (k, _):
            ahead = [self._vector(right, k, j, v) for v in range(vectors)]
            for a in range(ROWS):
                factor = self._spread(self._number(left, rows[a], k))
                for v in range(vectors):
                    value = builder.load(sums[a][v])
                    value = builder.call(self.multiply_add, [factor, self._load(ahead[v]), value])
                    builder.store(value, sums[a][v])
        combine = builder.fsub if subtract else builder.fadd
        for a in range(ROWS):
            for v in range(vectors):
                place = self._vector(out, rows[a], j, v)
                stored = builder.store(combine(self._load(place), builder.load(sums[a][v])), place)
                stored.align = self.size

    def _address(self, array: Any, i: Any, j: Any) -> Any:
        """Address of the element [i, j]."""
        builder = self.builder
        down, along = (builder.sdiv(step, i.type(self.size)) for step in cgutils.unpack_tuple(builder, array.strides))
        return builder.gep(array.data, [builder.add(builder.mul(i, down), builder.mul(j, along))])

    def _number(self, array: Any, i: Any, j: Any) -> Any:
        return self.builder.load(self._address(array, i, j))

    def _vector(self, array: Any, i: Any, j: Any, v: int) -> Any:
        """Address of the v-th vector from the element [i, j] on."""
        start = self._address(array, i, self.builder.add(j, j.type(v * self.lanes)))
        return self.builder.bitcast(start, self.vector.as_pointer())

    def _load(self, place: Any) -> Any:
        loaded = self.builder.load(place)
        loaded.align = self.size
        return loaded

    def _spread(self, number: Any) -> Any:
        """A vector that holds ``number`` everywhere."""
        anything = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(anything, number, ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None)
        return self.builder.shuffle_vector(first, anything, everywhere)


_block, _vector, _narrow = tile(VECTORS, subtract=True), tile(1, subtract=True), tile(1, width=32, subtract=True)


@inner
def subtract_block(left, right, out, i, start, stop, low, high):
    """Subtract left[i : i + ROWS, low:high] times right[low:high, start:stop] from out[i : i + ROWS, start:stop].

    ``stop - start`` must be a multiple of 32 bytes.
    """
    lanes, j = VECTOR_BYTES // out.itemsize, start
    while j + VECTORS * lanes <= stop:
        _block(left, right, out, i, j, low, high)
        j += VECTORS * lanes
    while j + lanes <= stop:
        _vector(left, right, out, i, j, low, high)
        j += lanes
    while j < stop:
        _narrow(left, right, out, i, j, low, high)
        j += 32 // out.itemsize
