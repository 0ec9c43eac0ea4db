"""Rivals: other fits that would explain a column nearly as well as the fit that is checked.

Counting zeros as evidence assumes that alterations do not agree with one another. Where residuals tie, they do. Then,
if the column space holds a vector w that is zero on most rows, the fit u has a rival u - d with A d = t w. According to
the rival, the entries where u has zeros on the support of w were all altered by t w, and some entries where u has
residuals there were not altered. In a two-way layout w is the indicator of a level: if half of its rows are altered
alike, the alteration looks like the effect of the level. Where rows have weights, equal alterations are multiplied by
them; therefore residuals are compared both as they are and divided by the norm of their row.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from netpurify.lad.verifier.column_space import ColumnSpace
from netpurify.lad.verifier.sparse import SparseVectors

_ODDS = 1e-5
"""A fit counts as the truth if all its rivals together have less than these odds against it."""
_TIE = 1e-9
"""Residuals that differ by less than this share of their size, or by twice the noise floor, are tied."""
_BLOCK = 1 << 20
"""How many pairs of a rival and a size are compared together, to bound the memory."""
_PREDICTED = 1e-6
"""A fitted row whose leverage is above 1 minus this must have the value that the other fitted rows predict."""
_DOMINANT = 1e2
"""The same holds for a row that is larger than the median row by this factor."""
_NOISE = 20.0
"""A prediction from noisy rows is wrong by at most this many standard deviations."""


def no_rivals(vectors: SparseVectors, residual: NDArray[np.float64], floor: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which columns have no plausible rival, if some of their alterations are equal in size.

    Args:
        vectors: Sparse vectors of the design's column space.
        residual: Residuals on the live rows, one line for each column, [p, live rows]; NaN where missing.
        floor: Residuals up to this are zero, [p].
    """
    count, rows = residual.shape
    step = max(1, _BLOCK // max(1, vectors.owner.size * rows // 4))
    blocks = [slice(start, start + step) for start in range(0, count, step)]
    odds = [odds_of_rivals(vectors, residual[block], floor[block]) for block in blocks]
    return np.concatenate(odds) < _ODDS


def odds_of_rivals(
    vectors: SparseVectors, residual: NDArray[np.float64], floor: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Odds that a rival, and not the fit, is the truth, if rows that are altered alike may be any rows, [p].

    If a of n rows are altered by one amount, and all sets of a rows and all a are equally likely, the odds of a set of
    a + m rows against one of a rows are C(n, a) / C(n, a + m). A rival adds the zeros that it gives up, and removes the
    residuals of this amount that it explains. Amounts that no residual has count too: there, a = 0.
    """
    if not vectors.count:
        return np.zeros(residual.shape[0])
    fits = (np.abs(residual) <= floor[:, None]).astype(float).T
    column, raised, lowered = _by_size(residual, floor)
    present = np.count_nonzero(~np.isnan(residual), axis=1)
    cost = _log_factorials(residual.shape[1])
    sums = raised.sum(axis=0), lowered.sum(axis=0)
    before = sum(_log_choices(cost, present[column], number) for number in sums)
    gain = np.full((vectors.owner.size, column.size), -np.inf)
    # The rival's alterations are t w: +t where w is positive and -t where it is negative; or, with t < 0, the reverse.
    for up, down in ((vectors.positive, vectors.negative), (vectors.negative, vectors.positive)):
        more = sums[0] + (up @ fits)[:, column] - down @ raised
        less = sums[1] + (down @ fits)[:, column] - up @ lowered
        after = _log_choices(cost, present[column], more) + _log_choices(cost, present[column], less)
        gain = np.logaddexp(gain, before - after)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    of_group = np.logaddexp.reduceat(gain, first, axis=1)
    total = np.zeros((vectors.count, residual.shape[0]))
    np.add.at(total, vectors.owner, of_group)
    # Entries of a size of their own would each have to be hit exactly; one of them may set t where no group does.
    alone = np.bincount(vectors.owner, minlength=vectors.count) == 0
    total -= np.log(present) * np.maximum(vectors.single @ fits - alone[:, None], 0.0)
    return np.exp(np.minimum(total, 0.0)).sum(axis=0)


def _by_size(residual: NDArray[np.float64], floor: NDArray[np.float64]) -> tuple[NDArray, ...]:
    """For each size t of a column's residuals: the column's number, and which of its residuals are +t and which -t.

    The sizes of a column follow one another; its first is one that none of its residuals has.
    """
    numbers, lines = [], []
    for i, line in enumerate(residual):
        rows = np.flatnonzero(np.abs(line) > floor[i])
        rows = rows[np.argsort(np.abs(line[rows]), kind="stable")]
        size = np.abs(line[rows])
        group = np.cumsum(np.diff(size, prepend=-np.inf) > np.maximum(2.0 * floor[i], _TIE * size))
        signs = np.zeros((int(group.max(initial=0)) + 1, line.size))
        signs[group, rows] = np.sign(line[rows])
        numbers.append(np.full(signs.shape[0], i))
        lines.append(signs)
    signs = np.concatenate(lines).T
    return np.concatenate(numbers), (signs > 0.0).astype(float), (signs < 0.0).astype(float)


def _log_factorials(rows: int) -> NDArray[np.float64]:
    """Logarithms of factorials, 0 to ``rows``."""
    return gammaln(np.arange(rows + 1) + 1.0)


def _log_choices(
    factorials: NDArray[np.float64], rows: NDArray[np.intp], chosen: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Logarithm of the number of sets of ``chosen`` out of ``rows`` rows; constant beyond half of the rows."""
    few = np.minimum(chosen, rows // 2).astype(np.intp)
    return factorials[rows] - factorials[few] - factorials[rows - few]


def dominant_rows(space: ColumnSpace) -> NDArray[np.bool_]:
    """Which live rows are larger than the median row by orders of magnitude, [live rows]."""
    sizes = space.rows.sizes
    return sizes > _DOMINANT * (np.median(sizes) if sizes.size else 1.0)


def dominant_rows_predicted(space: ColumnSpace, residual: NDArray[np.float64], floor: float) -> bool:
    """Whether the rows that nearly determine the fit alone have the values that the other fitted rows predict.

    A row a million times larger than the others pulls the fit to itself: if it was altered, the others are off by a
    millionth of that, which may look like rounding.

    Args:
        space: The column space.
        residual: Residuals of one column on the live rows; NaN where missing.
        floor: Residuals up to this count as zero.
    """
    fitted = np.abs(residual) <= floor  # False where missing
    dominant = space.freedom(fitted) < _PREDICTED
    dominant |= dominant_rows(space)[fitted]
    if not dominant.any():
        return True
    # The rows as they were given: small rows have lost digits in the basis.
    rows = space.matrix[space.live[fitted]][:, space.pivots]
    scale = np.abs(rows[~dominant]).max(axis=0, initial=0.0)
    rows = rows / np.where(scale > 0.0, scale, np.abs(rows).max(axis=0, initial=1e-300))  # the others may be zero there
    others, misfit = rows[~dominant], residual[fitted]
    left, sizes, right = np.linalg.svd(others, full_matrices=False)
    kept = sizes > sizes.max(initial=0.0) * max(others.shape, default=1) * np.finfo(np.float64).eps
    directions = right[kept].T / sizes[kept]
    change = left[:, kept].T @ misfit[~dominant]
    noise = np.linalg.norm(misfit[~dominant] - left[:, kept] @ change) / np.sqrt(max(others.shape[0] - kept.sum(), 1))
    spread = np.linalg.norm(rows[dominant] @ directions, axis=1)
    error = np.abs(misfit[dominant] - rows[dominant] @ directions @ change)
    return bool((error <= 2.0 * floor + _NOISE * noise * spread).all())
