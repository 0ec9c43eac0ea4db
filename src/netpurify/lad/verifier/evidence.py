"""When a proven minimum may be called the truth: enough zero residuals, redundant rows, and no plausible rival.

Any vertex of the L1 problem fits ``rank`` rows exactly. More zero residuals than that are evidence for the fit, except
those that can be zero by accident. The evidence is void if some fitted row is predicted by no other fitted row, if a
row far larger than the others may have pulled the fit to itself, or if another fit explains the column nearly as well.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrc

from netpurify.lad.verifier.column_space import ColumnSpace, on_a_grid
from netpurify.lad.verifier.residuals import Candidate, Residuals, SortedSizes
from netpurify.lad.verifier.rivals import dominant_rows, dominant_rows_predicted, no_rivals

_CHANCE = 3.0
"""By chance about (rows - rank) x floor / median(|altered|) residuals fall below the noise floor; this many times that
number of zeros are discounted."""
_ACCIDENT = 1e-5
"""So many zeros are discounted that chance alone gives more with less than this probability."""
_MOST_ACCIDENTS = 40
"""Where more are expected, ``_CHANCE`` discounts more than that in any case."""
REDUNDANT = 1e-8
"""``ColumnSpace.redundancy`` above this: every fitted row is predicted by the other fitted rows."""
_NEARLY_FREE = 1e-4
"""A redundancy below this: an alteration of some fitted row would hardly show in the other fitted rows."""


def surplus(space: ColumnSpace, candidate: Candidate, residuals: Residuals) -> NDArray[np.int64]:
    """How many zero residuals count as evidence: distinct rows beyond the rank, less those that are zero by accident.

    Accidents are ties (as many zeros as the most frequent residual occurs may be its like, more on a grid) and
    residuals that the noise floor catches by chance.
    """
    floor, median, ties = candidate.noise_floor, residuals.median, residuals.ties
    accidents = np.where(ties > 1, ties, 0)
    if space.on_a_grid:
        whole = on_a_grid(candidate.data)
        accidents = np.where(whole, (2 * ties + 4 * np.sqrt(ties)).astype(np.int64), accidents)
    present = np.count_nonzero(~residuals.missing, axis=1)
    expected = np.minimum((present - space.rank) * floor / median, candidate.data.shape[1])
    accidents += discounted(expected)
    zero = ~(residuals.altered | residuals.missing)[:, space.live]
    distinct = space.rows.count_distinct(zero & _notices(space, median, floor))
    return np.maximum(distinct - space.rank - np.where(residuals.altered_sizes.count > 0, accidents, 0), 0)


def discounted(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many zeros are discounted where so many are ``expected`` by chance, [p]: a multiple, and never too few."""
    likely = np.zeros(expected.shape, np.int64)
    some = ~(expected <= _ACCIDENT)  # else even a single one is too improbable
    likely[some] = (pdtrc(np.arange(_MOST_ACCIDENTS)[:, None], expected[some]) > _ACCIDENT).sum(axis=0)
    return np.maximum((_CHANCE * expected).astype(np.int64), likely)


def doubted(
    space: ColumnSpace,
    residuals: Residuals,
    floor: NDArray[np.float64],
    recovered: NDArray[np.bool_],
    redundant: NDArray[np.bool_] | None,
) -> NDArray[np.intp]:
    """Numbers of the ``recovered`` columns [p] whose evidence is void; ``redundant`` as in ``check``."""
    claimed = np.flatnonzero(recovered)
    if not claimed.size:
        return claimed
    live, lowest = residuals.values[np.ix_(claimed, space.live)], floor[claimed]
    # The solver's look at redundancy does not weigh rows against one another.
    if redundant is None or dominant_rows(space).any():
        redundant = np.zeros(recovered.size, np.bool_)
    good = redundant[claimed].copy()
    unknown = np.flatnonzero(~good)
    if unknown.size:
        median = residuals.median[claimed[unknown]]
        good[unknown] = _is_redundant(space, live[unknown], lowest[unknown], median)
    tied = np.flatnonzero(good & (residuals.ties[claimed] > 1))
    if tied.size and space.sparse.count:
        good[tied] = no_rivals(space.sparse, live[tied], lowest[tied])
    if space.given_norms is not None:
        # Alterations that are alike may be multiplied by weights of the rows.
        scaled = np.where(np.abs(live) <= lowest[:, None], 0.0, live) / space.given_norms
        lowest = lowest / np.median(space.given_norms)
        sizes = np.abs(np.nan_to_num(scaled))
        ties = SortedSizes.of(sizes, sizes > lowest[:, None]).most_frequent(lowest)
        tied = np.flatnonzero(good & (ties > 1))
        if tied.size and space.sparse_scaled.count:
            good[tied] = no_rivals(space.sparse_scaled, scaled[tied], lowest[tied])
    return claimed[~good]


def _is_redundant(
    space: ColumnSpace, residual: NDArray[np.float64], floor: NDArray[np.float64], median: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether every fitted row could be dropped and still be predicted by the remaining fitted rows (leverage < 1).

    Args:
        space: The column space.
        residual: Residuals on the live rows, [p, live rows].
        floor: Residuals up to this count as zero, [p].
        median: Median size of the altered entries, [p].
    """
    fitted = (np.abs(residual) <= floor[:, None]) & _notices(space, median, floor)
    redundancy = space.redundancy(space.rows.without_multiples(fitted))
    good = redundancy > REDUNDANT
    # Where a hundredth of a typical alteration would be lost in the noise floor, or a few rows are far larger than the
    # others, prediction in principle is not enough.
    hidden = redundancy < np.maximum(_NEARLY_FREE, 100.0 * floor / median)
    for i in np.flatnonzero(good & (hidden | dominant_rows(space).any())):
        good[i] = dominant_rows_predicted(space, residual[i], float(floor[i]))
    return good


def _notices(space: ColumnSpace, median: NDArray[np.float64], floor: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which live rows [p, live rows] are large enough to show that a typical alteration was taken for truth.

    The fit would change by the alteration of the largest row; smaller rows see that much less of it. [1, 1] if all are.
    """
    if (space.rows.sizes.min(initial=1.0) * median >= 10.0 * floor).all():
        return np.ones((1, 1), np.bool_)
    return space.rows.sizes * median[:, None] >= 10.0 * floor[:, None]
