"""Least squares and duals on the kept rows F of each column, all columns of a panel together.

Either through the |S| x |S| block of the projector I - QQ', where S are the rows left out, or through
Q_F'Q_F = I - Q_S'Q_S, whichever is cheaper; one Cholesky factorisation per column serves all three solutions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.cholesky import SIDES, cholesky, cholesky_solve, gram
from netpurify.lad.kernels.compiled import kernel
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
    irregular, orthogonal = (numbers[0] for numbers in design.witness)
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
    outliers, forces, witness = (np.zeros(data.shape if small.any() else (1, 1)) for _ in range(3))
    _solve(
        left_out, active, small, basis, block, rank, rows, with_dual, data, wanted, orthogonal, outliers, forces,
        witness, coordinates, dual_correction, witness_correction, state,
    )  # fmt: skip
    if small.any():
        coordinates[small] = design.coordinates(data - outliers)[small]
        if with_dual:
            whole = design.coordinates(forces + target) + columns.slope if general else design.coordinates(forces)
            dual_correction[small] = whole[small]
            witness_correction[small] = design.coordinates(witness)[small]
    return Restricted(coordinates, dual_correction, witness_correction, start)


@kernel
def _solve(
    left_out, active, small, basis, block, rank, rows, all_three, data, wanted, orthogonal, outliers, forces, witness,
    coordinates, dual_correction, witness_correction, state,
):  # fmt: skip
    """Solve for each active column: with the S x S block of I - QQ' where S is ``small``, else with Q_F'Q_F.

    Where S is small this gives by how much the rows left out are off, and what makes dual and witness.
    """
    index, width = np.empty(rows, np.int64), basis.shape[1]
    for i in range(left_out.shape[0]):
        if not active[i]:
            continue
        count = np.int64(0)
        for j in range(rows):
            count += left_out[i, j]
        if small[i] and count == 0:
            continue
        # Q_F'Q_F is built from the fewer of the rows in F and in S.
        from_left_out = small[i] or count <= rows - count
        taken = np.int64(0)
        for j in range(rows):
            if left_out[i, j] == from_left_out:
                index[taken] = j
                taken += 1
        size = -(-count // 8) * 8 if small[i] else width
        factor, right = np.empty((size, size)), np.zeros((size, SIDES))
        if small[i] and block.shape[0]:
            for a in range(size):
                for b in range(a, size):
                    inside = b < count
                    factor[a, b] = block[index[a], index[b]] if inside else (1.0 if a == b else 0.0)
        else:
            picked = np.zeros((rank, size)) if small[i] else np.zeros((taken, width))
            for a in range(taken):
                row = basis[index[a]]
                if small[i]:
                    for c in range(rank):
                        picked[c, a] = row[c]
                else:
                    for c in range(rank):
                        picked[a, c] = row[c]
            # Columns of ``picked`` beyond S, or beyond the rank, are zero.
            deep, full = (rank, count) if small[i] else (taken, rank)
            gram(picked, deep, full, from_left_out, factor)
        if not cholesky(factor):
            state[i] = OPEN
            continue
        for a in range(count if small[i] else rank):
            right[a, 0] = data[i, index[a]] if small[i] else coordinates[i, a]
            if all_three:
                right[a, 1] = wanted[i, index[a]] if small[i] else dual_correction[i, a]
                right[a, 2] = orthogonal[index[a]] if small[i] else witness_correction[i, a]
        cholesky_solve(factor, right)
        for a in range(count if small[i] else rank):
            if small[i]:
                outliers[i, index[a]] = right[a, 0]
                forces[i, index[a]] = right[a, 1]
                witness[i, index[a]] = -right[a, 2]
            else:
                coordinates[i, a] = right[a, 0]
                dual_correction[i, a] = right[a, 1]
                witness_correction[i, a] = right[a, 2]
