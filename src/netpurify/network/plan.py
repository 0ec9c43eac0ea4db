"""What can be repaired in a network, and at what cost, before anything is changed."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from netpurify import lad
from netpurify.network.adapter.capture import BATCH, Data, Forward
from netpurify.network.adapter.layers import Layer
from netpurify.network.adapter.reference import Initial, Skipped
from netpurify.network.adapter.span import Span
from netpurify.network.adapter.tokens import TokenSpan
from netpurify.network.adapter.weights import Weights
from netpurify.network.comparison.others import restore_others
from netpurify.network.fitting import build_design, pose
from netpurify.network.planned import LayerPlan, Plan
from netpurify.network.policies.policy import Progress
from netpurify.network.policies.recovery.frozen import restore_frozen
from netpurify.network.policies.recovery.half import hidden_by_rounding, smallest_visible
from netpurify.network.policies.recovery.probe import Probe, probe
from netpurify.network.prepared import Network, prepare
from netpurify.network.tolerance import LAWS, Tolerance, fixed, tolerance_of

_PER_FIT = 5e-8
"""Seconds to solve and verify a unit, per fan-in times rank; a unit with too many alterations takes ten times that."""
_COPIES = 40
"""Bytes for each weight of a layer: copies of the network, altered weights, fitted weights."""
_PER_ROW = 1e-10
"""Seconds to gather the clean inputs of a layer, per row and square of the fan-in."""
_SIMULATION = 15.0
"""Seconds to simulate one law on all layers."""
_PROBES = 8
"""Units of a layer that are tried, if that takes no longer than a simulation."""
_NOT_TRIED = Probe(0, 0, 1.0)
_CAUSES = (
    "the layer was trained with Adam, RMSprop or another optimiser that rescales each weight's step, the initial "
    "weights are not those of its training, the clean inputs do not span what training saw (as when the layers before "
    "it were trained at the same time), or too many weights are altered"
)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of a layer before its plan is made.

    Attributes:
        layer: The layer.
        spans: What its clean inputs span, group by group.
        frozen: Whether it was never trained.
        known: Whether there are initial weights.
        before: Names of trained layers before it that ``Recover`` would repair first.
    """

    layer: Layer
    spans: list[Span]
    frozen: bool
    known: bool
    before: tuple[str, ...]

    @property
    def below(self) -> bool:
        """Whether the rank is far enough below the fan-in that some alteration can be told from training."""
        sizes = [(span.rank(), int(span.live().sum())) for span in self.spans]
        return any(lad.tolerance(live, rank) * live >= 1.0 for rank, live in sizes if rank < live)


def check(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None = None,
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Plan:
    """What can be repaired, layer by layer, and what it will cost. The caller's network is not changed.

    It takes two passes over the data. For them, layers that were never trained get their initial weights back in a
    copy, and weights that are NaN, infinite or absurdly large are replaced by the initial ones, so that one flipped bit
    does not spoil the inputs of all later layers.

    Up to eight units of every layer are fitted as ``Recover`` does it, weight decay included. If none of them agrees on
    a fit, the layer is not called repairable, whatever its rank: it may have been trained with Adam, or the initial
    weights may be those of another training. Later layers are seen through the contaminated ones before them, which
    ``Recover`` repairs first; ``LayerPlan.provisional`` says so.

    What a layer tolerates is simulated on its clean inputs with ``lad.simulate``: up to 200 columns for each of two
    laws of alteration. That takes seconds for a network of any size: a large layer gets fewer columns, and then a
    sample of its rows and inputs; ``Tolerance.columns`` and ``rows`` say so.

    Args:
        model: The contaminated network.
        data: Clean inputs, as in ``purify``.
        initial: The network before training, as in ``purify``; without it nothing can be recovered.
        layers: Names of the layers to examine; ``None`` for all.
        forward: As in ``purify``.
        batch: As in ``purify``.
        progress: Called as ``progress(name, done, total)`` before each layer and at the end.

    Raises:
        InputError: An argument does not fit.
    """
    network = prepare(model, data, initial=initial, layers=layers, forward=forward, batch=batch)
    known = network.initial is not None
    ordered = network.in_order()
    compared = restore_others(network)
    frozen, damaged = _mend(network, known=known)
    spans = network.runner.spans(ordered)
    begun = time.perf_counter()
    network.outputs()
    pass_seconds = time.perf_counter() - begun
    plans: list[LayerPlan] = []
    seconds = float(np.clip(_SIMULATION / max(len(ordered), 1), 0.1, 2.5))
    for number, layer in enumerate(ordered):
        if progress is not None:
            progress(layer.name, number, len(ordered))
        captured = spans.pop(layer.name)
        if isinstance(captured, list):
            before = tuple(plan.name for plan in plans if plan.agreeing)
            seen = _Seen(layer, captured, layer.name in frozen, known, before)
            weights = damaged.get(layer.name) or network.weights(layer)
            plan = _plan(seen, weights, seconds, pass_seconds)
            plans.append(_with_rounding(plan, weights, captured) if known else plan)
        else:
            network.skipped.append(Skipped(layer.name, layer.kind, str(captured), missed=True))
    if progress is not None:
        progress("", len(ordered), len(ordered))
    return Plan(
        layers=tuple(plans),
        skipped=tuple(network.skipped),
        compared=compared,
        seconds=sum(plan.seconds for plan in plans),
        bytes=max((plan.bytes for plan in plans), default=0),
        weights=sum(value.numel() for value in network.contaminated.values()),
    )


def _mend(network: Network, *, known: bool) -> tuple[set[str], dict[str, Weights]]:
    """Undo in the copy what needs no fit; gives the layers that were never trained, and those with missing weights.

    The weights of the latter are given as they came: once they are mended, nothing shows any more what was missing.
    """
    frozen, damaged = set(), {}
    for layer in network.layers:
        weights = network.weights(layer)
        restored = restore_frozen(weights) if known else None
        if restored is not None:
            frozen.add(layer.name)
            network.write(layer, restored.unrounded)
        elif weights.missing.any():
            damaged[layer.name] = weights
            network.write(layer, np.where(weights.missing, weights.initial, weights.contaminated))
    return frozen, damaged


def _tolerances(designs: Sequence[lad.Design | None], units: int, seconds: float) -> tuple[Tolerance, ...]:
    """What the layer tolerates under each law."""
    if any(design is None for design in designs):
        return (fixed(0.0),)
    return tuple(tolerance_of(designs, units, positive=positive, seconds=seconds) for positive in LAWS)


def _try_units(seen: _Seen, weights: Weights, designs: Sequence[lad.Design | None], seconds: float) -> Probe:
    """Fit up to eight units; fewer, but at least one, if eight without agreement would take more than ``seconds``."""
    if seen.frozen or not seen.known or not seen.below:
        return _NOT_TRIED
    each = 2.0 * _PER_FIT * max(design.live.size * design.rank for design in designs if design is not None)
    # Twice, because a unit without agreement is tried without weight decay and with it.
    count = int(np.clip(seconds / max(each, 1e-9), 1, _PROBES))
    return probe(pose(seen.layer, weights, seen.spans, designs), count)


def _plan(seen: _Seen, weights: Weights, seconds: float, pass_seconds: float) -> LayerPlan:
    layer, spans, frozen = seen.layer, seen.spans, seen.frozen
    designs = [] if frozen else [build_design(span) for span in spans]
    tolerances = (fixed(0.5),) if frozen else _tolerances(designs, layer.units, seconds)
    tried = _try_units(seen, weights, designs, seconds)
    rank, live = max(span.rank() for span in spans), min(int(span.live().sum()) for span in spans)
    hopeless = frozen or not seen.below or bool(tried.probed and not tried.agreeing and not seen.before)
    fits = 0.0 if hopeless else _PER_FIT * live * rank * layer.units
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
        probed=tried.probed,
        agreeing=tried.agreeing,
        provisional=bool(tried.probed and seen.before),
        repairable=seen.known and (frozen or tried.agreeing > 0),
        reason=_reason_of_tokens(spans[0], frozen=frozen)
        if seen.known and isinstance(spans[0], TokenSpan)
        else _reason(seen, tried, rank, live),
        seconds=0.0 if frozen else pass_seconds + fits + _PER_ROW * spans[0].count * layer.fan_in**2 * layer.groups,
        bytes=layer.fan_in * (8 * (30 * 128 + 4 * rank + 6 * min(layer.units, 256)) + _COPIES * layer.units),
    )


def _with_rounding(plan: LayerPlan, weights: Weights, spans: list[Span]) -> LayerPlan:
    """The plan of a layer in half precision: how large an alteration must be, and whether rounding hides training."""
    if weights.grid is None or plan.frozen:
        return plan
    visible, words = smallest_visible(weights, 1.0 / plan.ratio), weights.grid.words
    if not plan.repairable and not plan.probed:
        return replace(plan, visible=visible)
    if hidden_by_rounding(weights, spans):
        hidden = f"training changed most weights by no more than they are rounded in {words}"
        reason = f"{hidden}: nothing can be proven, and only what stands far out of {visible:.1g} is found"
        return replace(plan, visible=visible, repairable=False, reason=reason)
    if not plan.repairable:
        return replace(plan, visible=visible)
    seen = f"rounded to {words}: alterations above about {visible:.1g} are seen"
    return replace(plan, visible=visible, reason=f"{plan.reason}; {seen}")


def _reason_of_tokens(span: TokenSpan, *, frozen: bool) -> str:
    if frozen:
        return "never trained: any difference from the initial weights is an alteration"
    used = int(span.used.sum())
    return (
        f"training may set the rows of the {used:,} tokens that clean inputs use freely; those of the other "
        f"{span.used.size - used:,} must be the initial ones"
    )


def _reason(seen: _Seen, tried: Probe, rank: int, live: int) -> str:
    fan_in = seen.layer.fan_in
    reached = "" if live == fan_in else f" ({live} reached by a clean input)"
    directions = f"all {rank}" if rank == live else f"{rank}"
    spanned = f"the clean inputs span {directions} directions of a fan-in of {fan_in}{reached}"
    if not seen.known and seen.below:
        return "without initial weights nothing can be recovered, only projected or defended"
    if not seen.known:
        return (
            f"without initial weights nothing can be recovered; {spanned}, so only defend, or project with a rank, has "
            "an effect"
        )
    if seen.frozen:
        return "never trained: any difference from the initial weights is an alteration"
    if seen.below:
        return _probed_reason(seen, tried)
    return (
        f"{spanned}, so only weights far outside the usual can be found; fewer inputs would span less; if the network "
        "was poisoned in training, defend it"
    )


def _probed_reason(seen: _Seen, tried: Probe) -> str:
    """What came of trying some units, and why it may come out otherwise once earlier layers are repaired."""
    units = "unit" if tried.probed == 1 else "units"
    if tried.agreeing:
        decay = "" if tried.decay == 1.0 else f" with {tried.decay:.4g} times the initial weights (weight decay)"
        agree = "agrees" if tried.agreeing == 1 else "agree"
        return f"{tried.agreeing} of {tried.probed} {units} tried {agree} on a fit{decay}"
    found = f"none of {tried.probed} {units} tried agrees on a fit: {_CAUSES}"
    if not seen.before:
        return found
    names = ", ".join(seen.before[:3]) + (", ..." if len(seen.before) > 3 else "")
    return (
        f"{found}; the layer was seen here through layers that recover repairs first ({names}): if weights are altered "
        "there, units may agree once they are repaired"
    )
