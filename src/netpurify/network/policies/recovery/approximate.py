"""Units that cannot be recovered exactly: replace what training cannot have made, and list what is only suspicious."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Array, Mask, Weights
from netpurify.network.fitting import BLOCK, Regressions
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery import evidence, half, trimmed
from netpurify.network.policies.recovery.unusual import beyond_training
from netpurify.network.records import EDGES, Grade

_SOFT_RANK, _SOFT_SHARE = 128, 8
"""A fit that is not exact has at most 128 directions, and at most one for every 8 coordinates of the fan-in."""


def strongest(span: Span) -> Array:
    """The strongest directions of the clean inputs: few enough that large residuals stand out, [fan-in, rank]."""
    return span.strongest(min(_SOFT_RANK, span.fan_in // _SOFT_SHARE))


@dataclass(frozen=True, slots=True)
class _FarOut:
    """Weights of one block that lie far from their fit or are missing; the others are not kept."""

    group: int
    rows: NDArray[np.intp]
    units: NDArray[np.intp]
    sizes: Array
    values: Array


def approximate(regressions: Regressions, outcome: Outcome) -> None:
    """In units that were not recovered, replace what training cannot have made, and list what is only suspicious.

    Args:
        regressions: The regressions of the layer.
        outcome: Takes the new weights and what is known of them.
    """
    weights, spans = regressions.weights, regressions.spans
    done = np.isin(outcome.grade, (Grade.RECOVERED, Grade.LOW_RANK))
    left = ~done.reshape(weights.groups, weights.units)
    far: list[_FarOut] = []
    for group, span in enumerate(spans):
        far += _far_out(weights, group, np.flatnonzero(left[group]), span, outcome)
    sizes = np.concatenate([np.zeros(0), *(block.sizes for block in far)])
    if not sizes.size:  # no weight is missing either: missing weights count as infinitely far
        return
    edge = evidence.border(sizes[np.isfinite(sizes)])
    differs = np.zeros(weights.contaminated.shape, np.bool_)
    values = np.zeros(differs.shape, weights.contaminated.dtype)
    for block in far:
        differs[block.group, block.rows, block.units] = block.sizes > edge
        values[block.group, block.rows, block.units] = block.values
    missing = weights.missing & left[:, None, :]
    differs &= ~missing
    for group, span in enumerate(spans):
        common = evidence.common_rows(
            differs[group][:, left[group]], ~span.live(), weights.bias_row, decayed=outcome.decay != 1.0, doubt=False
        )
        outcome.unjudged += int(differs[group][common].sum())
        differs[group][common] = False
    # In half precision a few units may be recovered where the others saw inputs that are not there: they are no model.
    altered = (
        differs
        if weights.grid is None and _others_altered(outcome)
        else _beyond_training(weights, differs, outcome.decay)
    )
    outcome.suspicious = differs & ~altered
    for group in range(weights.groups):
        chosen = altered[group] | missing[group]
        outcome.replace(group, chosen, values[group][chosen])
        grades = outcome.grade[group * weights.units : (group + 1) * weights.units]
        grades[chosen.any(axis=0)] = Grade.APPROXIMATE


def _others_altered(outcome: Outcome) -> bool:
    """Whether most of the recovered units had altered weights: then the other units most likely have some as well.

    If fewer than half of the units are recovered, they are no model for the others: after Adam, a few units agree on a
    fit, and what the others differ from theirs is training.
    """
    repaired = outcome.replaced.any(axis=1).reshape(-1)[outcome.grade == Grade.RECOVERED]
    enough = repaired.size >= evidence.FEW and 2 * repaired.size >= outcome.grade.size
    return enough and bool(2 * np.count_nonzero(repaired) > repaired.size)


def _beyond_training(weights: Weights, far: Mask, decay: float) -> Mask:
    """``beyond_training`` of a layer [groups, fan-in, units], with the units of all groups side by side."""

    def changes(chosen: NDArray[np.intp]) -> Array:
        groups, units = np.divmod(chosen, weights.units)
        sizes = []
        for group in np.unique(groups):
            own = units[groups == group]
            size = np.abs(weights.difference(group, own, decay)) * half.damping(weights, group, own)
            if decay != 1.0:  # weights without a gradient differ from the shrunk initial ones by rounding alone
                size[size <= weights.rounding(group)[..., own]] = 0.0
            sizes.append(size)
        return np.concatenate(sizes, axis=1)

    side_by_side = np.concatenate(list(far), axis=1)
    return np.stack(
        np.split(beyond_training(changes, side_by_side, each=weights.grid is not None), weights.groups, axis=1)
    )


def _far_out(weights: Weights, group: int, units: NDArray[np.intp], span: Span, outcome: Outcome) -> Iterator[_FarOut]:
    if not units.size:
        return
    basis, live = strongest(span), span.live()
    rounding = weights.rounding(group)
    for start in range(0, units.size, BLOCK):
        block = units[start : start + BLOCK]
        difference = weights.difference(group, block, outcome.decay)
        fit = trimmed.fit(trimmed.UnitGroup(basis, difference, np.zeros_like(difference), live))
        scale = np.maximum(fit.scale, rounding[..., block])
        outcome.error_scale[group * weights.units + block] = scale if scale.ndim == 1 else np.median(scale, axis=0)
        if not outcome.certificates:
            finite = np.abs(fit.residual[np.isfinite(fit.residual)])
            outcome.histogram += np.histogram(finite, EDGES)[0]
        sizes = np.abs(fit.residual) / scale
        sizes[np.isnan(sizes)] = np.inf  # missing
        rows, columns = np.nonzero(sizes > evidence.FAR)
        values = weights.start(group, block, outcome.decay)[rows, columns] + fit.fitted[rows, columns]
        yield _FarOut(group, rows, block[columns], sizes[rows, columns], values)
