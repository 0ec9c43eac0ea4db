"""Layers that were never trained: any difference from the initial weights is an alteration."""

import numpy as np

from netpurify.network.adapter.weights import Mask, Weights
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery import evidence
from netpurify.network.records import EDGES, Grade


def restore_frozen(weights: Weights) -> Outcome | None:
    """Set a layer that was never trained back to its initial weights; ``None`` if it was trained."""
    initial = weights.stored_initial
    equal = weights.contaminated == initial
    altered = np.concatenate(list(~equal), axis=1) if weights.frozen else _alterations(weights, equal)
    if altered is None:
        return None
    outcome = Outcome(weights)
    outcome.frozen = True
    outcome.grade[:] = Grade.RESTORED
    for group, chosen in enumerate(np.split(altered, weights.groups, axis=1)):
        outcome.replace(group, chosen, initial[group][chosen])
        sizes = np.abs(weights.difference(group, slice(None))[chosen])
        outcome.histogram += np.histogram(sizes[np.isfinite(sizes)], EDGES)[0]
    if weights.grid is not None:
        outcome.unrounded = weights.initial
    outcome.zeros = int(altered.size - altered.sum())
    outcome.noise_floor[:] = 0.0
    return outcome


_FEW_STEPS = 2
"""In half precision, a difference of at most this many steps of the grid may be what rounding left of training."""
_MANY_SHORT = 4
"""A layer in half precision was trained, however little, if more than one in this many differences are so short.
Flipped bits make one in eight."""


def _alterations(weights: Weights, equal: Mask) -> Mask | None:
    """Weights that differ from the initial ones, with the groups side by side; ``None`` if the layer was trained.

    Where steps of training were rounded away, a layer that was trained has most of its initial bits too. The comparison
    of all tensors, which looks at the sizes of the entries that differ, then has the only say.
    """
    if weights.rounded_away and not equal.all():
        return None
    altered = evidence.frozen(
        np.concatenate(list(weights.contaminated), axis=1),
        np.concatenate(list(weights.stored_initial), axis=1),
        np.concatenate([weights.rounding(group) for group in range(weights.groups)], axis=-1),
    )
    return None if altered is None or _rounded_away(weights, equal) else altered


def _rounded_away(weights: Weights, equal: Mask) -> bool:
    """Whether most differences are as small as rounding: training steps so short that most were rounded to nothing."""
    small, count = 0, int((~equal).sum())
    if weights.grid is not None:
        return _MANY_SHORT * int((~equal & weights.few_steps(_FEW_STEPS)).sum()) > count
    for group in range(weights.groups):
        sizes = np.abs(weights.difference(group, slice(None)))
        small += int((~equal[group] & (sizes <= weights.rounding(group))).sum())
    return 2 * small > count
