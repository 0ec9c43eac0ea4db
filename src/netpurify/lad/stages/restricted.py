"""Least squares and duals on the kept rows F of each column, all columns of a panel together.

Either through the |S| x |S| block of the projector I - QQ', where S are the rows left out, or through
Q_F'Q_F = I - Q_S'Q_S, whichever is cheaper; one Cholesky factorisation per column serves all three solutions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.lapack import cholesky, cholesky_solve, gram_of_columns, gram_of_rows
from netpurify.lad.stages.columns import ACTIVE, OPEN, Columns


@dataclass(frozen=True, slots=True)
class Restricted:
    """Solutions on the kept rows, as coefficients of the basis, [panel, padded rank], unless said otherwise.

    Attributes:
        coordinates: The least-squares fit through F.
        dual_correction: What must be subtracted from the dual target on F so that the dual is orthogonal to the design,
            or Q'y + slope = 0 with the slope of the columns.
        witness_correction: What must be subtracted from ``witness_start`` so that the result, the witness, is supported
            on F and orthogonal to the design. The witness is zero on a row of F exactly when the other rows of F do not
            determine that row's value (leverage 1).
        witness_start: Irregular numbers, [panel, rows].
    """

    coordinates: NDArray[np.float64]
    dual_correction: NDArray[np.float64]
    witness_correction: NDArray[np.float64]
    witness_start: NDArray[np.float64]


def solve_restricted(design: Design, columns: Columns, *, with_guess: bool, with_dual: bool) -> Restricted:
    """Solve for the active columns; those whose rows F do not have full rank become OPEN.

    Args:
        design: The design.
        columns: The columns; their data, dual targets and sets S are read, their states changed.
        with_guess: Whether ``dual_target`` is other than zero on F.
        with_dual: Whether to solve for dual and witness too.
    """
    basis, rows, rank = design.basis, design.live.size, design.rank
    data, target, left_out, state = columns.data, columns.dual_target, columns.left_out, columns.state
    block = design.complement if design.complement is not None else np.zeros((0, 0))
    irregular, orthogonal = design.witness
    active = state == ACTIVE
    general = with_guess or bool(columns.slope.any())
    small = active & (left_out.sum(axis=1) <= (int(1.5 * rank) if block.size else rank))
    large = active & ~small
    coordinates, dual_correction, witness_correction = np.zeros((3, state.size, basis.shape[1]))
    start = np.where(small[:, None], orthogonal, irregular)
    if large.any():
        coordinates = design.coordinates(np.where(left_out, 0.0, data))
    if with_dual and large.any():
        witness_correction = design.coordinates(np.where(left_out, 0.0, irregular))
    if with_dual and (large.any() or general):
        dual_correction = design.coordinates(target) + columns.slope
    wanted = design.fitted(dual_correction) if general else target
    _solve_large(left_out, large, basis, rank, rows, coordinates, dual_correction, witness_correction, state)
    if small.any():
        outliers, forces, witness = np.zeros_like(data), np.zeros_like(data), np.zeros_like(data)
        _solve_small(
            data, wanted, orthogonal, with_dual, left_out, small, basis, block, rank, rows,
            outliers, forces, witness, state,
        )  # fmt: skip
        coordinates[small] = design.coordinates(data - outliers)[small]
        if with_dual:
            whole = design.coordinates(forces + target) + columns.slope if general else design.coordinates(forces)
            dual_correction[small] = whole[small]
            witness_correction[small] = design.coordinates(witness)[small]
    return Restricted(coordinates, dual_correction, witness_correction, start)


@kernel
def _solve_small(
    data, wanted, orthogonal, all_three, left_out, chosen, basis, block, rank, rows, outliers, forces, witness, state
):
    """Solve with the S x S block of I - QQ': by how much the left-out rows are off, and what makes dual and witness."""
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
                witness[i, index[a]] = -right[2, a]


@kernel
def _solve_large(left_out, chosen, basis, rank, rows, coordinates, dual_correction, witness_correction, state):
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
            right[0, c] = coordinates[i, c]
            right[1, c] = dual_correction[i, c]
            right[2, c] = witness_correction[i, c]
        cholesky_solve(factor, right)
        for c in range(rank):
            coordinates[i, c] = right[0, c]
            dual_correction[i, c] = right[1, c]
            witness_correction[i, c] = right[2, c]
