"""Rules for half precision: values on a grid repeat by themselves, and rounding may hide all that training did."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Weights
from netpurify.network.policies.recovery import evidence
from netpurify.network.rounded import CLEAR, DEVIATIONS

BELOW = 2.0
"""Where half of the changes are at most this many times their rounding, agreement within rounding proves next to
nothing, and the plan and the record say so."""
_SAMPLE = 256
"""Units of a group, at equal distances, from which rounding and changes are estimated."""


def smallest_visible(weights: Weights, share: float) -> float:
    """About how large an alteration of the median weight must be to be seen; 0 in float32 and float64.

    Args:
        weights: The weights of a layer.
        share: Directions of the clean inputs over reached coordinates, on which the rounding of the fit depends.
    """
    if weights.grid is None:
        return 0.0
    rounding = float(np.median([np.median(weights.rounding(group)) for group in range(weights.groups)]))
    return CLEAR * rounding * (1.0 + DEVIATIONS * np.sqrt(share / 3.0))


def damping(weights: Weights, group: int, units: NDArray[np.intp]) -> NDArray[np.float64] | float:
    """Factors for sizes of changes, [fan-in, units], that take out the spread which rounding gives them; 1 in float32.

    A change that is no more than rounding is as large as the step of the grid, which differs from weight to weight by
    powers of two: such changes would look like a heavy tail.
    """
    if weights.grid is None:
        return 1.0
    initial = weights.initial[group]
    sizes = np.abs(weights.difference(group, _sample(weights)))
    usual = float(evidence.middle(np.where(sizes > 0.0, sizes, np.inf).reshape(-1), 0))
    rounding = weights.grid.half_steps(initial[:, units]) + weights.grid.initial_half_steps(initial[:, units])
    return usual / np.hypot(usual, rounding) if usual > 0.0 else 1.0


def _sample(weights: Weights) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, weights.units - 1, min(weights.units, _SAMPLE)).astype(np.intp))


def shown(change: NDArray[np.float64], floor: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Units in which the usual change, [fan-in, units], is larger than rounding explains, so that training shows."""
    ratios = np.abs(change) / floor
    ratios[:, np.isnan(ratios).all(axis=0)] = 0.0  # all of the unit is missing
    return np.nanmedian(ratios, axis=0) > 1.0


def hidden_by_rounding(weights: Weights, spans: Sequence[Span]) -> bool:
    """Whether the usual change of a layer in half precision is hardly larger than rounding."""
    if weights.grid is None:
        return False
    ratios = []
    chosen = _sample(weights)
    for group, span in enumerate(spans):
        changes = np.abs(weights.difference(group, chosen)[span.live()])
        ratios.append((changes / weights.rounding(group)[span.live()][:, chosen]).reshape(-1))
    joined = np.concatenate(ratios)
    joined = joined[~np.isnan(joined)]
    return bool(joined.size) and float(np.median(joined)) <= BELOW


def repeated(
    fitted: NDArray[np.float64],
    residual: NDArray[np.float64],
    floor: NDArray[np.float64],
    altered: NDArray[np.bool_],
    rank: int,
) -> NDArray[np.bool_]:
    """The same as ``evidence.repeated`` for half precision, where changes lie on a grid and always repeat.

    The first sign is looked for in the fitted values. For the second sign, residuals are the same if they differ by no
    more than rounding, unless so many are about as large that some are close to one another by chance.

    Args:
        fitted: Fitted changes, [fan-in, units].
        residual: Change minus fit, [fan-in, units]; NaN where missing.
        floor: Differences up to this are rounding, [fan-in, units].
        altered: Weights that would be called altered, [fan-in, units].
        rank: How many directions the fit has.
    """
    changed = np.where(~altered & (np.abs(fitted) > floor), fitted, np.nan)
    apart = 1e-6 * np.median(floor, axis=0)
    different = (np.diff(np.sort(changed, axis=0), axis=0) > apart).sum(axis=0) + 1
    few = (different < rank + evidence.SURPLUS) & (2 * different <= np.isfinite(changed).sum(axis=0))
    for unit in np.flatnonzero((altered & np.isfinite(residual)).sum(axis=0) >= evidence.SURPLUS):
        rows = altered[:, unit] & np.isfinite(residual[:, unit])
        values, reach = residual[rows, unit], floor[rows, unit]
        ordered = np.sort(values)
        close, near = (evidence.count_within(ordered, values, times * reach) - 1 for times in (1.0, evidence.NEAR))
        repeats = int(((close >= 1) & (4 * close >= near) & ~evidence.is_power_of_two(values, reach)).sum())
        few[unit] |= repeats >= evidence.SURPLUS and 2 * repeats > values.size
    return few
