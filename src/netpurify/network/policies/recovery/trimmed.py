"""Trimmed least squares, which leaves large residuals out: for weight decay, and for fits that cannot be exact.

Training leaves c * initial + (a vector in the span of the inputs), with one factor c for the whole layer, below 1 under
weight decay. If the clean inputs span what the training inputs span, only rounding remains: then L1 regression is
exact, and this module only estimates c. Otherwise every weight has some misfit. The scale of the misfit
tells how good a fit can be, and weights that lie many times the scale away from the fit may be altered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.threads import one_blas_thread

Array = NDArray[np.float64]
_CUT = 3.5
"""In robust standard deviations: a round leaves out the residuals that are larger."""
_ROUNDS = 80
"""Most rounds that are made; they end earlier if the fit moves by less than 0.001 of its scale."""
_SIGNIFICANT = 8.0
"""In standard errors: an estimate of c counts only if it is farther than this from 1."""


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """Units that share a basis.

    Attributes:
        basis: Orthonormal directions, [fan-in, rank].
        difference: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        initial: Initial weights, [fan-in, units].
        live: Rows that a clean input reaches, [fan-in]; only these count for the misfit.
    """

    basis: Array
    difference: Array
    initial: Array
    live: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrimmedFit:
    """The fit of a group of units.

    Attributes:
        fitted: Fitted differences, [fan-in, units].
        residual: Difference minus fit, [fan-in, units]; NaN where a weight is missing.
        scale: Robust standard deviation of each unit's residuals, [units]; infinite if it is not known.
    """

    fitted: Array
    residual: Array
    scale: Array


def fit(group: UnitGroup) -> TrimmedFit:
    """The fit of one group, without decay."""
    return _rounds([group], shrink=False)[1][0]


def decay(groups: Sequence[UnitGroup]) -> float:
    """The factor c of the initial weights, estimated from all units; 1 unless c differs significantly from 1."""
    factor, fits = _rounds(groups, shrink=True)
    if not all(np.isfinite(fit.scale).all() for fit in fits):
        return 1.0
    error, energy = 0.0, 0.0
    for group, fit in zip(groups, fits, strict=True):
        agreeing = np.abs(fit.residual) <= _CUT * fit.scale
        squares = np.square(_outside_span(group)) * agreeing
        error += float((squares * np.square(fit.scale)).sum())
        energy += float(squares.sum())
    if not energy:
        return 1.0
    return factor if abs(factor - 1.0) > _SIGNIFICANT * np.sqrt(error) / energy else 1.0


def _rounds(groups: Sequence[UnitGroup], *, shrink: bool) -> tuple[float, list[TrimmedFit]]:
    """Alternate between leaving large residuals out and a step of least squares on the rest.

    The step takes the fitted values for the weights that are left out. So all units share one basis, and a step
    consists of matrix products.
    """
    factor = 1.0
    fitted = [np.zeros_like(group.difference) for group in groups]
    outside = [_outside_span(group) for group in groups] if shrink else []
    energy = sum(float(np.square(rest).sum()) for rest in outside)
    with one_blas_thread():
        for _ in range(_ROUNDS):
            fits = [_residuals(group, factor, values) for group, values in zip(groups, fitted, strict=True)]
            kept = [np.where(np.abs(fit.residual) <= _CUT * fit.scale, fit.residual, 0.0) for fit in fits]
            step = 0.0
            if energy:
                pairs = zip(kept, outside, strict=True)
                step = sum(float((residual * rest).sum()) for residual, rest in pairs) / energy
                factor += step
            moved = 0.0
            for group, residual, values, fit in zip(groups, kept, fitted, fits, strict=True):
                change = group.basis @ (group.basis.T @ (residual - step * group.initial))
                values += change
                moved = max(moved, float((np.abs(change).max(axis=0, initial=0.0) / fit.scale).max(initial=0.0)))
            if moved < 1e-3:
                break
    return factor, [_residuals(group, factor, values) for group, values in zip(groups, fitted, strict=True)]


def _residuals(group: UnitGroup, factor: float, fitted: Array) -> TrimmedFit:
    """The residuals of a fit, and their scale in each unit."""
    residual = group.difference - (factor - 1.0) * group.initial - fitted
    sizes = np.abs(residual[group.live])
    freedom = np.sqrt(max(0.05, 1.0 - group.basis.shape[1] / max(1, sizes.shape[0])))
    # A unit in which most weights never changed tells nothing of the misfit: it was masked, or few inputs reached it.
    trained = 2 * np.count_nonzero(group.difference[group.live], axis=0) > sizes.shape[0]
    trained &= np.isfinite(sizes).any(axis=0)
    scale = np.full(residual.shape[1], np.nan)
    scale[trained] = 1.4826 * np.nanmedian(sizes[:, trained], axis=0) / freedom
    usual = float(np.median(scale[trained])) if trained.any() else np.inf
    scale[~trained] = usual
    return TrimmedFit(fitted, residual, np.maximum(scale, max(1e-3 * usual, np.finfo(np.float64).tiny)))


def _outside_span(group: UnitGroup) -> Array:
    """The component of the initial weights that is orthogonal to the span."""
    with one_blas_thread():
        return group.initial - group.basis @ (group.basis.T @ group.initial)
