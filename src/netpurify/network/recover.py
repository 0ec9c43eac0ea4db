"""The policy *recover*: replace what is proven to be altered, keep the bits of everything else, do no harm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.network import evidence, trimmed
from netpurify.network.blocks import BLOCK, BlockFit, fit_units
from netpurify.network.records import EDGES, Grade, Proof
from netpurify.network.span import Span

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_ABSURD = 1e6
"""A weight this many times what is usual in its layer tells nothing but that it is wrong."""
_PROBES = 16
"""Units that are fitted first: if none of them can be recovered, the others are not tried."""
_SAMPLE = 64
"""Units from which the decay is estimated."""
_SURPLUS = 5
"""Weights that must agree beyond the rank: one does by chance in some of a hundred units, five in none of a billion."""
_WILD = 4.0
"""A unit that changed so many times more than is usual in its layer, without evidence, is not fed forward."""
_SOFT_RANK, _SOFT_SHARE = 128, 8
"""Where exactness is out of reach: directions of the fit, at most, and at most one in so many of the fan-in."""


@dataclass(frozen=True, slots=True)
class Options:
    """How fits are made.

    Attributes:
        noise_floor: Residuals up to this are rounding; ``None`` for 256 rounding units of a unit's typical weight.
        decay: Factor of the initial weights; ``None`` to estimate it.
        proof: Whether to keep what a re-check needs.
        engine: As in ``fit_units``.
        jobs: As in ``fit_units``.
    """

    noise_floor: float | None = None
    decay: float | None = None
    proof: bool = True
    engine: str | None = None
    jobs: int | None = None


class Outcome:
    """The layer's new weights and what is known of them, filled step by step."""

    def __init__(self, weights: "Weights") -> None:  # noqa: D107
        units = weights.groups * weights.units
        self.matrix = weights.contaminated.copy()
        self.replaced: Mask = np.zeros(self.matrix.shape, np.bool_)
        self.grade = np.full(units, Grade.LEFT_ALONE, np.int8)
        self.status = np.full(units, -1, np.int8)
        self.noise_floor = np.full(units, np.nan)
        self.error_scale = np.full(units, np.nan)
        self.certificates: list[lad.Certificate] = []
        self.certified_units: list[NDArray[np.int64]] = []
        self.histogram = np.zeros(EDGES.size - 1, np.int64)
        self.zeros = 0
        self.unjudged = 0
        self.proofs: list[Proof] = []
        self.decay = 1.0
        self.frozen = False

    def take(self, block: BlockFit, group: int, place: slice, design: lad.Design, name: str) -> NDArray[np.int64]:
        """Note what was proven of a block of units; gives their positions in the layer."""
        count = self.matrix.shape[2]
        units = np.arange(group * count + place.start, group * count + place.stop)
        self.status[units] = block.certificate.status
        self.noise_floor[units] = block.certificate.noise_floor
        self.certificates.append(block.certificate)
        self.certified_units.append(units)
        self.histogram += block.histogram
        self.zeros += block.zeros
        if block.coefficients is not None and block.dual is not None:
            columns = next((proof.columns for proof in self.proofs if proof.group == group), None)
            columns = design.matrix[:, design.pivots] if columns is None else columns
            groups = self.matrix.shape[0]
            self.proofs.append(Proof(name, group, units, columns, block.coefficients, block.dual, groups))
        return units

    def replace(self, group: int, place: Mask, values: Array) -> None:
        """Write values where ``place`` [fan-in, units of a group] is set."""
        self.matrix[group][place] = values.astype(self.matrix.dtype)
        self.replaced[group] |= place


@dataclass(frozen=True, slots=True)
class Weights:
    """Contaminated and initial weights of a layer in their own dtype, [groups, fan-in, units], and what is missing."""

    contaminated: NDArray
    initial: NDArray
    missing: Mask
    bias: bool

    @classmethod
    def of(cls, matrix: Tensor, reference: Tensor, *, bias: bool) -> "Weights":
        """Both as matrices of a layer; NaN, infinite and absurd weights are missing."""
        contaminated, initial = matrix.cpu().numpy(), reference.cpu().numpy()
        sizes = np.maximum(np.abs(contaminated), np.abs(initial))
        # Where initial weights are 0, the small ones of the layer say what is usual: nine in ten may be altered. Those
        # that are 0 still say nothing: rows that training never lit, weights that were pruned.
        present = np.sort(sizes[sizes != 0.0])
        lower = float(present[present.size // 10]) if present.size else 0.0
        usual = max(float(np.abs(initial).max()), lower if np.isfinite(lower) else 0.0)
        with np.errstate(invalid="ignore"):
            missing = ~(sizes <= _ABSURD * usual)
        return cls(contaminated, initial, missing, bias)

    @property
    def groups(self) -> int:
        """Independent regressions."""
        return self.contaminated.shape[0]

    @property
    def units(self) -> int:
        """Units of one group."""
        return self.contaminated.shape[2]

    def start(self, group: int, units: slice | NDArray, decay: float = 1.0) -> Array:
        """What training started from, less what decay took: [fan-in, units]."""
        return decay * self.initial[group][:, units].astype(np.float64)

    def difference(self, group: int, units: slice | NDArray, decay: float = 1.0) -> Array:
        """Contaminated minus what training started from, [fan-in, units]; NaN where missing."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.contaminated[group][:, units] - self.start(group, units, decay)
        found[self.missing[group][:, units]] = np.nan
        return found

    @property
    def bias_row(self) -> Mask:
        """Which row is the bias, [fan-in]; none if there is no bias."""
        rows = np.zeros(self.contaminated.shape[1], np.bool_)
        rows[-1] = self.bias
        return rows

    def rounding(self, group: int) -> Array:
        """What some hundred steps of training round away, for each unit of a group."""
        sizes = np.maximum(np.abs(self.contaminated[group]), np.abs(self.initial[group])).astype(np.float64)
        sizes[self.missing[group]] = np.abs(self.initial[group]).astype(np.float64)[self.missing[group]]
        typical = np.median(sizes, axis=0)
        typical = np.minimum(typical, np.median(typical))  # a unit that is all noise has no say in its own floor
        return 256.0 * np.finfo(self.contaminated.dtype).eps * typical


def frozen(weights: Weights) -> Outcome | None:
    """Restore a layer that was never trained; ``None`` if it was."""
    equal = weights.contaminated == weights.initial
    altered = evidence.frozen(np.concatenate(list(equal), axis=1), np.concatenate(list(weights.initial == 0.0), axis=1))
    if altered is None or _rounded_away(weights, equal):
        return None
    found = Outcome(weights)
    found.frozen = True
    found.grade[:] = Grade.RECOVERED
    for group, place in enumerate(np.split(altered, weights.groups, axis=1)):
        found.replace(group, place, weights.initial[group][place])
        sizes = np.abs(weights.difference(group, slice(None))[place])
        found.histogram += np.histogram(sizes[np.isfinite(sizes)], EDGES)[0]
    found.zeros = int(altered.size - altered.sum())
    found.noise_floor[:] = 0.0
    return found


def _rounded_away(weights: Weights, equal: Mask) -> bool:
    """Whether most differences are as small as rounding: steps so short that most of them were rounded to nothing."""
    small, count = 0, int((~equal).sum())
    for group in range(weights.groups):
        sizes = np.abs(weights.difference(group, slice(None)))
        small += int((~equal[group] & (sizes <= weights.rounding(group))).sum())
    return 2 * small > count


def recover(weights: Weights, spans: Sequence[Span], designs: Sequence[lad.Design | None], *, doubt: bool,
            options: Options, name: str) -> Outcome:  # fmt: skip
    """Recover a layer that was trained.

    Args:
        weights: Its weights.
        spans: What its clean inputs span, group by group.
        designs: The spans as designs; ``None`` where every direction is spanned, so that nothing can be exact.
        doubt: Whether a layer before it could not be recovered, so that rows of its inputs may be wrong.
        options: How fits are made.
        name: Name of the layer, for its proofs.
    """
    found = Outcome(weights)
    floors = [
        weights.rounding(group) if options.noise_floor is None else np.full(weights.units, options.noise_floor)
        for group in range(weights.groups)
    ]
    exact = _settle_decay(weights, spans, designs, floors, options, found)
    if exact:
        for group, design in enumerate(designs):
            if design is not None:
                _exact(weights, group, design, floors[group], options, found, doubt=doubt, name=name)
    _approximate(weights, spans, found)
    return found


def _settle_decay(
    weights: Weights,
    spans: Sequence[Span],
    designs: Sequence[lad.Design | None],
    floors: Sequence[Array],
    options: Options,
    found: Outcome,
) -> bool:
    """Find the decay, and whether some units can be recovered with it.

    Most layers were trained without: only if no unit can be recovered so is the decay estimated.
    """
    if options.decay is not None:
        found.decay = options.decay
    if _probe(weights, designs, floors, found):
        return True
    if options.decay is not None:
        return False
    parts = []
    for group, units in _sample(weights, _SAMPLE):
        basis, live = _tight_basis(spans[group], designs[group]), spans[group].live()
        initial = weights.initial[group][:, units].astype(np.float64)
        if weights.bias:
            initial[-1] = 0.0  # biases are often spared, and must not pull the estimate
        parts.append(trimmed.Part(basis, weights.difference(group, units), initial, live))
    estimate = trimmed.decay(parts)
    if not 0.0 < estimate < 1.0:  # decay only shrinks
        return False
    found.decay = estimate
    if _probe(weights, designs, floors, found):
        return True
    found.decay = 1.0  # an estimate that recovers nothing is no fact
    return False


def _probe(weights: Weights, designs: Sequence[lad.Design | None], floors: Sequence[Array], found: Outcome) -> bool:
    """Whether any of a few units can be recovered."""
    for group, units in _sample(weights, _PROBES):
        design = designs[group]
        if design is not None:
            difference = weights.difference(group, units, found.decay)
            solution = lad.solve(design, difference, noise_floor=floors[group][units])
            if proven(lad.verify(design, difference, solution), design.fan_in).any():
                return True
    return False


_GOOD = (lad.Status.CLEAN, lad.Status.RECOVERED)


def proven(certificate: lad.Certificate, fan_in: int) -> Mask:
    """Units whose fit is the truth: enough weights agree on it, or all do, so that there is nothing to repair."""
    enough = np.isin(certificate.status, _GOOD) & (certificate.surplus >= _SURPLUS)
    return enough | ((certificate.status == lad.Status.CLEAN) & (certificate.zeros == fan_in))


def _sample(weights: Weights, count: int) -> list[tuple[int, NDArray[np.intp]]]:
    """About ``count`` units, evenly spread over the groups and inside them."""
    groups = np.unique(np.linspace(0, weights.groups - 1, min(weights.groups, count)).astype(np.intp))
    each = max(1, count // groups.size)
    units = np.unique(np.linspace(0, weights.units - 1, min(weights.units, each)).astype(np.intp))
    return [(int(group), units) for group in groups]


def _exact(
    weights: Weights,
    group: int,
    design: lad.Design,
    floor: Array,
    options: Options,
    found: Outcome,
    *,
    doubt: bool,
    name: str,
) -> None:
    """L1 fits of all units of a group; those with surplus evidence are repaired."""
    offset = group * weights.units
    altered = np.zeros(weights.contaminated.shape[1:], np.bool_)
    fitted = np.zeros(weights.contaminated.shape[1:], weights.contaminated.dtype)
    good = np.zeros(weights.units, np.bool_)
    idle = np.zeros(weights.units, np.bool_)
    dead = np.ones(design.fan_in, np.bool_)
    dead[design.live] = False

    def difference(units: slice) -> Array:
        return weights.difference(group, units, found.decay)

    for place, block in fit_units(design, weights.units, difference, floor, proof=options.proof, engine=options.engine,
                                  jobs=options.jobs):  # fmt: skip
        found.take(block, group, place, design, name)
        good[place] = proven(block.certificate, design.fan_in)
        altered[:, place] = block.altered & good[place]
        agreeing = ~block.altered & ~dead[:, None]
        unchanged = weights.contaminated[group][:, place] == weights.initial[group][:, place]
        idle[place] = 2 * (agreeing & unchanged).sum(axis=0) > agreeing.sum(axis=0)
        start = weights.start(group, place, found.decay)
        values = np.zeros(block.altered.shape)
        values[block.altered] = block.fitted
        fitted[:, place] = start + values
    differs = altered & ~weights.missing[group]
    common = evidence.common_rows(differs[:, good], dead, weights.bias_row, decayed=found.decay != 1.0, doubt=doubt)
    unjudged = differs & common[:, None]
    # What agrees in idle units are the initial weights, not a fit: training may have seen other inputs, unless as many
    # units agree on what the clean inputs span.
    idle &= good
    if 2 * idle.sum() > good.sum() and not evidence.one_by_one(differs[:, idle]):
        unjudged |= differs & idle
    found.unjudged += int(unjudged.sum())
    place = altered & ~unjudged
    found.replace(group, place, fitted[place])
    found.grade[offset : offset + weights.units][good] = Grade.RECOVERED


@dataclass(frozen=True, slots=True)
class _FarOut:
    """Weights of one block that stand far out of its fit or are missing; the rest is not kept."""

    group: int
    rows: NDArray[np.intp]
    units: NDArray[np.intp]
    sizes: Array
    values: Array


def _approximate(weights: Weights, spans: Sequence[Span], found: Outcome) -> None:
    """What stands far out in the units that could not be recovered, over the whole layer."""
    left = found.grade.reshape(weights.groups, weights.units) != Grade.RECOVERED
    far: list[_FarOut] = []
    for group, span in enumerate(spans):
        far += _far_out(weights, group, np.flatnonzero(left[group]), span, found)
    sizes = np.concatenate([np.zeros(0), *(part.sizes for part in far)])
    edge = evidence.border(sizes[np.isfinite(sizes)])
    for group in sorted({part.group for part in far}):
        out = np.zeros(weights.contaminated.shape[1:], np.bool_)
        values = np.zeros(out.shape, weights.contaminated.dtype)
        for part in far:
            if part.group == group:
                out[part.rows, part.units] = part.sizes > edge
                values[part.rows, part.units] = part.values
        missing = weights.missing[group] & left[group]
        out &= ~missing
        common = evidence.common_rows(
            out[:, left[group]], ~spans[group].live(), weights.bias_row, decayed=found.decay != 1.0, doubt=False
        )
        found.unjudged += int(out[common].sum())
        place = (out & ~common[:, None]) | missing
        found.replace(group, place, values[place])
        grades = found.grade[group * weights.units : (group + 1) * weights.units]
        grades[place.any(axis=0)] = Grade.APPROXIMATE


def _far_out(weights: Weights, group: int, units: NDArray[np.intp], span: Span, found: Outcome) -> Iterator[_FarOut]:
    if not units.size:
        return
    basis, live = span.strongest(min(_SOFT_RANK, span.fan_in // _SOFT_SHARE)), span.live()
    rounding = weights.rounding(group)
    for start in range(0, units.size, BLOCK):
        part = units[start : start + BLOCK]
        difference = weights.difference(group, part, found.decay)
        fit = trimmed.fit(trimmed.Part(basis, difference, np.zeros_like(difference), live))
        scale = np.maximum(fit.scale, rounding[part])
        found.error_scale[group * weights.units + part] = scale
        if not found.certificates:
            finite = np.abs(fit.residual[np.isfinite(fit.residual)])
            found.histogram += np.histogram(finite, EDGES)[0]
        sizes = np.abs(fit.residual) / scale
        sizes[np.isnan(sizes)] = np.inf  # missing
        rows, columns = np.nonzero(sizes > evidence.FAR)
        values = weights.start(group, part, found.decay)[rows, columns] + fit.fitted[rows, columns]
        yield _FarOut(group, rows, part[columns], sizes[rows, columns], values)


def _tight_basis(span: Span, design: lad.Design | None) -> Array:
    """All that is spanned, as long as enough is not; else the strongest directions."""
    if design is None or 4 * design.rank > 3 * design.live.size:
        return span.strongest(min(_SOFT_RANK, span.fan_in // _SOFT_SHARE))
    basis = np.zeros((span.fan_in, design.rank))
    basis[design.live] = design.compact
    return basis


def stand_in(weights: Weights, found: Outcome) -> NDArray | None:
    """Weights to go on with, if units that were left alone are far wilder than the others; ``None`` if not.

    What such a unit feeds forward would drown the rest. Its initial weights are the better guess.
    """
    changes = np.abs(found.matrix.astype(np.float64) - weights.initial)
    sizes = np.sqrt(np.mean(np.square(changes), axis=1)).reshape(-1)
    usual = float(np.median(sizes))
    wild = (found.grade == Grade.LEFT_ALONE) & ~(sizes <= _WILD * max(usual, np.finfo(np.float32).tiny))
    if not wild.any():
        return None
    chosen = wild.reshape(weights.groups, 1, weights.units)
    return np.where(chosen, found.decay * weights.initial, found.matrix).astype(found.matrix.dtype)


def to_tensor(matrix: NDArray, like: Tensor) -> Tensor:
    """A layer's matrix as a tensor on the layer's device."""
    return torch.from_numpy(matrix).to(like)
