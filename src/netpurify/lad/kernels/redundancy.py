"""Compiled loops by which a ``Design`` answers the verifier's questions about its rows."""

import numpy as np

from netpurify.lad.kernels.cholesky import SIDES, cholesky, cholesky_inverse_trace, cholesky_solve, gram
from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.rows import add_row, dot


@kernel
def smallest_left_over(basis, rank, block, chosen, irregular, orthogonal, smallest):
    """Project irregular numbers on the chosen rows orthogonally to the columns; find each column's smallest entry.

    There are two vectors of these numbers, and of each row the larger of its two entries counts.

    Args:
        basis: Orthonormal basis Q, padded to multiples of 8 rows and columns.
        rank: How many of its columns are not zero.
        block: I - QQ', or empty where that would be too large.
        chosen: The rows, [p, rows].
        irregular: The numbers, [2, rows].
        orthogonal: Their part orthogonal to the basis, [2, >= rows].
        smallest: Receives the entries, [p]: 0 where the chosen rows have no redundancy, and infinity at rank 0.
    """
    rows = chosen.shape[1]
    others = np.empty(rows, np.int64)
    for i in range(chosen.shape[0]):
        count = 0
        for j in range(rows):
            if not chosen[i, j]:
                others[count] = j
                count += 1
        if rows - count <= rank:
            continue
        if rank == 0:
            smallest[i] = np.inf
        elif count <= rank and block.shape[0]:
            smallest[i] = _through_others(block, orthogonal, chosen[i], others[:count])
        else:
            smallest[i] = _through_columns(basis, rank, chosen[i], rows - count, irregular)


@inner
def _through_others(block, orthogonal, chosen, others):
    """The smallest entry by the rows that are not chosen: what they must take up so that the rest is orthogonal."""
    count, rows = others.size, chosen.size
    size = -(-count // 8) * 8
    matrix, right = np.empty((size, size)), np.zeros((size, SIDES))
    left_over = orthogonal[:, :rows].copy()
    for a in range(size):
        for b in range(a, size):
            matrix[a, b] = 1.0 if a == b else 0.0
    for a in range(count):
        right[a, 0], right[a, 1] = orthogonal[0, others[a]], orthogonal[1, others[a]]
        for b in range(a, count):
            matrix[a, b] = block[others[a], others[b]]
    if not cholesky(matrix):
        return 0.0
    cholesky_solve(matrix, right)
    for a in range(count):
        for v in range(2):
            add_row(left_over[v], -right[a, v], block[others[a]], 0)
    smallest = np.inf
    for j in range(rows):
        if chosen[j]:
            smallest = min(smallest, max(abs(left_over[0, j]), abs(left_over[1, j])))
    return smallest


@inner
def _through_columns(basis, rank, chosen, count, irregular):
    """The smallest entry by the Gram matrix of the chosen rows: I minus that of the others, whichever are fewer."""
    rows, width = chosen.size, basis.shape[1]
    others = 2 * count > rows
    picked, taken = np.empty((min(count, rows - count), width)), np.int64(0)
    matrix, right = np.empty((width, width)), np.zeros((width, SIDES))
    projection = np.zeros((2, width))
    for j in range(rows):
        if chosen[j] != others:
            picked[taken] = basis[j]
            taken += 1
        if chosen[j]:
            for v in range(2):
                add_row(projection[v], irregular[v, j], basis[j], 0)
    for a in range(width):
        right[a, 0], right[a, 1] = projection[0, a], projection[1, a]
    gram(picked, taken, rank, others, matrix)
    if not cholesky(matrix):
        return 0.0
    cholesky_solve(matrix, right)
    for a in range(width):
        projection[0, a], projection[1, a] = right[a, 0], right[a, 1]
    smallest = np.inf
    for j in range(rows):
        if chosen[j]:
            first = abs(irregular[0, j] - dot(projection[0], basis[j], 0))
            second = abs(irregular[1, j] - dot(projection[1], basis[j], 0))
            smallest = min(smallest, max(first, second))
    return smallest


@kernel
def strictly_inside(basis, rank, dual, proven, unique, stability):
    """Uniqueness and stability from the rows whose dual lies strictly between -1 and 1; ``basis`` is padded."""
    rows, width = dual.shape[1], basis.shape[1]
    weighted = np.empty((rows, width))
    matrix = np.empty((width, width))
    for i in range(dual.shape[0]):
        count = np.int64(0)
        for j in range(rows):
            room = 1.0 - abs(dual[i, j])
            if room > 1e-10:
                for c in range(width):
                    weighted[count, c] = room * basis[j, c]
                count += 1
        if not proven[i] or count < rank:
            continue
        if rank == 0:
            unique[i], stability[i] = True, 0.0
            continue
        gram(weighted, count, rank, False, matrix)
        if not cholesky(matrix):
            continue
        # trace(G^-1) >= 1 / smin^2: a bound that needs no eigenvalues, at most sqrt(rank) too cautious.
        unique[i] = True
        stability[i] = 2.0 * np.sqrt(cholesky_inverse_trace(matrix, rank))
