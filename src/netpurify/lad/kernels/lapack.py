"""BLAS and LAPACK routines, callable from compiled per-column code.

scipy exports the addresses of its BLAS and LAPACK; registering each under a name of our own lets numba
call it without the interpreter lock and still cache the compiled caller on disk (a raw pointer could not
be cached). Every matrix is square-strided and C-ordered here; the Fortran routines see the transpose, so
"lower" for LAPACK is the upper triangle for us and the other way round.
"""

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.extending import get_cython_function_address

from netpurify.lad.kernels.compiled import inner


def _bind(name: str, arguments: int, module: str) -> Any:
    symbol = f"netpurify_{name}"
    llvm.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.cython_{module}", name))
    return types.ExternalFunction(symbol, types.void(*([types.voidptr] * arguments)))


_dgetrf = _bind("dgetrf", 6, "lapack")
_dgetri = _bind("dgetri", 7, "lapack")
_dgemv = _bind("dgemv", 11, "blas")

_LOWER, _NO_TRANSPOSE, _TRANSPOSE = 76, 78, 84
"""The letters L, N and T."""


@inner
def _letter(code):
    """A letter as LAPACK wants it: by its address."""
    letter = np.empty(1, np.uint8)
    letter[0] = code
    return letter


@inner
def _whole(value):
    """A whole number as LAPACK wants it: by its address."""
    number = np.empty(1, np.int32)
    number[0] = value
    return number


@inner
def _real(value):
    """A real number as LAPACK wants it: by its address."""
    number = np.empty(1, np.float64)
    number[0] = value
    return number


@inner
def _matrix_times_vector(transpose, matrix, vector, out):
    rows, columns, one = _whole(matrix.shape[0]), _whole(matrix.shape[1]), _whole(1)
    _dgemv(
        transpose.ctypes, columns.ctypes, rows.ctypes, _real(1.0).ctypes, matrix.ctypes, columns.ctypes,
        vector.ctypes, one.ctypes, _real(0.0).ctypes, out.ctypes, one.ctypes,
    )  # fmt: skip


@inner
def multiply(matrix, vector, out):
    """Overwrite ``out`` by matrix @ vector, for a C-ordered matrix."""
    _matrix_times_vector(_letter(_TRANSPOSE), matrix, vector, out)


@inner
def multiply_transposed(matrix, vector, out):
    """Overwrite ``out`` by matrix' @ vector, for a C-ordered matrix."""
    _matrix_times_vector(_letter(_NO_TRANSPOSE), matrix, vector, out)


@inner
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
    rows, cols, info = _whole(m), _whole(n), _whole(0)
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
    _dgetri(
        cols.ctypes, columns.ctypes, rows.ctypes, pivots.ctypes, work.ctypes, _whole(work.shape[0]).ctypes, info.ctypes
    )
    return info[0] == 0
