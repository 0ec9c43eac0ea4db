"""One layer of a network, from its clean inputs to the record of what was done to it."""

import time
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.network import project as projection
from netpurify.network import recover as recovery
from netpurify.network.capture import Runner
from netpurify.network.layers import Layer
from netpurify.network.outcome import Outcome
from netpurify.network.records import Altered, Grade, LayerRecord
from netpurify.network.span import Span
from netpurify.network.weights import Mask, Weights


class LayerWork:
    """One layer at work: its inputs gathered, its weights fitted and written, what was done noted."""

    def __init__(
        self, layer: Layer, reference: Tensor, runner: Runner, calls: int, options: recovery.Options, *, doubt: bool
    ) -> None:
        """``calls`` says how often the layer is called in a pass, ``doubt`` whether what it sees may be wrong."""
        self._layer = layer
        self._weights = Weights.of(layer.matrix(), reference, bias=layer.module.bias is not None)
        self._runner = runner
        self._calls = calls
        self._options = options
        self._doubt = doubt
        self._begun = time.perf_counter()
        self._final: NDArray | None = None

    def settle(self) -> None:
        """Write what the layer is to be, where another was needed to go on with."""
        if self._final is not None:
            self._layer.write(to_tensor(self._final, self._layer.module.weight))

    def recover(self) -> LayerRecord:
        """By the policy *recover*."""
        found = recovery.frozen(self._weights)
        if found is not None:
            return self._finish(found, [], [], "")
        spans, reason = self._spans()
        if not spans:
            return self._finish(Outcome(self._weights), [], [], reason)
        designs = [projection.cut(span, None) for span in spans]
        found = recovery.recover(
            self._weights, spans, designs, doubt=self._doubt, options=self._options, name=self._layer.name
        )
        if (found.grade != Grade.RECOVERED).any():
            reason = _why_left(designs)
        return self._finish(found, spans, designs, reason)

    def project(self, rank: float | None) -> LayerRecord:
        """By the policy *project*."""
        spans, reason = self._spans()
        if not spans:
            return self._finish(Outcome(self._weights), [], [], reason)
        designs = [projection.cut(span, rank) for span in spans]
        found = projection.project(self._weights, designs, options=self._options, name=self._layer.name)
        if any(design is None for design in designs):
            reason = "the clean inputs span every direction, so the fit changes nothing; set a rank"
        return self._finish(found, spans, designs, reason)

    def _spans(self) -> tuple[list[Span], str]:
        found = self._runner.spans([self._layer], calls=self._calls)[self._layer.name]
        return (found, "") if isinstance(found, list) else ([], str(found))

    def _finish(self, found: Outcome, spans: list[Span], designs: list[lad.Design | None], reason: str) -> LayerRecord:
        layer, weights = self._layer, self._weights
        instead = recovery.stand_in(weights, found) if spans else None
        self._final = None if instead is None else found.matrix
        layer.write(to_tensor(found.matrix if instead is None else instead, layer.module.weight))
        lives = [int(span.live().sum()) for span in spans]
        ranks = [live if design is None else design.rank for live, design in zip(lives, designs, strict=True)]
        rank, live = max(ranks, default=0), min(lives, default=layer.fan_in)
        projected = (found.grade == Grade.PROJECTED).any()
        return LayerRecord(
            name=layer.name,
            kind=layer.kind,
            shape=tuple(layer.module.weight.shape),
            groups=layer.groups,
            fan_in=layer.fan_in,
            live=live,
            rank=rank,
            frozen=found.frozen,
            decay=found.decay,
            grade=found.grade,
            status=found.status,
            certificate=_join(found.certificates),
            certified_units=np.concatenate([np.zeros(0, np.int64), *found.certified_units]),
            noise_floor=found.noise_floor,
            error_scale=np.where(found.grade == Grade.RECOVERED, np.nan, found.error_scale),
            unjudged=found.unjudged,
            # ``project`` replaces all, so that it names none.
            altered=_table(layer, weights, found, found.replaced & ~projected),
            suspicious=_table(layer, weights, found, found.suspicious),
            changed=int((found.matrix != weights.contaminated).sum()),
            rebuilt=int((found.replaced & weights.missing).sum()),
            tolerance=0.5 if found.frozen else _tolerance(live, rank, layer.units),
            histogram=found.histogram,
            zeros=found.zeros,
            energies=_energies(spans),
            reason=reason,
            seconds=time.perf_counter() - self._begun,
            proofs=tuple(found.proofs),
        )


def _tolerance(live: int, rank: int, units: int) -> float:
    return lad.largest_share(live, rank, units=units) if rank < live else 0.0


def _why_left(designs: list[lad.Design | None]) -> str:
    if all(design is None for design in designs):
        return "the clean inputs span every direction, so no weight can be proven wrong; fewer inputs would span less"
    return "too few weights agree on one fit: too many are altered, or the clean inputs do not span what training saw"


def _table(layer: Layer, weights: Weights, found: Outcome, place: Mask) -> Altered:
    """Some of a layer's weights, with what they were and are."""
    group, row, column = np.nonzero(place)
    unit = group * weights.units + column
    per_unit = layer.fan_in - weights.bias
    is_bias = row == per_unit if weights.bias else np.zeros(row.size, np.bool_)
    return Altered(
        tensor=is_bias.astype(np.int32),
        index=np.where(is_bias, unit, unit * per_unit + row).astype(np.int64),
        was=weights.contaminated[place].astype(np.float64),
        now=found.matrix[place].astype(np.float64),
        grade=found.grade[unit],
        names=layer.tensors,
    )


def _join(parts: list[lad.Certificate]) -> lad.Certificate | None:
    if not parts:
        return None
    fields = lad.Certificate.__slots__
    return replace(parts[0], **{name: np.concatenate([getattr(part, name) for part in parts]) for name in fields})


def _energies(spans: list[Span]) -> np.ndarray:
    """Of the first group; of large layers none, since it would take minutes."""
    return spans[0].energies() if spans and spans[0].fan_in <= 2304 else np.zeros(0)


def to_tensor(matrix: NDArray, like: Tensor) -> Tensor:
    """A layer's matrix as a tensor on the layer's device."""
    return torch.from_numpy(matrix).to(like)
