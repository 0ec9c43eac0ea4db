"""Fits of weights that are stored in half precision: each agrees within its own rounding, or stands far outside it.

A stored weight is the true one plus an error of at most half a step of its own binade. The step differs from weight to
weight, so one noise floor for a whole unit would hide most alterations or invent some. Here the fit of ``lad.solve`` is
made again by least squares, in which every weight counts by its own rounding, and judged weight by weight. What
rounding does to the fit itself is known as well: independent errors of at most d are no wider than normal ones of
standard deviation d / sqrt(3), so the error of a fitted value has a standard deviation that follows from the design.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import gammaln

from netpurify import lad
from netpurify.threads import one_blas_thread

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
DEVIATIONS = 5.0
"""In standard deviations of the fitted value: so much is allowed for the rounding of the other weights."""
CLEAR = 4.0
"""A weight is altered if it lies farther from the fit than this many times what rounding explains: a weight that is one
or two steps of its grid away from where it should be is never called altered."""
_KEPT = 2.0
"""A round of least squares leaves out the weights that lie farther from the fit than this many times that."""
_ODDS = 1e-9
"""Largest odds that so many weights agree on a fit by chance. A weight agrees by chance with a probability of at most
(what rounding explains) / (median fitted change); the weights that the fit has used up, as many as its rank, are not
counted, and the odds are multiplied by the number of ways to choose the weights that do not agree."""
_SURPLUS = 5
"""How many weights must agree on a fit beyond its rank; of rows of the design that are multiples of one another, only
one counts."""
_REDUNDANCY = 0.75
"""For each weight that does not agree, this many must agree beyond the rank."""
_MISFIT = 0.5
"""Largest mean square of the residuals of weights that agree, in squares of their rounding, for each weight beyond the
rank. It is 1/3 or less if rounding is all there is; if training left the span of the clean inputs, it is larger."""
_EXCESS = 4.0
"""Where training had errors of its own, such as products in half precision, the weights with the smallest rounding show
them: this many times what their median residual has in excess of rounding is added to what is explained."""
_UNCLEAR = 0.5
"""Weights outside their rounding that are not clearly altered: at most this many for each one that is, and ..."""
_FEW_UNCLEAR = 0.01
"""... this share of those that agree. If there are more, the errors are not those of one rounding."""
_ROUNDS = 8
"""Most rounds of least squares."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of fits through rounded weights. Arrays are [fan-in, units] or [units].

    Attributes:
        altered: Weights that lie clearly outside what rounding explains, or are missing.
        explained: Largest residual that rounding explains.
        proven: Units whose fit is the truth, up to rounding.
    """

    altered: Mask
    explained: Array
    proven: Mask


@dataclass(frozen=True, slots=True)
class UnitSizes:
    """Sizes of one unit's fitted changes, residuals (NaN where missing) and roundings, [live rows]."""

    fitted: Array
    residual: Array
    rounding: Array


def refit(design: lad.Design, difference: Array, rounding: Array, fitted: Array) -> Array:
    """Fit again through all weights that agree, each weighted by its own rounding.

    Args:
        design: The design.
        difference: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        rounding: Largest error of each difference that rounding can have made, [fan-in, units].
        fitted: A robust fit to begin with, such as that of ``lad.solve``, [fan-in, units].

    Returns:
        Coefficients of the design's independent columns, [rank, units].
    """
    live, basis = design.live, design.compact
    coordinates = basis.T @ fitted[live]
    with one_blas_thread():
        for unit in range(difference.shape[1]):
            own, reach = difference[live, unit], rounding[live, unit]
            coordinates[:, unit] = _refit_unit(basis, own, reach, coordinates[:, unit])
    wide = np.zeros((coordinates.shape[1], design.basis.shape[1]))
    wide[:, : design.rank] = coordinates.T
    return design.coefficients(wide)[:, : design.rank].T


def _refit_unit(basis: Array, difference: Array, rounding: Array, start: Array) -> Array:
    residual = np.abs(difference - basis @ start)
    if np.isnan(residual).all():
        return start
    # The first fit has an error of its own, which is no larger than its typical residual.
    kept = residual <= 2.0 * rounding + np.nanmedian(residual)
    best = start
    for _ in range(_ROUNDS):
        if np.count_nonzero(kept) <= basis.shape[1]:
            return best
        factor = _factor(basis, kept, rounding)
        if factor is None:
            return best
        weights = np.where(kept, 1.0 / np.square(rounding), 0.0)
        best = scipy.linalg.cho_solve((factor, True), basis.T @ (weights * np.where(kept, difference, 0.0)))
        bound = rounding + DEVIATIONS * _deviations(basis, factor)
        agreeing = np.abs(difference - basis @ best) <= _KEPT * bound
        if (agreeing == kept).all():
            break
        kept = agreeing
    return best


def _factor(basis: Array, kept: Mask, rounding: Array) -> Array | None:
    """Cholesky factor of the normal matrix; ``None`` if the kept rows do not determine the fit."""
    rows = basis[kept] / rounding[kept, None]
    try:
        return scipy.linalg.cholesky(rows.T @ rows, lower=True)
    except np.linalg.LinAlgError:
        return None


def _deviations(basis: Array, factor: Array) -> Array:
    """Standard deviations of the fitted values."""
    spread = scipy.linalg.solve_triangular(factor, basis.T, lower=True)
    return np.sqrt(np.square(spread).sum(axis=0) / 3.0)


def judge(design: lad.Design, difference: Array, rounding: Array, fitted: Array) -> Judgement:
    """What fits prove, whoever made them; see ``refit`` for the arguments.

    Which weights agree is found in two steps: those within their own rounding give the error of the fit, and with this
    error the others are judged.
    """
    live, basis = design.live, design.compact
    residual = np.abs(difference - fitted)
    explained, proven = rounding.copy(), np.zeros(difference.shape[1], np.bool_)
    altered = ~(residual <= CLEAR * explained)
    with one_blas_thread():
        for unit in range(difference.shape[1]):
            kept = residual[live, unit] <= rounding[live, unit]
            factor = _factor(basis, kept, rounding[live, unit]) if kept.sum() > design.rank else None
            if factor is None:
                continue
            explained[live, unit] += DEVIATIONS * _deviations(basis, factor)
            explained[:, unit] += _EXCESS * _excess(residual[live, unit], rounding[live, unit])
            agreeing = residual[live, unit] <= explained[live, unit]
            distinct = int(design.rows.count_distinct(agreeing[None])[0])
            sizes = UnitSizes(np.abs(fitted[live, unit]), residual[live, unit], rounding[live, unit])
            proven[unit] = _enough(sizes, explained[live, unit], distinct, design.rank)
            altered[:, unit] = ~(residual[:, unit] <= CLEAR * explained[:, unit])
    return Judgement(altered, explained, proven)


def _excess(residual: Array, rounding: Array) -> float:
    """Median residual of the quarter of a unit's weights with the smallest rounding, less what rounding makes it."""
    present = ~np.isnan(residual)
    small = present & (rounding <= np.quantile(rounding[present], 0.25))
    return max(0.0, float(np.median(residual[small]) - 0.5 * np.median(rounding[small])))


def _enough(sizes: UnitSizes, explained: Array, distinct: int, rank: int) -> bool:
    """Whether so many weights of one unit agree on its fit, and agree so well, that it is the truth up to rounding.

    Args:
        sizes: What is known of its weights.
        explained: Largest residuals that rounding explains.
        distinct: How many weights agree, multiples of the same row of the design counted once.
        rank: How many directions the fit has.
    """
    agreeing, far = sizes.residual <= explained, sizes.residual > CLEAR * explained
    unclear = ~agreeing & ~far & ~np.isnan(sizes.residual)
    count, outside = int(agreeing.sum()), int(far.sum() + unclear.sum())
    if distinct - rank < max(_SURPLUS, _REDUNDANCY * outside):
        return False
    if unclear.sum() > _UNCLEAR * far.sum() + _FEW_UNCLEAR * count:
        return False
    misfit = np.square(sizes.residual[agreeing] / sizes.rounding[agreeing]).sum()
    if misfit > _MISFIT * (count - rank):
        return False
    change = max(float(np.median(sizes.fitted[agreeing])), np.finfo(np.float64).tiny)
    by_chance = np.sort(np.minimum(1.0, explained[agreeing] / change))[rank + count - distinct :]
    choices = gammaln(count + outside + 1) - gammaln(count + 1) - gammaln(outside + 1)
    return bool(np.log(by_chance).sum() + choices < np.log(_ODDS))
