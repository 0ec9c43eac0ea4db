"""Where exactness is out of reach: what stands far out of a dense misfit is replaced by the fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.network import evidence, trimmed
from netpurify.network.blocks import BLOCK
from netpurify.network.outcome import Outcome
from netpurify.network.records import EDGES, Grade
from netpurify.network.span import Span
from netpurify.network.weights import Array, Weights

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


def approximate(weights: Weights, spans: Sequence[Span], found: Outcome) -> None:
    """What stands far out in the units that could not be recovered, over the whole layer."""
    left = found.grade.reshape(weights.groups, weights.units) != Grade.RECOVERED
    far: list[_FarOut] = []
    for group, span in enumerate(spans):
        far += _far_out(weights, group, np.flatnonzero(left[group]), span, found)
    sizes = np.concatenate([np.zeros(0), *(part.sizes for part in far)])
    edge = evidence.border(sizes[np.isfinite(sizes)])
    for group in sorted({part.group for part in far}):
        out = np.zeros(weights.contaminated.shape[1:], np.bool_)
        values = np.zeros(out.shape, weights.contaminated.dtype)
        for part in far:
            if part.group == group:
                out[part.rows, part.units] = part.sizes > edge
                values[part.rows, part.units] = part.values
        missing = weights.missing[group] & left[group]
        out &= ~missing
        common = evidence.common_rows(
            out[:, left[group]], ~spans[group].live(), weights.bias_row, decayed=found.decay != 1.0, doubt=False
        )
        found.unjudged += int(out[common].sum())
        place = (out & ~common[:, None]) | missing
        found.replace(group, place, values[place])
        grades = found.grade[group * weights.units : (group + 1) * weights.units]
        grades[place.any(axis=0)] = Grade.APPROXIMATE


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
