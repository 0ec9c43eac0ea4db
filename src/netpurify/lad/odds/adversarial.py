"""How many alterations a given design tolerates for certain, whatever their sizes and wherever they are placed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike
from netpurify.lad.design import Design
from netpurify.threads import one_blas_thread

Floats = NDArray[np.float64]

_BLOCK = 512
_CHECK = 20
_CLOSE = 1e-3
_PENALTY = 0.2
"""Share of a row's starting |y|_1 that one step may clip; with 0.1 to 0.3 the bounds close fastest."""
_RELAXATION = 1.7
_NEWTON = 4
_UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class WorstCase:
    """How many alterations a design tolerates for certain, and how many it does not.

    Whichever ``alterations`` entries are altered, L1 regression recovers the truth. Some ``breaking`` entries can be
    altered so that it does not. The exact number lies between.

    Rows of zeros are not counted. An alteration in such a row cannot mislead the fit of the others, and the fit there
    is 0, which is right: any number of them may be altered in addition.

    Attributes:
        alterations: This many altered entries, of any size and in any rows that are not zero, are always repaired.
        breaking: This many entries, altered as in ``counterexample``, are not repaired; ``None`` at rank 0, where the
            fit is 0 and right in any case.
        rho: Certified interval for max_i rho_i.
        row_bounds: Certified intervals for rho_i = max_u |a_i'u| / |A u|_1, shape [k, 2]; 0 for rows of zeros.
        counterexample: Alteration z [k] with ``breaking`` nonzero entries: some u has |z - A u|_1 < |z|_1.
    """

    alterations: int
    breaking: int | None
    rho: tuple[float, float]
    row_bounds: Floats
    counterexample: Floats


def worst_case(design: ArrayLike | Design, *, iterations: int = 200) -> WorstCase:
    """Bounds rho_i = max_u |a_i'u| / |A u|_1 for every row, and from them how many alterations are always repaired.

    If the s largest rho_i sum to less than 1/2, then for any s altered entries S and any u != 0 the entries in S hold
    less than half of |A u|_1, so that moving away from the truth by u loses more on the others than it gains on S.

    Any y with A'y = a_i proves rho_i <= |y|_inf, and any u proves a lower bound. Both come from ADMM on
    min |y|_inf subject to A'y = a_i, all rows at once; the last y is projected again and what is left of its error,
    and a rounding allowance that grows with the condition number, is added to the bound. More iterations tighten the
    bounds; they hold after any number.

    Choose this to be safe against an adversary. Random alterations are tolerated in far larger numbers: see
    ``recovery_probability``. Columns that depend on the others to rounding are dropped, as ``solve`` does.

    Cost: 4 k^2 rank operations for each iteration; memory for about eight arrays of 512 x k.

    Args:
        design: Matrix [k, q], or a prepared ``Design``.
        iterations: Largest number of iterations; rows stop early when all bounds are within a thousandth.

    Raises:
        InputError: The matrix is not two-dimensional, not real or not finite, or ``iterations`` is below 1.
    """
    if iterations < 1:
        raise InputError(f"iterations must be at least 1; got {iterations}")
    design = design if isinstance(design, Design) else Design.prepare(design)
    bounds, counterexample = np.zeros((design.fan_in, 2)), np.zeros(design.fan_in)
    if not design.rank:
        return WorstCase(design.fan_in, None, (0.0, 0.0), bounds, counterexample)
    basis = design.compact
    # The basis spans the columns up to this much per unit of length: products of length k, and a triangular solve.
    slack = 8.0 * _UNIT * (design.live.size + design.rank * design.condition)
    fewest = design.live.size + 1
    with one_blas_thread():
        for start in range(0, design.live.size, _BLOCK):
            rows = slice(start, start + _BLOCK)
            y, directions = _smallest(basis, basis[rows], iterations)
            bounds[design.live[rows], 0] = _lower(basis, basis[rows], directions, slack)
            bounds[design.live[rows], 1] = _upper(basis, basis[rows], y, slack)
            heaviest = _heaviest(basis, directions)
            if np.count_nonzero(heaviest) < fewest:
                fewest = int(np.count_nonzero(heaviest))
                counterexample[design.live] = heaviest
    sums = np.cumsum(np.sort(bounds[:, 1])[::-1])
    low, high = bounds.max(axis=0)
    return WorstCase(
        alterations=int((sums < 0.5 * (1.0 - design.fan_in * _UNIT)).sum()),
        breaking=fewest,
        rho=(float(low), float(high)),
        row_bounds=bounds,
        counterexample=counterexample,
    )


def _smallest(basis: Floats, rows: Floats, iterations: int) -> tuple[Floats, Floats]:
    """ADMM on min |y|_inf subject to basis'y = row, for each of ``rows``.

    Returns:
        y [rows, k], feasible to rounding, and directions g [rows, rank], the duals, for the lower bounds.
    """
    y = rows @ basis.T
    best = y.copy()
    peaks = np.abs(best).max(axis=1)
    directions, floors = rows.copy(), _ratios(basis, rows, rows)
    penalty = _PENALTY * np.abs(y).sum(axis=1)
    threshold = 0.5 * peaks
    dual = np.zeros_like(y)
    for iteration in range(1, iterations + 1):
        point = y - dual
        threshold = _clipping(np.abs(point), threshold, penalty)
        clipped = np.clip(point, -threshold[:, None], threshold[:, None])
        mixed = _RELAXATION * clipped + (1.0 - _RELAXATION) * y + dual
        moved = mixed @ basis - rows
        dual = moved @ basis.T
        y = mixed - dual
        if iteration % _CHECK and iteration < iterations:
            continue
        now = np.abs(y).max(axis=1)
        better = now < peaks
        best[better], peaks = y[better], np.minimum(now, peaks)
        now = _ratios(basis, rows, moved)
        better = now > floors
        directions[better], floors = moved[better], np.maximum(now, floors)
        if (peaks <= (1.0 + _CLOSE) * floors).all():
            break
    return best, directions


def _clipping(sizes: Floats, threshold: Floats, excess: Floats) -> Floats:
    """Threshold t of each row with sum (sizes - t)_+ = ``excess``, by a few steps of Newton."""
    for _ in range(_NEWTON):
        over = np.maximum(sizes - threshold[:, None], 0.0)
        count = np.maximum(np.count_nonzero(over, axis=1), 1)
        threshold = np.maximum(threshold + (over.sum(axis=1) - excess) / count, 0.0)
    return threshold


def _ratios(basis: Floats, rows: Floats, directions: Floats) -> Floats:
    weights = np.abs(directions @ basis.T).sum(axis=1)
    return np.abs((rows * directions).sum(axis=1)) / np.maximum(weights, 1e-300)


def _lower(basis: Floats, rows: Floats, directions: Floats, slack: float) -> Floats:
    ratios = _ratios(basis, rows, directions)
    return np.maximum((ratios - slack) / (1.0 + slack * np.sqrt(basis.shape[0])), 0.0)


def _upper(basis: Floats, rows: Floats, y: Floats, slack: float) -> Floats:
    """|y|_inf, and what y misses: |(basis'y - row)'g| is at most the length of the miss times |basis g|_1."""
    if slack >= 0.5:
        return np.ones(rows.shape[0])
    y = y - (y @ basis - rows) @ basis.T
    missed = np.linalg.norm(y @ basis - rows, axis=1) + slack * (1.0 + np.linalg.norm(y, axis=1))
    return np.minimum(np.abs(y).max(axis=1) + missed / (1.0 - slack), 1.0)


def _heaviest(basis: Floats, directions: Floats) -> Floats:
    """Of all vectors basis g, the one that has more than half its weight on the fewest entries; the others set to 0."""
    fitted = directions @ basis.T
    order = np.argsort(-np.abs(fitted), axis=1)
    weights = np.cumsum(np.take_along_axis(np.abs(fitted), order, axis=1), axis=1)
    # A little more than half: a tie would be no proof that the truth is missed.
    needed = (weights <= (0.5 + 1e-9) * weights[:, -1:]).sum(axis=1) + 1
    row = int(needed.argmin())
    heaviest = np.zeros(basis.shape[0])
    top = order[row, : needed[row]]
    heaviest[top] = fitted[row, top] / np.abs(fitted[row]).max()
    return heaviest
