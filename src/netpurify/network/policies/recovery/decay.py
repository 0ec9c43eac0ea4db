"""Weight decay: the factor by which training shrank a layer's initial weights, and whether it recovers units."""

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Array, Weights
from netpurify.network.fitting import Regressions, column_floors
from netpurify.network.policies.recovery import evidence, trimmed
from netpurify.network.policies.recovery.approximate import strongest
from netpurify.network.rounded import judge, refit

_PROBES = 16
"""Units that are fitted first: if none of them is recovered, the other units are not tried."""
_SAMPLE = 64
"""Units from which the decay is estimated."""


def choose_decay(regressions: Regressions, given: float | None) -> tuple[float, bool]:
    """The decay factor, and whether some units can be recovered with it.

    First no decay is tried (factor 1). Only if none of 16 probe units is recovered is a factor estimated, and it is
    kept only if it recovers a unit.

    Args:
        regressions: The regressions of the layer, without decay.
        given: The factor, if it is known.
    """
    first = 1.0 if given is None else given
    if _probe(regressions, first):
        return first, True
    if given is not None:
        return first, False
    weights, samples = regressions.weights, []
    for group, units in _sample(weights, _SAMPLE):
        span = regressions.spans[group]
        basis, live = _tight_basis(span, regressions.designs[group]), span.live()
        initial = weights.initial[group][:, units].astype(np.float64)
        if weights.bias:
            initial[-1] = 0.0  # biases are often exempt from decay, and must not bias the estimate
        samples.append(trimmed.UnitGroup(basis, weights.difference(group, units), initial, live))
    estimate = trimmed.decay(samples)
    if 0.0 < estimate < 1.0 and _probe(regressions, estimate):  # decay shrinks weights, and leaves their sign
        return estimate, True
    return 1.0, False


def _probe(regressions: Regressions, decay: float) -> bool:
    """Whether any of 16 units is recovered with this decay."""
    weights = regressions.weights
    for group, units in _sample(weights, _PROBES):
        design = regressions.designs[group]
        if design is not None:
            difference = weights.difference(group, units, decay)
            floors = regressions.noise_floors[group][..., units]
            solution = lad.solve(design, difference, noise_floor=column_floors(floors))
            if floors.ndim == 2:
                fitted = np.asarray(design.matrix @ np.asarray(solution.coefficients))
                fitted = design.matrix[:, design.pivots] @ refit(design, difference, floors, fitted)
                if judge(design, difference, floors, fitted).proven.any():
                    return True
                continue
            certificate = lad.verify(design, difference, solution.claim)
            altered = ~(np.asarray(solution.residual) == 0.0)
            if evidence.proven(certificate, design, altered, np.isnan(difference)).any():
                return True
    return False


def _sample(weights: Weights, count: int) -> list[tuple[int, NDArray[np.intp]]]:
    """About ``count`` units, at equal distances over the groups and within them."""
    groups = np.unique(np.linspace(0, weights.groups - 1, min(weights.groups, count)).astype(np.intp))
    each = max(1, count // groups.size)
    units = np.unique(np.linspace(0, weights.units - 1, min(weights.units, each)).astype(np.intp))
    return [(int(group), units) for group in groups]


def _tight_basis(span: Span, design: lad.Design | None) -> Array:
    """All directions of the span, if they are at most 3/4 of the reached coordinates; else the strongest of them."""
    if design is None or 4 * design.rank > 3 * design.live.size:
        return strongest(span)
    basis = np.zeros((span.fan_in, design.rank))
    basis[design.live] = design.compact
    return basis
