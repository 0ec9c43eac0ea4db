"""BLAS and LAPACK routines, callable from compiled per-column code.

scipy exports the addresses of its BLAS and LAPACK; registering each under a name of our own lets numba
call it without the interpreter lock and still cache the compiled caller on disk (a raw pointer could not
be cached). Every matrix is square-strided and C-ordered here; the Fortran routines see the transpose, so
"lower" for LAPACK is the upper triangle for us and the other way round.
"""

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types
from numba.extending import get_cython_function_address

JIT = {"cache": True, "nogil": True, "error_model": "numpy"}
"""How per-column kernels are compiled: cached on disk, without the interpreter lock, IEEE division."""


SMALLEST_DIAGONAL = 1e-6
"""Below this a factorisation of something singular has passed by rounding alone."""


def _bind(name: str, arguments: int, module: str) -> Any:
    symbol = f"netpurify_{name}"
    llvm.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.cython_{module}", name))
    return types.ExternalFunction(symbol, types.void(*([types.voidptr] * arguments)))


_dpotrf = _bind("dpotrf", 5, "lapack")
_dpotrs = _bind("dpotrs", 8, "lapack")
_dpotri = _bind("dpotri", 5, "lapack")
_dgetrf = _bind("dgetrf", 6, "lapack")
_dgetri = _bind("dgetri", 7, "lapack")
_dsyrk = _bind("dsyrk", 10, "blas")


@njit(**JIT)
def cholesky(matrix):
    """Overwrite the upper triangle of a symmetric [n, n] array by R with R'R = matrix.

    True when the matrix, whose eigenvalues are at most 1, is safely positive definite.
    """
    uplo, n, info = np.full(1, 76, np.uint8), np.full(1, matrix.shape[0], np.int32), np.zeros(1, np.int32)
    _dpotrf(uplo.ctypes, n.ctypes, matrix.ctypes, n.ctypes, info.ctypes)
    return info[0] == 0 and np.diag(matrix).min() > SMALLEST_DIAGONAL


@njit(**JIT)
def cholesky_solve(factor, rhs):
    """Overwrite each row of ``rhs`` [m, n] by the solution for that row, given ``cholesky``'s factor."""
    uplo, n, info = np.full(1, 76, np.uint8), np.full(1, factor.shape[0], np.int32), np.zeros(1, np.int32)
    m = np.full(1, rhs.shape[0], np.int32)
    _dpotrs(uplo.ctypes, n.ctypes, m.ctypes, factor.ctypes, n.ctypes, rhs.ctypes, n.ctypes, info.ctypes)


@njit(**JIT)
def cholesky_inverse_trace(factor):
    """Trace of the inverse, given ``cholesky``'s factor, which is overwritten."""
    uplo, n, info = np.full(1, 76, np.uint8), np.full(1, factor.shape[0], np.int32), np.zeros(1, np.int32)
    _dpotri(uplo.ctypes, n.ctypes, factor.ctypes, n.ctypes, info.ctypes)
    return np.trace(factor)


@njit(**JIT)
def gram(rows, out, alpha, beta, inner):
    """Upper triangle of out = alpha * G + beta * out, with G = rows' rows (``inner``) or rows rows'.

    ``rows`` is [m, q], C-ordered; ``out`` is [q, q] or [m, m].
    """
    uplo = np.full(1, 76, np.uint8)
    trans = np.full(1, 78 if inner else 84, np.uint8)
    n, k = np.full(1, out.shape[0], np.int32), np.full(1, rows.shape[0] if inner else rows.shape[1], np.int32)
    lda = np.full(1, rows.shape[1], np.int32)
    a, b = np.full(1, alpha), np.full(1, beta)
    _dsyrk(
        uplo.ctypes, trans.ctypes, n.ctypes, k.ctypes, a.ctypes, rows.ctypes, lda.ctypes, b.ctypes, out.ctypes, n.ctypes
    )


@njit(**JIT)
def invert_chosen_rows(columns, names, weight):
    """Choose n independent rows of a tall matrix by LU with row pivoting and invert them.

    Args:
        columns: The matrix [m, n] given by its columns, [n, m]; afterwards ``columns[a, :n]`` is column a of the
            inverse of the chosen rows.
        names: A label for each row, [m]; reordered so that the first n are those of the chosen rows.
        weight: Reordered likewise.

    Returns:
        False when the rows have no n independent ones to working precision.
    """
    n, m = columns.shape
    rows, cols, info = np.full(1, m, np.int32), np.full(1, n, np.int32), np.zeros(1, np.int32)
    pivots = np.empty(n, np.int32)
    _dgetrf(rows.ctypes, cols.ctypes, columns.ctypes, rows.ctypes, pivots.ctypes, info.ctypes)
    if info[0] != 0:
        return False
    smallest, largest = np.inf, 0.0
    for a in range(n):
        smallest, largest = min(smallest, abs(columns[a, a])), max(largest, abs(columns[a, a]))
    if smallest < 1e-13 * largest:
        return False
    for a in range(n):
        b = pivots[a] - 1
        names[a], names[b] = names[b], names[a]
        weight[a], weight[b] = weight[b], weight[a]
        pivots[a] = a + 1  # the rows stay where the pivoting put them
    work = np.empty(64 * n)
    size = np.full(1, work.shape[0], np.int32)
    _dgetri(cols.ctypes, columns.ctypes, rows.ctypes, pivots.ctypes, work.ctypes, size.ctypes, info.ctypes)
    return info[0] == 0
