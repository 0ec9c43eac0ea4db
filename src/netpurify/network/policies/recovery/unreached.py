"""Rows that no input reaches: their weights are the initial ones whatever the optimiser, up to one factor of decay.

Where no fit is exact, as after Adam, this part of a layer still is. A weight whose input is always zero has no
gradient: Adam, RMSprop and their kin leave it as it is, and decoupled weight decay multiplies it by the same factor as
all others. That no clean input reaches a row is not enough, since a training input may have. So the weights themselves
must show it: in most units they are the initial ones times one factor, and those that differ are scattered one by one.
"""

import numpy as np

from netpurify.network.adapter.weights import Array, Mask, Weights
from netpurify.network.fitting import Regressions
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery import evidence
from netpurify.network.records import Grade


def restore_unreached(regressions: Regressions, outcome: Outcome) -> int:
    """In units that were not recovered, set altered weights that no input reaches back; gives how many there are.

    If fewer than four weights in as many rows and units differ, they are listed as suspicious and kept: a training
    input that activates a single unit could have changed one weight of a row.

    Args:
        regressions: The regressions of the layer.
        outcome: Takes the new weights and what is known of them.
    """
    weights, restored = regressions.weights, 0
    if weights.grid is not None:  # every row is rounded, so that none shows that it was never trained
        return 0
    left = outcome.grade.reshape(weights.groups, weights.units) != Grade.RECOVERED
    for group, span in enumerate(regressions.spans):
        found = _altered(weights, group, ~span.live(), regressions.noise_floors[group]) if left[group].any() else None
        if found is None:
            continue
        factor, differs = found
        chosen = differs & left[group]
        if min(np.count_nonzero(differs.any(axis=axis)) for axis in (0, 1)) < evidence.FEW:
            outcome.suspicious[group] |= chosen & ~outcome.replaced[group]
            continue
        outcome.replace(group, chosen, weights.start(group, slice(None), factor)[chosen])
        outcome.suspicious[group] &= ~chosen
        grades = outcome.grade[group * weights.units : (group + 1) * weights.units]
        grades[chosen.any(axis=0)] = Grade.APPROXIMATE
        restored += int(chosen.sum())
    return restored


def _altered(weights: Weights, group: int, dead: Mask, floor: Array) -> tuple[float, Mask] | None:
    """The factor of decay in rows that no input reaches, and what differs there; ``None`` if the rows were trained."""
    contaminated, initial = weights.contaminated[group][dead], weights.initial[group][dead]
    usable = (initial != 0.0) & ~weights.missing[group][dead]
    if not usable.any():
        return None
    ratio = float(np.median(contaminated[usable].astype(np.float64) / initial[usable]))
    for factor in (1.0, ratio):
        if not 0.0 < factor <= 1.0:  # decay shrinks weights, and leaves their sign
            continue
        start = (factor * initial.astype(np.float64)).astype(initial.dtype)
        # Without decay the bits are the same; every step of decay rounds.
        with np.errstate(over="ignore", invalid="ignore"):
            close = np.abs(contaminated.astype(np.float64) - start) <= floor
        values = contaminated if factor == 1.0 else np.where(close, start, contaminated)
        idle = 2 * (values == start).sum(axis=1) > values.shape[1]  # rows that training reached are not judged
        found = evidence.frozen(values[idle], start[idle], floor)
        if found is not None and idle.any() and evidence.scattered(found, evidence.UNLIKELY):
            differs = np.zeros(weights.contaminated.shape[1:], np.bool_)
            differs[np.flatnonzero(dead)[idle]] = found
            return factor, differs
    return None
