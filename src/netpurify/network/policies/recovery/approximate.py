"""Where exactness is out of reach: what no training could have done is replaced, the merely suspicious is listed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Array, Mask, Weights
from netpurify.network.fitting import BLOCK, Regressions
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery import evidence, trimmed
from netpurify.network.policies.recovery.unusual import beyond_training
from netpurify.network.records import EDGES, Grade

_SOFT_RANK, _SOFT_SHARE = 128, 8
"""Where exactness is out of reach: directions of the fit, at most, and at most one in so many of the fan-in."""


def strongest(span: Span) -> Array:
    """Directions of a fit that leaves room to see what stands out, [fan-in, rank]."""
    return span.strongest(min(_SOFT_RANK, span.fan_in // _SOFT_SHARE))


@dataclass(frozen=True, slots=True)
class _FarOut:
    """Weights of one block that stand far out of its fit or are missing; the rest is not kept."""

    group: int
    rows: NDArray[np.intp]
    units: NDArray[np.intp]
    sizes: Array
    values: Array


def approximate(regressions: Regressions, found: Outcome) -> None:
    """Replace what no training could have done in the units that could not be recovered, and list what stands far out.

    Args:
        regressions: Those of the layer.
        found: Takes the new weights and what is known of them.
    """
    weights, spans = regressions.weights, regressions.spans
    left = found.grade.reshape(weights.groups, weights.units) != Grade.RECOVERED
    far: list[_FarOut] = []
    for group, span in enumerate(spans):
        far += _far_out(weights, group, np.flatnonzero(left[group]), span, found)
    sizes = np.concatenate([np.zeros(0), *(part.sizes for part in far)])
    if not sizes.size:  # nothing is missing either, which would be infinitely far out
        return
    edge = evidence.border(sizes[np.isfinite(sizes)])
    out = np.zeros(weights.contaminated.shape, np.bool_)
    values = np.zeros(out.shape, weights.contaminated.dtype)
    for part in far:
        out[part.group, part.rows, part.units] = part.sizes > edge
        values[part.group, part.rows, part.units] = part.values
    missing = weights.missing & left[:, None, :]
    out &= ~missing
    for group, span in enumerate(spans):
        common = evidence.common_rows(
            out[group][:, left[group]], ~span.live(), weights.bias_row, decayed=found.decay != 1.0, doubt=False
        )
        found.unjudged += int(out[group][common].sum())
        out[group][common] = False
    sure = out if _proven_altered(found) else _beyond_training(weights, out, found.decay)
    found.suspicious = out & ~sure
    for group in range(weights.groups):
        place = sure[group] | missing[group]
        found.replace(group, place, values[group][place])
        grades = found.grade[group * weights.units : (group + 1) * weights.units]
        grades[place.any(axis=0)] = Grade.APPROXIMATE


def _proven_altered(found: Outcome) -> bool:
    """Whether most of the units that were recovered had altered weights: then so have the others, most likely."""
    repaired = found.replaced.any(axis=1).reshape(-1)[found.grade == Grade.RECOVERED]
    return repaired.size >= evidence.FEW and bool(2 * np.count_nonzero(repaired) > repaired.size)


def _beyond_training(weights: Weights, far: Mask, decay: float) -> Mask:
    """``beyond_training`` of a layer [groups, fan-in, units], whose groups are units side by side."""

    def changes(chosen: NDArray[np.intp]) -> Array:
        groups, units = np.divmod(chosen, weights.units)
        parts = [weights.difference(group, units[groups == group], decay) for group in np.unique(groups)]
        return np.abs(np.concatenate(parts, axis=1))

    side_by_side = np.concatenate(list(far), axis=1)
    return np.stack(np.split(beyond_training(changes, side_by_side), weights.groups, axis=1))


def _far_out(weights: Weights, group: int, units: NDArray[np.intp], span: Span, found: Outcome) -> Iterator[_FarOut]:
    if not units.size:
        return
    basis, live = strongest(span), span.live()
    rounding = weights.rounding(group)
    for start in range(0, units.size, BLOCK):
        part = units[start : start + BLOCK]
        difference = weights.difference(group, part, found.decay)
        fit = trimmed.fit(trimmed.Part(basis, difference, np.zeros_like(difference), live))
        scale = np.maximum(fit.scale, rounding[part])
        found.error_scale[group * weights.units + part] = scale
        if not found.certificates:
            finite = np.abs(fit.residual[np.isfinite(fit.residual)])
            found.histogram += np.histogram(finite, EDGES)[0]
        sizes = np.abs(fit.residual) / scale
        sizes[np.isnan(sizes)] = np.inf  # missing
        rows, columns = np.nonzero(sizes > evidence.FAR)
        values = weights.start(group, part, found.decay)[rows, columns] + fit.fitted[rows, columns]
        yield _FarOut(group, rows, part[columns], sizes[rows, columns], values)
