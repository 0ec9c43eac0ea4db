"""From suspected outliers to an exact fit and the dual that proves it.

A column is described by the set S of rows left out of the fit (F are the others) and a target t for the dual. One round
solves, with one factorisation,

    primal   x = argmin |b_F - Q_F x|_2,          r = b - Q x,
    dual     y = t on S, and the smallest change of t on F with Q'y = 0.

While some residual in F stands out of the rest, S becomes the rows that stand out. Once none does, F fits to the noise
floor; then rows with |y| > 1 are pinned at +-1, joined to S, and solved again. With |y| <= 1 everywhere and y = sign(r)
off zero the fit is optimal: A'y = 0 bounds every other fit from below.
"""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.odds.limits import tolerance
from netpurify.lad.stages import judge
from netpurify.lad.stages.admm import THRESHOLD, Estimate
from netpurify.lad.stages.columns import ACTIVE, OPEN, SOLVED, Columns
from netpurify.lad.stages.restricted import solve_restricted
from netpurify.lad.stages.suspects import choose_suspects

ROUNDS, ROUNDS_TO_FIT = 10, 3
"""Rounds at most, and rounds until F must fit to the noise floor; more identification is cheaper than more trimming."""


def leave_out_suspects(columns: Columns, design: Design, *, estimate: Estimate, with_guess: bool) -> None:
    """Start anew for the open columns: leave out the rows that ``estimate`` takes for outliers.

    ``with_guess`` says whether the dual of the estimate is good enough to start from.
    """
    rows, rank = design.live.size, design.rank
    choose_suspects(
        columns.data, columns.missing, estimate.sparse, estimate.residual, estimate.dual, THRESHOLD, rows, rank,
        tolerance(rows, rank) * rows, *judge.kept_rows(rank), with_guess, columns.noise_floor, columns.largest_floor,
        columns.left_out, columns.dual_guess, columns.dual_target, columns.noise, columns.reached_floor, columns.state,
    )  # fmt: skip


def polish(columns: Columns, design: Design, *, with_guess: bool) -> None:
    """Work on every active column, in place, until each is SOLVED or OPEN.

    ``with_guess`` says whether ``dual_guess`` holds a guess.
    """
    started = columns.state == ACTIVE
    positions = np.flatnonzero(started)
    current = columns  # shrinks to a copy of the active columns as others are done
    for number in range(ROUNDS):
        active = np.flatnonzero(current.state == ACTIVE)
        width = design.width(active.size)
        if active.size and 2 * width <= current.state.size:
            if current is not columns:
                columns.put(positions, current)
                active = positions[active]
            positions, current = active, columns.take(active, width)
        if not active.size:
            break
        # Before the first trim the fit is seldom exact, so its dual would prove nothing; small ones cost nothing.
        with_dual = with_guess or number > 0 or design.live.size <= 256
        _round(current, design, with_guess=with_guess, with_dual=with_dual)
        if number + 1 >= ROUNDS_TO_FIT:
            current.state[(current.state == ACTIVE) & ~current.reached_floor] = OPEN
    current.state[current.state == ACTIVE] = OPEN
    if current is not columns:
        columns.put(positions, current)
    _refit(columns, design, started)


def _refit(columns: Columns, design: Design, started: NDArray[np.bool_]) -> None:
    """Fit once more through every row at the noise floor where few rows were used.

    Pinned rows fit as well as the others. With them the fit is better conditioned, and its rounding as small as the
    data allow.
    """
    used = design.live.size - columns.left_out[:, : design.live.size].sum(axis=1)
    chosen = np.flatnonzero(started & (columns.state == SOLVED) & (used < 1.5 * design.rank))
    if not chosen.size:
        return
    taken = columns.take(chosen, design.width(chosen.size))
    taken.state[: chosen.size] = ACTIVE
    taken.left_out[:] = (np.abs(taken.residual) > taken.noise_floor[:, None]) | taken.missing
    coordinates = solve_restricted(design, taken, with_guess=False, with_dual=False).coordinates
    solved = np.flatnonzero(taken.state == ACTIVE)
    columns.coordinates[chosen[solved]] = coordinates[solved]


def _round(columns: Columns, design: Design, *, with_guess: bool, with_dual: bool) -> None:
    """Solve for the sets S as they are, then decide about each column."""
    active = columns.state == ACTIVE
    solved = solve_restricted(design, columns, with_guess=with_guess, with_dual=with_dual)
    columns.coordinates[active] = solved.coordinates[active]
    judge.decide(
        columns.data, solved.fitted, solved.correction, solved.witness, design.rows.are_distinct,
        design.live.size, design.rank, *judge.kept_rows(design.rank), with_guess, with_dual, columns.missing,
        columns.reached_floor, columns.noise, columns.residual, columns.left_out, columns.dual_guess,
        columns.dual_target, columns.dual, columns.noise_floor, columns.largest_floor, columns.redundant, columns.state,
    )  # fmt: skip
