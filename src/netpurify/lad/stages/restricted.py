"""Least squares, duals and witnesses on the rows F of each column, all columns of a panel together.

Either through the |S| x |S| block of the projector I - QQ', where S are the rows left out, or through
Q_F'Q_F = I - Q_S'Q_S, whichever is cheaper; one Cholesky factorisation per column serves all three.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.lapack import cholesky, cholesky_solve, gram_of_columns, gram_of_rows
from netpurify.lad.stages.judge import ACTIVE, OPEN


@dataclass(frozen=True, slots=True)
class Restricted:
    """Answers for a panel; coordinates [panel, padded rank] are those of fitted values in the basis.

    Attributes:
        coordinates: Of the least-squares fit through F.
        pull: Of what the target must lose on F to become a dual.
        loose: Of what ``start`` must lose to become a witness: a vector that lives on F, is orthogonal to the design,
            and vanishes only on rows for which no others vouch.
        start: Where the witness starts, [panel, rows].
    """

    coordinates: NDArray[np.float64]
    pull: NDArray[np.float64]
    loose: NDArray[np.float64]
    start: NDArray[np.float64]


def solve_restricted(
    design: Design,
    data: NDArray[np.float64],
    target: NDArray[np.float64],
    left_out: NDArray[np.bool_],
    state: NDArray[np.int8],
    *,
    anchored: bool,
    with_dual: bool,
) -> Restricted:
    """Solve for the active columns; those without full rank in F are left open.

    Args:
        design: The design.
        data: The regressed columns, orthogonal to the basis, [panel, rows].
        target: Dual wanted on S and where it starts on F, [panel, rows].
        left_out: The set S, [panel, rows].
        state: Which columns are active, [panel]; changed in place.
        anchored: Whether ``target`` is other than zero on F.
        with_dual: Whether to solve for dual and witness too.
    """
    basis, rows, rank = design.basis, design.live.size, design.rank
    block = design.complement if design.complement is not None else np.zeros((0, 0))
    irregular, orthogonal = design.witness
    active = state == ACTIVE
    small = active & (left_out.sum(axis=1) <= (int(1.5 * rank) if block.size else rank))
    large = active & ~small
    coordinates, pull, loose = np.zeros((3, state.size, basis.shape[1]))
    start = np.where(small[:, None], orthogonal, irregular)
    if large.any():
        coordinates = design.coordinates(np.where(left_out, 0.0, data))
    if with_dual and large.any():
        loose = design.coordinates(np.where(left_out, 0.0, irregular))
    if with_dual and (large.any() or anchored):
        pull = design.coordinates(target)
    wanted = design.fitted(pull) if anchored else target
    _solve_large(left_out, large, basis, rank, rows, coordinates, pull, loose, state)
    if not small.any():
        return Restricted(coordinates, pull, loose, start)
    outliers, forces, ties = np.zeros_like(data), np.zeros_like(data), np.zeros_like(data)
    _solve_small(
        data, wanted, orthogonal, with_dual, left_out, small, basis, block, rank, rows,
        outliers, forces, ties, state,
    )  # fmt: skip
    coordinates[small] = design.coordinates(data - outliers)[small]
    if with_dual:
        pull[small] = design.coordinates(forces + target if anchored else forces)[small]
        loose[small] = design.coordinates(ties)[small]
    return Restricted(coordinates, pull, loose, start)


@kernel
def _solve_small(
    data, wanted, orthogonal, all_three, left_out, chosen, basis, block, rank, rows, outliers, forces, ties, state
):
    """Solve with the S x S block of I - QQ': the values of the left-out rows, and the forces that make the dual."""
    index = np.empty(rows, np.int64)
    for i in range(data.shape[0]):
        if not chosen[i]:
            continue
        count = 0
        for j in range(rows):
            if left_out[i, j]:
                index[count] = j
                count += 1
        if count == 0:
            continue
        factor = np.empty((count, count))
        if block.shape[0]:
            for a in range(count):
                for b in range(a, count):
                    factor[a, b] = block[index[a], index[b]]
        else:
            picked = np.empty((count, rank))
            for a in range(count):
                for c in range(rank):
                    picked[a, c] = basis[index[a], c]
                for b in range(count):
                    factor[a, b] = 1.0 if a == b else 0.0
            gram_of_rows(picked, factor, -1.0, 1.0)
        if not cholesky(factor):
            state[i] = OPEN
            continue
        right = np.empty((3 if all_three else 1, count))
        for a in range(count):
            right[0, a] = data[i, index[a]]
            if all_three:
                right[1, a] = wanted[i, index[a]]
                right[2, a] = orthogonal[index[a]]
        cholesky_solve(factor, right)
        for a in range(count):
            outliers[i, index[a]] = right[0, a]
            if all_three:
                forces[i, index[a]] = right[1, a]
                ties[i, index[a]] = -right[2, a]


@kernel
def _solve_large(left_out, chosen, basis, rank, rows, coordinates, pull, loose, state):
    """Solve with Q_F'Q_F, built from the fewer of the rows in F and in S."""
    for i in range(left_out.shape[0]):
        if not chosen[i]:
            continue
        count = 0
        for j in range(rows):
            count += left_out[i, j]
        from_left_out = count <= rows - count
        picked = np.empty((min(count, rows - count), rank))
        taken = np.int64(0)
        for j in range(rows):
            if left_out[i, j] == from_left_out:
                for c in range(rank):
                    picked[taken, c] = basis[j, c]
                taken += 1
        factor = np.empty((rank, rank))
        for a in range(rank):
            for c in range(rank):
                factor[a, c] = 1.0 if from_left_out and a == c else 0.0
        gram_of_columns(picked, taken, factor, -1.0 if from_left_out else 1.0, 1.0)
        if not cholesky(factor):
            state[i] = OPEN
            continue
        right = np.empty((3, rank))
        for c in range(rank):
            right[0, c], right[1, c], right[2, c] = coordinates[i, c], pull[i, c], loose[i, c]
        cholesky_solve(factor, right)
        for c in range(rank):
            coordinates[i, c], pull[i, c], loose[i, c] = right[0, c], right[1, c], right[2, c]
