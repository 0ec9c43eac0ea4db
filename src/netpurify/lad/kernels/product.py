"""Matrix products whose bits depend on nothing but the numbers multiplied.

BLAS computes the rows of a product in different ways, depending on where in the matrix they stand, and which rows
differ depends on the processor: OpenBLAS's float32 kernels for processors without AVX-512 give other bits for half of
the rows. Here every element of a product is a sum in one fixed order: runs of 64 products in the order of the inner
index, and then the sums of the runs. An element is therefore the same to the bit wherever its row stands and whatever
the other rows are. Only whether a multiplication and its addition are rounded once or twice depends on the processor.

The loops are made of blocks that stay in vector registers (``tiles``). ``benchmarks/product.py`` compares the speed
with that of BLAS.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.tiles import ROWS, VECTOR_BYTES, VECTORS, tile

_DEPTH = 64
"""Rows of the right factor that stay in the cache while all rows of the left factor pass over them.

Sums over so many rows are made by themselves and then added, which also keeps the rounding of long sums small.
"""
_TILE = 8
"""Rows of the left factor and columns of the right one come in multiples of this."""
_block, _vector, _narrow = tile(VECTORS), tile(1), tile(1, width=32)

Real = TypeVar("Real", bound=np.floating)


def product(left: NDArray[Real], right: NDArray[Real]) -> NDArray[Real]:
    """``left`` [n, m] times ``right`` [m, p], of one dtype; factors are copied unless n and p are multiples of 8."""
    (count, depth), width = left.shape, right.shape[1]
    if depth != right.shape[0]:
        raise ValueError(f"factors must be [n, m] and [m, p]; got {left.shape}, {right.shape}")
    left, right = _whole_tiles(left, 0), _whole_tiles(right, 1)
    out = np.zeros((left.shape[0], right.shape[1]), left.dtype)
    _multiply(left, right, out)
    return out[:count, :width]


def _whole_tiles(factor: NDArray[Real], axis: int) -> NDArray[Real]:
    """``factor``, C-ordered, followed by zeros up to a multiple of 8 along ``axis``."""
    lacking = -factor.shape[axis] % _TILE
    if lacking:
        shape = (lacking, factor.shape[1]) if axis == 0 else (factor.shape[0], lacking)
        factor = np.concatenate((factor, np.zeros(shape, factor.dtype)), axis=axis)
    return np.ascontiguousarray(factor)


@kernel
def _multiply(left, right, out):
    add_product(left, right, out)


@inner
def add_product(left, right, out):
    """Add ``left`` times ``right`` to ``out``: rows in multiples of ``ROWS``, columns in multiples of 32 bytes."""
    columns, lanes = right.shape[1], VECTOR_BYTES // out.itemsize
    for low in range(0, left.shape[1], _DEPTH):
        high, j = min(low + _DEPTH, left.shape[1]), 0
        while j < columns:
            rest = columns - j
            for i in range(0, left.shape[0], ROWS):
                if rest >= VECTORS * lanes:
                    _block(left, right, out, i, j, low, high)
                elif rest >= lanes:
                    _vector(left, right, out, i, j, low, high)
                else:
                    _narrow(left, right, out, i, j, low, high)
            j += VECTORS * lanes if rest >= VECTORS * lanes else min(lanes, rest)
