"""Least squares and duals on the kept rows F of each column, all columns of a panel together.

Either through the |S| x |S| block of the projector I - QQ', where S are the rows left out, or through
Q_F'Q_F = I - Q_S'Q_S, whichever is cheaper; one Cholesky factorisation per column serves all three solutions.

Where few rows are left out, a solution on S is spread over all rows by few rows of I - QQ', which takes fewer
operations than two products with Q.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.cholesky import SIDES, cholesky, cholesky_solve, gram
from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.rows import add_rows
from netpurify.lad.stages.columns import ACTIVE, OPEN, Columns

_IN_CACHE = 16 << 20
"""Bytes of I - QQ' up to which its rows are read faster than a product with Q is made."""


@dataclass(frozen=True, slots=True)
class Restricted:
    """Solutions on the kept rows F.

    Attributes:
        coordinates: The least-squares fit through F, as coefficients of the basis, [panel, padded rank].
        fitted: Its values, [panel, rows].
        correction: What must be subtracted from the dual target on F so that the dual is orthogonal to the design, or
            Q'y + slope = 0 with the slope of the columns, [panel, rows]. Of no meaning on S.
        witness: Irregular numbers on F, less the part that the design explains, [panel, rows]. They are zero on a row
            of F exactly when the other rows of F do not determine that row's value (leverage 1). Of no meaning on S.
    """

    coordinates: NDArray[np.float64]
    fitted: NDArray[np.float64]
    correction: NDArray[np.float64]
    witness: NDArray[np.float64]


def solve_restricted(design: Design, columns: Columns, *, with_guess: bool, with_dual: bool) -> Restricted:
    """Solve for the active columns; those whose rows F do not have full rank become OPEN.

    The data must be orthogonal to the basis, as the residuals of least squares are.

    Args:
        design: The design.
        columns: The columns; their data, dual targets and sets S are read, their states changed.
        with_guess: Whether ``dual_target`` is other than zero on F.
        with_dual: Whether to solve for dual and witness too; without, both are zero.
    """
    basis, rows, rank = design.basis, design.live.size, design.rank
    data, target, left_out, state = columns.data, columns.dual_target, columns.left_out, columns.state
    block = design.complement if design.complement is not None else np.zeros((0, 0))
    irregular, orthogonal = (numbers[0] for numbers in design.witness)
    active = state == ACTIVE
    general = with_guess or bool(columns.slope.any())
    small = active & (left_out.sum(axis=1) <= (int(1.5 * rank) if block.size else rank))
    by_rows = 0 < block.nbytes <= _IN_CACHE
    through_basis = active & ~small if by_rows else active
    large = (active & ~small).any()
    coordinates, dual_correction, witness_correction = np.zeros((3, state.size, basis.shape[1]))
    fitted, correction, witness = (np.zeros(data.shape) for _ in range(3))
    if large:
        coordinates = design.coordinates(np.where(left_out, 0.0, data))
    if with_dual and large:
        witness_correction = design.coordinates(np.where(left_out, 0.0, irregular))
    if with_dual and (large or general):
        dual_correction = design.coordinates(target) + columns.slope
    if with_dual:
        correction[:] = design.fitted(dual_correction) if general else target
        witness[:] = orthogonal
    _solve(
        left_out, active, small, basis, block, rank, rows, general, with_dual, by_rows, data, fitted, correction,
        witness, coordinates, dual_correction, witness_correction, state,
    )  # fmt: skip
    if through_basis.any():
        start = np.where(small[:, None], orthogonal, irregular)[through_basis]
        fitted[through_basis] = design.fitted(coordinates[through_basis])
        if with_dual:
            correction[through_basis] = design.fitted(dual_correction[through_basis])
            witness[through_basis] = start - design.fitted(witness_correction[through_basis])
    return Restricted(coordinates, fitted, correction, witness)


@kernel
def _solve(
    left_out, active, small, basis, block, rank, rows, general, all_three, by_rows, data, fitted, correction, witness,
    coordinates, dual_correction, witness_correction, state,
):  # fmt: skip
    """Solve for each active column: with the S x S block of I - QQ' where S is ``small``, else with Q_F'Q_F.

    Where S is small this gives three vectors on S: by how much the rows left out are off, and what makes dual and
    witness. They are spread over all rows by rows of I - QQ', or over the basis by rows of Q.
    """
    index, width = np.empty(rows, np.int64), basis.shape[1]
    fit, force, witnessing = np.int64(0), np.int64(1), np.int64(2)  # literals would be compiled one by one
    for i in range(left_out.shape[0]):
        if not active[i]:
            continue
        count = np.int64(0)
        for j in range(rows):
            count += left_out[i, j]
        for c in range(width if small[i] else 0):
            coordinates[i, c], witness_correction[i, c] = 0.0, 0.0
            if not general:
                dual_correction[i, c] = 0.0
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
                right[a, 1] = correction[i, index[a]] if small[i] else dual_correction[i, a]
                right[a, 2] = witness[i, index[a]] if small[i] else witness_correction[i, a]
        cholesky_solve(factor, right)
        if not small[i]:
            for a in range(rank):
                coordinates[i, a] = right[a, 0]
                dual_correction[i, a] = right[a, 1]
                witness_correction[i, a] = right[a, 2]
            continue
        add_rows(coordinates[i], right, fit, basis, index, count, -1.0)
        if by_rows:
            add_rows(fitted[i, :rows], right, fit, block, index, count, 1.0)
            for a in range(count):
                fitted[i, index[a]] -= right[a, 0]
            if all_three:
                add_rows(correction[i, :rows], right, force, block, index, count, -1.0)
                add_rows(witness[i, :rows], right, witnessing, block, index, count, -1.0)
        elif all_three:
            add_rows(dual_correction[i], right, force, basis, index, count, 1.0)
            add_rows(witness_correction[i], right, witnessing, basis, index, count, -1.0)
