"""Weight decay: the factor by which training shrank a layer's initial weights, and whether it recovers units."""

from collections.abc import Iterator, Sequence

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
_FITTED = 3
"""Units in which L1 regression fits the decay together with the change."""
Chosen = Sequence[tuple[int, NDArray[np.intp]]]
"""Some units of a layer: the number of a group and units within it, for one group after the other."""


def choose_decay(regressions: Regressions, given: float | None, probes: Chosen | None = None) -> tuple[float, bool]:
    """The decay factor, and whether some units can be recovered with it.

    First no decay is tried (factor 1). Only if none of 16 probe units is recovered is a factor estimated, by L1
    regression and then by trimmed least squares, and it is kept only if it recovers a unit.

    Args:
        regressions: The regressions of the layer, without decay.
        given: The factor, if it is known.
        probes: The units to try; ``None`` for 16 at equal distances.
    """
    first = 1.0 if given is None else given
    tried = sample_units(regressions.weights, _PROBES) if probes is None else probes
    if _any_agrees(regressions, first, tried):
        return first, True
    if given is not None:
        return first, False
    for estimate in (_fitted_decay, _trimmed_decay):
        factor = estimate(regressions, tried)
        shrinks = 0.0 < factor < 1.0  # decay shrinks weights, and leaves their sign
        if shrinks and _any_agrees(regressions, factor, tried):
            return factor, True
    return 1.0, False


def _fitted_decay(regressions: Regressions, units: Chosen) -> float:
    """The decay as the median over a few units of L1 regressions that fit it together with the change.

    The initial weights of a unit are one more column of its design.
    """
    weights, factors = regressions.weights, []
    for group, chosen in units:
        design = regressions.designs[group]
        if design is None:
            continue
        for unit in chosen[: _FITTED - len(factors)]:
            column = weights.initial[group][:, [unit]].astype(np.float64)
            if column.any():
                with_initial = lad.Design.prepare(np.hstack([design.matrix[:, design.pivots], column]))
                solution = lad.solve(with_initial, weights.difference(group, np.array([unit])))
                factors.append(1.0 + float(np.asarray(solution.coefficients)[-1, 0]))
    return float(np.median(factors)) if factors else 1.0


def _trimmed_decay(regressions: Regressions, _: Chosen) -> float:
    """The decay by trimmed least squares over many units, which is less exact: its rounds end before it converges."""
    weights, samples = regressions.weights, []
    for group, units in sample_units(weights, _SAMPLE):
        span = regressions.spans[group]
        basis, live = _tight_basis(span, regressions.designs[group]), span.live()
        initial = weights.initial[group][:, units].astype(np.float64)
        initial[weights.bias_row] = 0.0  # biases are often exempt from decay, and must not bias the estimate
        samples.append(trimmed.UnitGroup(basis, weights.difference(group, units), initial, live))
    return trimmed.decay(samples)


def _any_agrees(regressions: Regressions, decay: float, units: Chosen) -> bool:
    """Whether any of these units is recovered with this decay."""
    return any(agree.any() for agree in agreeing(regressions, decay, units))


def agreeing(regressions: Regressions, decay: float, units: Chosen) -> Iterator[NDArray[np.bool_]]:
    """Which units are recovered with this decay, for one group after the other; groups without a design are left out.

    Args:
        regressions: The regressions of the layer.
        decay: Factor that weight decay left on the initial weights.
        units: The units to fit.
    """
    weights = regressions.weights
    for group, chosen in units:
        design = regressions.designs[group]
        if design is not None:
            difference = weights.difference(group, chosen, decay)
            floors = regressions.noise_floors[group][..., chosen]
            solution = lad.solve(design, difference, noise_floor=column_floors(floors))
            if floors.ndim == 2:
                fitted = np.asarray(design.matrix @ np.asarray(solution.coefficients))
                fitted = design.matrix[:, design.pivots] @ refit(design, difference, floors, fitted)
                yield judge(design, difference, floors, fitted).proven
                continue
            certificate = lad.verify(design, difference, solution.claim)
            altered = ~(np.asarray(solution.residual) == 0.0)
            yield evidence.proven(certificate, design, altered, np.isnan(difference), decayed=decay != 1.0)


def sample_units(weights: Weights, count: int) -> list[tuple[int, NDArray[np.intp]]]:
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
