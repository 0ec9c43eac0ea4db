"""Matrix products whose bits depend on nothing but the numbers multiplied.

BLAS computes the rows of a product in different ways, depending on where in the matrix they stand, and which rows
differ depends on the processor: OpenBLAS's float32 kernels for processors without AVX-512 give other bits for half of
the rows. Here every element of a product is a sum in one fixed order: runs of 64 products in the order of the inner
index, and then the sums of the runs, each multiplication and each addition rounded by itself. An element is therefore
the same to the bit wherever its row stands and whatever the other rows are, on every processor.

The loops take four rows of the left factor and four of the right one at a time, which the compiler keeps in vector
registers. ``benchmarks/product.py`` compares the speed with that of BLAS.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.kernels.compiled import kernel

_TILE = 4
"""Rows of each factor that are worked on together."""
_DEPTH = 64
"""Rows of the right factor that stay in the cache while all rows of the left factor pass over them.

Sums over so many rows are made by themselves and then added, which also keeps the rounding of long sums small.
"""

Real = TypeVar("Real", bound=np.floating)


def product(left: NDArray[Real], right: NDArray[Real]) -> NDArray[Real]:
    """``left`` [n, m] times ``right`` [m, p], of one dtype; m must be a multiple of 4, ``right`` C-ordered."""
    count, inner = left.shape
    if inner % _TILE or inner != right.shape[0]:
        raise ValueError(
            f"factors must be [n, m] and [m, p] with m a multiple of {_TILE}; got {left.shape}, {right.shape}"
        )
    rows = -(-count // _TILE) * _TILE
    if rows != count:
        left = np.concatenate((left, np.zeros((rows - count, inner), left.dtype)))
    out = np.zeros((rows, right.shape[1]), left.dtype)
    _multiply(np.ascontiguousarray(left), right, out)
    return out[:count]


@kernel
def _multiply(left, right, out):
    """Add ``left`` times ``right`` to ``out``; without fast-math flags the compiler keeps the order of additions."""
    part = np.empty((_TILE, right.shape[1]), out.dtype)
    for low in range(0, left.shape[1], _DEPTH):
        for i in range(0, left.shape[0], _TILE):
            for a in range(_TILE):
                for j in range(right.shape[1]):
                    part[a, j] = 0.0
            for k in range(low, min(low + _DEPTH, left.shape[1]), _TILE):
                a0, a1, a2, a3 = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
                b0, b1, b2, b3 = left[i + 1, k], left[i + 1, k + 1], left[i + 1, k + 2], left[i + 1, k + 3]
                c0, c1, c2, c3 = left[i + 2, k], left[i + 2, k + 1], left[i + 2, k + 2], left[i + 2, k + 3]
                d0, d1, d2, d3 = left[i + 3, k], left[i + 3, k + 1], left[i + 3, k + 2], left[i + 3, k + 3]
                for j in range(right.shape[1]):
                    x, y, z, w = right[k, j], right[k + 1, j], right[k + 2, j], right[k + 3, j]
                    part[0, j] = (((part[0, j] + a0 * x) + a1 * y) + a2 * z) + a3 * w
                    part[1, j] = (((part[1, j] + b0 * x) + b1 * y) + b2 * z) + b3 * w
                    part[2, j] = (((part[2, j] + c0 * x) + c1 * y) + c2 * z) + c3 * w
                    part[3, j] = (((part[3, j] + d0 * x) + d1 * y) + d2 * z) + d3 * w
            for a in range(_TILE):
                for j in range(right.shape[1]):
                    out[i + a, j] += part[a, j]
