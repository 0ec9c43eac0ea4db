"""Least squares that leaves out what stands out: weight decay, and fits where exactness is out of reach.

Training leaves c * initial + (something in the span), with one c for the whole layer, below 1 under weight decay. Where
the span is that of the training inputs and rounding is all that is left over, L1 is exact and this module only finds c.
Elsewhere a dense misfit remains, its scale says how good a fit can be, and what stands far out of it is altered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.threads import one_blas_thread

Array = NDArray[np.float64]
_CUT = 3.5
"""In robust standard deviations: what a round leaves out."""
_ROUNDS = 80
_SIGNIFICANT = 8.0
"""In standard errors: how far from 1 an estimate of c must lie to be believed."""


@dataclass(frozen=True, slots=True)
class Part:
    """Units that share a basis.

    Attributes:
        basis: Orthonormal directions, [fan-in, rank].
        difference: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        initial: Initial weights, [fan-in, units].
        live: Rows that clean inputs light, [fan-in]; the others say nothing of the misfit.
    """

    basis: Array
    difference: Array
    initial: Array
    live: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrimmedFit:
    """One part's fit: residual [fan-in, units], NaN where missing, and robust scale [units], infinite if unknown."""

    fitted: Array
    residual: Array
    scale: Array


def fit(part: Part) -> TrimmedFit:
    """The fit of one part, without decay."""
    return _rounds([part], shrink=False)[1][0]


def decay(parts: Sequence[Part]) -> float:
    """The factor c of the initial weights, pooled over all units; 1 where nothing says otherwise."""
    factor, fits = _rounds(parts, shrink=True)
    if not all(np.isfinite(found.scale).all() for found in fits):
        return 1.0
    error, energy = 0.0, 0.0
    for part, found in zip(parts, fits, strict=True):
        outside = _outside(part)
        agreeing = np.abs(found.residual) <= _CUT * found.scale
        squares = np.square(outside) * agreeing
        error += float((squares * np.square(found.scale)).sum())
        energy += float(squares.sum())
    if not energy:
        return 1.0
    return factor if abs(factor - 1.0) > _SIGNIFICANT * np.sqrt(error) / energy else 1.0


def _rounds(parts: Sequence[Part], *, shrink: bool) -> tuple[float, list[TrimmedFit]]:
    """Alternates between leaving out what stands out and a step of least squares on the rest.

    The step fills what is left out with its fitted value, so all units share one basis: products only.
    """
    factor = 1.0
    fitted = [np.zeros_like(part.difference) for part in parts]
    outside = [_outside(part) if shrink else None for part in parts]
    energy = sum(float(np.square(part).sum()) for part in outside if part is not None)
    fits: list[TrimmedFit] = []
    with one_blas_thread():
        for _ in range(_ROUNDS):
            fits = [_look(part, factor, found) for part, found in zip(parts, fitted, strict=True)]
            kept = [np.where(np.abs(it.residual) <= _CUT * it.scale, it.residual, 0.0) for it in fits]
            step = 0.0
            if energy:
                pairs = zip(kept, outside, strict=True)
                step = sum(float((rest * part).sum()) for rest, part in pairs if part is not None) / energy
                factor += step
            moved = 0.0
            for part, rest, found, seen in zip(parts, kept, fitted, fits, strict=True):
                change = part.basis @ (part.basis.T @ (rest - step * part.initial))
                found += change
                moved = max(moved, float((np.abs(change).max(axis=0, initial=0.0) / seen.scale).max(initial=0.0)))
            if moved < 1e-3:
                break
    return factor, [_look(part, factor, found) for part, found in zip(parts, fitted, strict=True)]


def _look(part: Part, factor: float, fitted: Array) -> TrimmedFit:
    residual = part.difference - (factor - 1.0) * part.initial - fitted
    sizes = np.abs(residual[part.live])
    freedom = np.sqrt(max(0.05, 1.0 - part.basis.shape[1] / max(1, sizes.shape[0])))
    # A unit of which most weights never changed says nothing of the misfit: it was masked, or lit by few inputs.
    spoken = 2 * np.count_nonzero(part.difference[part.live], axis=0) > sizes.shape[0]
    spoken &= np.isfinite(sizes).any(axis=0)
    scale = np.full(residual.shape[1], np.nan)
    scale[spoken] = 1.4826 * np.nanmedian(sizes[:, spoken], axis=0) / freedom
    usual = float(np.median(scale[spoken])) if spoken.any() else np.inf
    scale[~spoken] = usual
    return TrimmedFit(fitted, residual, np.maximum(scale, max(1e-3 * usual, np.finfo(np.float64).tiny)))


def _outside(part: Part) -> Array:
    """What of the initial weights lies outside the span."""
    with one_blas_thread():
        return part.initial - part.basis @ (part.basis.T @ part.initial)
