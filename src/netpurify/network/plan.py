"""What can be repaired in a network, and at what cost, before anything is changed."""

import time
from collections.abc import Collection
from dataclasses import replace

import numpy as np
from torch import nn

from netpurify import lad
from netpurify.network.adapter.capture import BATCH, Data, Forward
from netpurify.network.adapter.layers import Layer
from netpurify.network.adapter.reference import Initial, Skipped
from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Weights
from netpurify.network.fitting import build_design
from netpurify.network.policies.recovery.frozen import restore_frozen
from netpurify.network.policies.recovery.half import hidden_by_rounding, smallest_visible
from netpurify.network.prepared import prepare
from netpurify.network.records import LayerPlan, Plan
from netpurify.network.tolerance import LAWS, Tolerance, fixed, tolerance_of

_PER_FIT = 5e-8
"""Seconds to solve and verify a unit, per fan-in times rank; a unit with too many alterations takes ten times that."""
_COPIES = 40
"""Bytes for each weight of a layer: copies of the network, altered weights, fitted weights."""
_PER_ROW = 1e-10
"""Seconds to gather the clean inputs of a layer, per row and square of the fan-in."""
_SIMULATION = 15.0
"""Seconds to simulate one law on all layers."""


def check(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None = None,
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = BATCH,
) -> Plan:
    """What can be repaired, layer by layer, and what it will cost. The caller's network is not changed.

    It takes two passes over the data. For them, weights that are NaN, infinite or absurdly large are replaced by the
    initial ones in a copy, so that one flipped bit does not spoil the inputs of all later layers.

    What a layer tolerates is simulated on its clean inputs with ``lad.simulate``: up to 200 columns for each of two
    laws of alteration. That takes seconds for a network of any size: a large layer gets fewer columns, and then a
    sample of its rows and inputs; ``Tolerance.columns`` and ``rows`` say so. The clean inputs of later layers are seen
    through the contaminated ones.

    Args:
        model: The contaminated network.
        data: Clean inputs, as in ``purify``.
        initial: The network before training, as in ``purify``; without it nothing can be recovered.
        layers: Names of the layers to examine; ``None`` for all.
        forward: As in ``purify``.
        batch: As in ``purify``.

    Raises:
        InputError: An argument does not fit.
    """
    network = prepare(model, data, initial=initial, layers=layers, forward=forward, batch=batch)
    network.mark_changed()
    known = network.initial is not None
    frozen = {}
    for layer in network.layers:
        weights = network.weights(layer)
        frozen[layer.name] = known and restore_frozen(weights) is not None
        known_exactly = frozen[layer.name] and weights.grid is not None  # then the rounding is known, too
        network.write(layer, np.where(weights.missing | known_exactly, weights.initial, weights.contaminated))
    ordered = network.in_order()
    spans = network.runner.spans(ordered)
    begun = time.perf_counter()
    network.outputs()
    pass_seconds = time.perf_counter() - begun
    plans = []
    seconds = float(np.clip(_SIMULATION / max(len(ordered), 1), 0.1, 2.5))
    for layer in ordered:
        captured = spans[layer.name]
        if isinstance(captured, list):
            tolerances = (fixed(0.5),) if frozen[layer.name] else _tolerances(captured, layer.units, seconds)
            plan = _plan(layer, captured, tolerances, pass_seconds, frozen=frozen[layer.name], known=known)
            plans.append(_with_rounding(plan, network.weights(layer), captured) if known else plan)
        else:
            network.skipped.append(Skipped(layer.name, layer.kind, str(captured), missed=True))
    return Plan(
        layers=tuple(plans),
        skipped=tuple(network.skipped),
        seconds=sum(plan.seconds for plan in plans),
        bytes=max((plan.bytes for plan in plans), default=0),
    )


def _tolerances(spans: list[Span], units: int, seconds: float) -> tuple[Tolerance, ...]:
    """What the layer tolerates under each law."""
    designs = [build_design(span) for span in spans]
    if any(design is None for design in designs):
        return (fixed(0.0),)
    return tuple(tolerance_of(designs, units, positive=positive, seconds=seconds) for positive in LAWS)


def _plan(
    layer: Layer,
    spans: list[Span],
    tolerances: tuple[Tolerance, ...],
    pass_seconds: float,
    *,
    frozen: bool,
    known: bool,
) -> LayerPlan:
    ranks, lives = [span.rank() for span in spans], [int(span.live().sum()) for span in spans]
    rank, live = max(ranks), min(lives)
    # If the rank is only a direction or two below the fan-in, no alteration can be told from training.
    below = any(lad.tolerance(b, a) * b >= 1.0 for a, b in zip(ranks, lives, strict=True) if a < b)
    repairable = known and (frozen or below)
    fits = 0.0 if frozen or not below else _PER_FIT * live * rank * layer.units
    return LayerPlan(
        name=layer.name,
        kind=layer.kind,
        groups=layer.groups,
        units=layer.units,
        fan_in=layer.fan_in,
        live=live,
        rank=rank,
        rows=spans[0].count,
        frozen=frozen,
        tolerances=tolerances,
        repairable=repairable,
        reason=_reason(spans[0].fan_in, rank, live, frozen=frozen, known=known, below=below),
        seconds=0.0 if frozen else pass_seconds + fits + _PER_ROW * spans[0].count * layer.fan_in**2 * layer.groups,
        bytes=layer.fan_in * (8 * (30 * 128 + 4 * rank + 6 * min(layer.units, 256)) + _COPIES * layer.units),
    )


def _with_rounding(plan: LayerPlan, weights: Weights, spans: list[Span]) -> LayerPlan:
    """The plan of a layer in half precision: how large an alteration must be, and whether rounding hides training."""
    if weights.grid is None or plan.frozen:
        return plan
    visible, words = smallest_visible(weights, 1.0 / plan.ratio), weights.grid.words
    if not plan.repairable:
        return replace(plan, visible=visible)
    if hidden_by_rounding(weights, spans):
        hidden = f"training changed most weights by no more than they are rounded in {words}"
        reason = f"{hidden}: nothing can be proven, and only what stands far out of {visible:.1g} is found"
        return replace(plan, visible=visible, repairable=False, reason=reason)
    seen = f"rounded to {words}: alterations above about {visible:.1g} are seen"
    return replace(plan, visible=visible, reason=f"{plan.reason}; {seen}")


def _reason(fan_in: int, rank: int, live: int, *, frozen: bool, known: bool, below: bool) -> str:
    reached = "" if live == fan_in else f" ({live} reached by a clean input)"
    directions = f"all {rank}" if rank == live else f"{rank}"
    spanned = f"the clean inputs span {directions} directions of a fan-in of {fan_in}{reached}"
    if not known and below:
        return "without initial weights nothing can be recovered, only projected or defended"
    if not known:
        return (
            f"without initial weights nothing can be recovered; {spanned}, so only defend, or project with a rank, has "
            "an effect"
        )
    if frozen:
        return "never trained: any difference from the initial weights is an alteration"
    if below:
        return "exact if the clean inputs span what training saw"
    return (
        f"{spanned}, so only weights far outside the usual can be found; fewer inputs would span less; if the network "
        "was poisoned in training, defend it"
    )
