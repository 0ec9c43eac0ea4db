"""Compiled loops by which a ``Design`` answers the verifier's questions about its rows."""

import numpy as np

from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.lapack import cholesky, cholesky_inverse_trace, cholesky_solve, gram_of_columns


@kernel
def smallest_left_over(basis, chosen, irregular, smallest):
    """Project irregular numbers on the chosen rows orthogonally to the columns; find each column's smallest entry.

    ``smallest`` receives 0 where the chosen rows have no redundancy, and infinity at rank 0.
    """
    rows, rank = basis.shape
    picked = np.empty((rows, rank))
    gram, projection = np.empty((rank, rank)), np.empty((1, rank))
    for i in range(chosen.shape[0]):
        count = 0
        for j in range(rows):
            count += chosen[i, j]
        if count <= rank:
            continue
        smallest[i] = np.inf
        if rank == 0:
            continue
        # The Gram matrix of the chosen rows is I minus that of the other rows: use whichever are fewer.
        others = 2 * count > rows
        taken = np.int64(0)
        for j in range(rows):
            if chosen[i, j] != others:
                for c in range(rank):
                    picked[taken, c] = basis[j, c]
                taken += 1
        for a in range(rank):
            projection[0, a] = 0.0
            for c in range(rank):
                gram[a, c] = 1.0 if others and a == c else 0.0
        gram_of_columns(picked, taken, gram, -1.0 if others else 1.0, 1.0)
        if not cholesky(gram):
            smallest[i] = 0.0
            continue
        for j in range(rows):
            if chosen[i, j]:
                for c in range(rank):
                    projection[0, c] += irregular[j] * basis[j, c]
        cholesky_solve(gram, projection)
        for j in range(rows):
            if chosen[i, j]:
                left_over = irregular[j]
                for c in range(rank):
                    left_over -= basis[j, c] * projection[0, c]
                smallest[i] = min(smallest[i], abs(left_over))


@kernel
def strictly_inside(basis, dual, proven, unique, stability):
    """Uniqueness and stability from the rows whose dual lies strictly between -1 and 1."""
    rows, rank = basis.shape
    weighted = np.empty((rows, rank))
    gram = np.empty((rank, rank))
    for i in range(dual.shape[0]):
        count = np.int64(0)
        for j in range(rows):
            room = 1.0 - abs(dual[i, j])
            if room > 1e-10:
                for c in range(rank):
                    weighted[count, c] = room * basis[j, c]
                count += 1
        if not proven[i] or count < rank:
            continue
        if rank == 0:
            unique[i], stability[i] = True, 0.0
            continue
        for a in range(rank):
            for c in range(rank):
                gram[a, c] = 0.0
        gram_of_columns(weighted, count, gram, 1.0, 1.0)
        if not cholesky(gram):
            continue
        # trace(G^-1) >= 1 / smin^2: a bound that needs no eigenvalues, at most sqrt(rank) too cautious.
        unique[i] = True
        stability[i] = 2.0 * np.sqrt(cholesky_inverse_trace(gram))
