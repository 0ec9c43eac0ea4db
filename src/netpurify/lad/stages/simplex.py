"""Last stage: walk from vertex to vertex for the columns that are left; the walk itself is in ``kernels.pivoting``."""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.pivoting import walk
from netpurify.lad.stages.columns import ACTIVE, OPEN, SOLVED, Columns
from netpurify.lad.stages.judge import BIMODAL
from netpurify.lad.stages.panel import Panel
from netpurify.lad.stages.restricted import solve_restricted
from netpurify.lad.stages.tableau import solve_near

_GAP = 1e3
"""A residual this many times larger than the next smaller one separates the zeros from the altered entries."""
_NEAR_FLOOR = 30.0
"""Only residuals up to this many times the noise floor can be zeros."""


def run(panel: Panel, unsolved: NDArray[np.intp]) -> NDArray[np.intp]:
    """Walk to a minimum from the vertex that the estimate suggests; where the verifier refuses it, from least squares.

    Ties can end a walk before the minimum; from another vertex it takes another path.
    """
    design, columns = panel.design, panel.columns
    if design.full and (columns.state[unsolved] == SOLVED).all():
        # A design that spans everything has one vertex for each column: there is nowhere to walk.
        return unsolved[:0]
    solved = unsolved[:0] if design.full else solve_near(panel, unsolved)
    left = unsolved
    estimates = (panel.estimate,) if panel.estimate is columns.data else (panel.estimate, columns.data)
    for number, estimate in enumerate(estimates):
        panel.pivots += _walk(design, columns, estimate, left if number else np.setdiff1d(left, solved))
        _refit(columns, design, left)
        panel.prove(left)
        left = panel.refused()
        if not left.size:
            break
    return unsolved


def _walk(design: Design, columns: Columns, estimate: NDArray[np.float64], left: NDArray[np.intp]) -> int:
    """Walk for each of the columns that are left; returns the number of pivots."""
    pivots = 0
    order = np.argsort(np.abs(estimate[left, : design.live.size]), axis=1, kind="stable")
    for i, rows in zip(left, order, strict=True):
        pivots += int(
            walk(
                design.compact, columns.data[i], estimate[i], rows, columns.missing[i], columns.slope[i],
                20 * design.rank + 1000, columns.coordinates[i], columns.dual[i],
            )
        )  # fmt: skip
    return pivots


def _refit(columns: Columns, design: Design, chosen: NDArray[np.intp]) -> None:
    """Fit a vertex that has more zeros than the rank through all of them.

    The walk ends with a fit through ``rank`` rows. If many more rows fit, the fit through all of them is better
    conditioned, and the rounding of the data is averaged. The dual stays as it is.
    """
    residual = np.abs(columns.data[chosen] - design.fitted(columns.coordinates[chosen]))
    residual[columns.missing[chosen]] = np.inf
    largest = np.maximum(_NEAR_FLOOR * columns.noise_floor[chosen], columns.largest_floor[chosen])
    chosen = chosen[np.count_nonzero(residual[:, : design.live.size] <= largest[:, None], axis=1) > design.rank]
    if not chosen.size:
        return
    taken = columns.take(chosen, design.width(chosen.size))
    taken.state[: chosen.size] = ACTIVE
    _leave_out_all_but_zeros(taken, design)
    coordinates = solve_restricted(design, taken, with_guess=False, with_dual=False).coordinates
    residual = taken.data - design.fitted(coordinates)
    kept = np.where(taken.left_out, 0.0, np.abs(residual))[:, : design.live.size].max(axis=1, initial=0.0)
    for i in np.flatnonzero(taken.state == ACTIVE):
        columns.coordinates[chosen[i]] = coordinates[i]
        columns.noise_floor[chosen[i]] = max(taken.noise_floor[i], 2.0 * kept[i])


def _leave_out_all_but_zeros(columns: Columns, design: Design) -> None:
    """Keep only the residuals below the widest gap, if these are more than the rank; columns without a gap are OPEN."""
    rows, rank = design.live.size, design.rank
    if rows < rank + 2:
        columns.state[columns.state == ACTIVE] = OPEN
        return
    residual = np.abs(columns.data - design.fitted(columns.coordinates))[:, :rows]
    missing, floor, largest_floor = (
        columns.missing[:, :rows],
        columns.noise_floor[:, None],
        columns.largest_floor[:, None],
    )
    ordered = np.sort(np.where(missing, np.inf, residual), axis=1)
    present = rows - missing.sum(axis=1, keepdims=True)
    position = np.arange(rank, rows - 1)
    # So many residuals beyond the rank do not lie below a detected floor by chance.
    enough = (largest_floor > 0.0) & (position - rank >= 5 + rank // 20)
    typical = np.take_along_axis(ordered, np.minimum((position + 1 + present) // 2, rows - 1), axis=1)
    detected = np.minimum(BIMODAL * typical, largest_floor)
    limit = np.where(enough, np.maximum(_NEAR_FLOOR * floor, detected), _NEAR_FLOOR * floor)
    below, above = ordered[:, rank : rank + position.size], ordered[:, rank + 1 : rank + 1 + position.size]
    # Where the floor itself is zero, any residual above it is a gap, and a further zero is none.
    least = np.maximum(below, floor)
    gap = np.where((least == 0.0) & (above > 0.0), np.inf, _GAP)
    considered = (below <= limit) & (position < present - 1)
    gap[~considered] = _GAP
    np.divide(above, least, out=gap, where=considered & (least > 0.0))
    columns.state[(columns.state == ACTIVE) & ~(gap.max(axis=1) > _GAP)] = OPEN
    largest_zero = np.take_along_axis(below, gap.argmax(axis=1)[:, None], axis=1)
    columns.left_out[:, :rows] = missing | (residual > largest_zero)
