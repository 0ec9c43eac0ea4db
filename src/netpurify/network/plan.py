"""What can be expected of a network before anything is done to it."""

import time
from collections.abc import Collection

import numpy as np
import torch
from torch import nn

from netpurify import lad
from netpurify.network.capture import Data, Forward, Runner
from netpurify.network.layers import Layer
from netpurify.network.records import LayerPlan, Plan
from netpurify.network.recover import frozen as restore_frozen
from netpurify.network.reference import (
    Initial,
    Skipped,
    duplicate,
    mark_changed,
    reference_matrix,
    resolve,
    sort_layers,
    ties,
    unreached,
)
from netpurify.network.span import Span
from netpurify.network.weights import Weights

_PER_FIT = 5e-8
"""Seconds per fan-in and rank that solving and verifying a unit takes; a unit beyond its limit takes ten times that."""


_COPIES = 40
"""Bytes for each weight of a layer: copies of the network, what was altered, what was fitted."""
_PER_ROW = 1e-10
"""Seconds per row and square of the fan-in that gathering takes."""


def check(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None = None,
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = 32,
) -> Plan:
    """What can be repaired, layer by layer, and what it will cost. Touches nothing.

    Two passes over the data. Weights that are wild beside the initial ones are set back for it, so that one flipped bit
    does not hide everything behind it.

    Args:
        model: The contaminated network.
        data: Clean inputs, as in ``purify``.
        initial: The network before training, as in ``purify``; without it nothing can be recovered.
        layers: Names of the layers to look at; ``None`` for all.
        forward: As in ``purify``.
        batch: As in ``purify``.

    Raises:
        InputError: An argument does not fit.
    """
    copy = duplicate(model)
    reference = None if initial is None else resolve(initial)
    known, skipped = sort_layers(copy, reference, None if layers is None else list(layers), ties(model))
    if reference is not None and layers is None:
        skipped = mark_changed(copy, known, skipped, reference)
    frozen = {}
    for layer in known:
        start = reference_matrix(layer, reference)
        weights = Weights.of(layer.matrix(), start, bias=layer.module.bias is not None)
        frozen[layer.name] = reference is not None and restore_frozen(weights) is not None
        tamed = np.where(weights.missing, weights.initial, weights.contaminated)
        layer.write(torch.from_numpy(tamed).to(start))
    runner = Runner(copy, data, forward=forward, batch=batch)
    calls = runner.order(known)
    skipped += [unreached(it) for it in known if it.name not in calls]
    ordered = [layer for name in calls for layer in known if layer.name == name]
    spans = runner.spans(ordered)
    begun = time.perf_counter()
    for _ in runner.outputs():
        pass
    passing = time.perf_counter() - begun
    plans = []
    for layer in ordered:
        found = spans[layer.name]
        if isinstance(found, list):
            plans.append(_plan(layer, found, passing, frozen=frozen[layer.name], known=reference is not None))
        else:
            skipped.append(Skipped(layer.name, layer.kind, str(found), missed=True))
    return Plan(
        layers=tuple(plans),
        skipped=tuple(skipped),
        seconds=sum(plan.seconds for plan in plans),
        bytes=max((plan.bytes for plan in plans), default=0),
    )


def _plan(layer: Layer, spans: list[Span], passing: float, *, frozen: bool, known: bool) -> LayerPlan:
    ranks, lives = [span.rank() for span in spans], [int(span.live().sum()) for span in spans]
    rank, live = max(ranks), min(lives)
    # Of a direction or two to spare nothing comes.
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
        unit_tolerance=_tolerance(live, rank, 1, frozen=frozen),
        layer_tolerance=_tolerance(live, rank, layer.units, frozen=frozen),
        repairable=repairable,
        reason=_reason(spans[0].fan_in, rank, live, frozen=frozen, known=known, below=below),
        seconds=0.0 if frozen else passing + fits + _PER_ROW * spans[0].count * layer.fan_in**2 * layer.groups,
        bytes=layer.fan_in * (8 * (30 * 128 + 4 * rank + 6 * min(layer.units, 256)) + _COPIES * layer.units),
    )


def _tolerance(live: int, rank: int, units: int, *, frozen: bool) -> float:
    if frozen:
        return 0.5
    return lad.largest_share(live, rank, units=units) if rank < live else 0.0


def _reason(fan_in: int, rank: int, live: int, *, frozen: bool, known: bool, below: bool) -> str:
    lit = "" if live == fan_in else f" ({live} live)"
    spanned = f"the clean inputs span {f'all {rank}' if rank == live else rank} directions of a fan-in of {fan_in}{lit}"
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
        f"{spanned}, so nothing can be told apart but what stands far out; fewer inputs would span less; if it was "
        "poisoned in training, defend it"
    )
