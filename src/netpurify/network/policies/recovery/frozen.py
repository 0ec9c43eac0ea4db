"""Layers that were never trained: any difference from the initial weights is an alteration."""

import numpy as np

from netpurify.network.adapter.weights import Mask, Weights
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery import evidence
from netpurify.network.records import EDGES, Grade


def restore_frozen(weights: Weights) -> Outcome | None:
    """Set a layer that was never trained back to its initial weights; ``None`` if it was trained."""
    equal = weights.contaminated == weights.initial
    altered = np.concatenate(list(~equal), axis=1) if weights.frozen else _alterations(weights, equal)
    if altered is None:
        return None
    outcome = Outcome(weights)
    outcome.frozen = True
    outcome.grade[:] = Grade.RESTORED
    for group, chosen in enumerate(np.split(altered, weights.groups, axis=1)):
        outcome.replace(group, chosen, weights.initial[group][chosen])
        sizes = np.abs(weights.difference(group, slice(None))[chosen])
        outcome.histogram += np.histogram(sizes[np.isfinite(sizes)], EDGES)[0]
    outcome.zeros = int(altered.size - altered.sum())
    outcome.noise_floor[:] = 0.0
    return outcome


def _alterations(weights: Weights, equal: Mask) -> Mask | None:
    """Weights that differ from the initial ones, with the groups side by side; ``None`` if the layer was trained."""
    altered = evidence.frozen(
        np.concatenate(list(weights.contaminated), axis=1),
        np.concatenate(list(weights.initial), axis=1),
        np.concatenate([weights.rounding(group) for group in range(weights.groups)]),
    )
    return None if altered is None or _rounded_away(weights, equal) else altered


def _rounded_away(weights: Weights, equal: Mask) -> bool:
    """Whether most differences are as small as rounding: training steps so short that most were rounded to nothing."""
    small, count = 0, int((~equal).sum())
    for group in range(weights.groups):
        sizes = np.abs(weights.difference(group, slice(None)))
        small += int((~equal[group] & (sizes <= weights.rounding(group))).sum())
    return 2 * small > count
