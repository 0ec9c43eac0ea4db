"""Cholesky factorisations of each column's own small matrix, and what is solved with them.

Matrices are [n, n] in float64 with n a multiple of 8; what a matrix has less is filled up with the identity. Only their
upper triangles are read. LAPACK's small factorisations are slower, and their bits depend on the processor.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner
from netpurify.lad.kernels.rows import add_row, dot
from netpurify.lad.kernels.tiles import ROWS, subtract_block

SMALLEST_DIAGONAL = 1e-6
"""Below this a factorisation of something singular has passed by rounding alone."""
SIDES = 8
"""Right-hand sides that are solved for together: as many as a vector holds."""
_DEPTH = 64
"""Rows that stay in the cache while a Gram matrix is built."""


@inner
def gram(rows, count, rank, complement, out):
    """Overwrite the upper triangle of ``out`` by R'R, or by I - R'R: the ``complement``.

    R are the first ``count`` of ``rows`` [m, n], of which all but ``rank`` columns are zero; there ``out`` is I.
    """
    turned, columns = rows.T, rows.shape[1]
    for a in range(columns):
        for c in range(a, columns):
            out[a, c] = 1.0 if a == c and complement else 0.0
    for low in range(0, count, _DEPTH):
        high = min(low + _DEPTH, count)
        for i in range(0, columns, ROWS):
            subtract_block(turned, rows, out, i, i, columns, low, high)
    if not complement:
        for a in range(columns):
            for c in range(a, columns):
                out[a, c] = -out[a, c]
    for a in range(rank, columns):
        out[a, a] = 1.0


@inner
def cholesky(matrix):
    """Overwrite the upper triangle by R with R'R = matrix.

    True when the matrix, whose eigenvalues are at most 1, is safely positive definite.
    """
    turned, columns, first = matrix.T, matrix.shape[0], np.int64(0)
    for low in range(0, columns, ROWS):
        subtract_block(turned, matrix, matrix, low, low, columns, first, low)
        for a in range(low, low + ROWS):
            for b in range(low, a):
                add_row(matrix[a], -matrix[b, a], matrix[b], a)
            if not matrix[a, a] > SMALLEST_DIAGONAL * SMALLEST_DIAGONAL:
                return False
            _scale(matrix[a], 1.0 / np.sqrt(matrix[a, a]), a)
    return True


@inner
def cholesky_solve(factor, right):
    """Overwrite the columns of ``right`` [n, ``SIDES``] by their solutions, given ``cholesky``'s factor."""
    turned, columns, first, sides = factor.T, factor.shape[0], np.int64(0), np.int64(SIDES)
    for low in range(0, columns, ROWS):
        subtract_block(turned, right, right, low, first, sides, first, low)
        for a in range(low, low + ROWS):
            for b in range(low, a):
                _subtract_side(right, a, factor[b, a], b)
            _divide_side(right, a, factor[a, a])
    for low in range(columns - ROWS, -1, -ROWS):
        subtract_block(factor, right, right, low, first, sides, low + ROWS, columns)
        for a in range(low + ROWS - 1, low - 1, -1):
            for b in range(a + 1, low + ROWS):
                _subtract_side(right, a, factor[a, b], b)
            _divide_side(right, a, factor[a, a])


@inner
def cholesky_inverse_trace(factor, count):
    """The trace of the inverse's first ``count`` rows, given ``cholesky``'s factor: the sum of squares in R^-1."""
    columns, trace = factor.shape[0], 0.0
    inverse = np.zeros((columns, columns))
    for low in range(columns - ROWS, -1, -ROWS):
        for a in range(low, low + ROWS):
            inverse[a, a] = 1.0
        if low + ROWS < columns:
            subtract_block(factor, inverse, inverse, low, low + ROWS, columns, low + ROWS, columns)
        for a in range(low + ROWS - 1, low - 1, -1):
            for b in range(a + 1, low + ROWS):
                add_row(inverse[a], -factor[a, b], inverse[b], b)
            _scale(inverse[a], 1.0 / factor[a, a], a)
            if a < count:
                trace += dot(inverse[a], inverse[a], a)
    return trace


@inner
def _subtract_side(right, a, factor, b):
    for c in range(SIDES):
        right[a, c] -= factor * right[b, c]


@inner
def _divide_side(right, a, divisor):
    for c in range(SIDES):
        right[a, c] /= divisor


@inner
def _scale(row, factor, start):
    for c in range(start, row.size):
        row[c] *= factor
