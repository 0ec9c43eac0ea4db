"""Purify a network: layer by layer in the order of execution, through what is already purified."""

import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from netpurify import checkpoint, lad
from netpurify.errors import InputError
from netpurify.lad.blas import one_thread
from netpurify.network import project as projection
from netpurify.network import recover as recovery
from netpurify.network.capture import Data, Forward, Runner, digest_of_data
from netpurify.network.layers import Layer
from netpurify.network.recheck import Recheck, recheck
from netpurify.network.records import Altered, Grade, LayerRecord
from netpurify.network.reference import (
    Initial,
    Skipped,
    differs,
    duplicate,
    reference_matrix,
    resolve,
    sort_layers,
    ties,
)
from netpurify.network.span import Span

Policy = Literal["recover", "project"]
Progress = Callable[[str, int, int], None]
"""Called with (name of the layer, layers done, layers in all)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the contaminated and the purified network compare on the clean inputs.

    Attributes:
        inputs: How many were compared.
        same: Share of them with the same largest output; NaN if the outputs are no scores of classes, or not finite.
        change: Size of the change of the outputs, relative to the outputs before; NaN if those are not finite.
    """

    inputs: int
    same: float
    change: float


@dataclass(frozen=True, slots=True)
class Purification:
    """The purified network and everything that is known about it.

    Attributes:
        model: The purified network, in the mode in which the contaminated one came.
        policy: ``"recover"`` or ``"project"``.
        layers: What was done to each layer, in the order of execution.
        skipped: Everything else that has weights, with the reason.
        agreement: The two networks' outputs on the clean inputs.
        seconds: Time it took.
        peak_bytes: Most memory that this process has had so far; 0 where the system does not say.
        provenance: Digests of model, initial weights and data, versions, settings.
        contaminated: The contaminated weights.
        initial: The initial weights; ``None`` if there were none.
    """

    model: nn.Module
    policy: Policy
    layers: tuple[LayerRecord, ...]
    skipped: tuple[Skipped, ...]
    agreement: Agreement
    seconds: float
    peak_bytes: int
    provenance: dict[str, Any]
    contaminated: dict[str, Tensor]
    initial: dict[str, Tensor] | None

    @property
    def altered(self) -> Altered:
        """All weights that were called altered: tensor, index, was, now, grade."""
        return Altered.join([layer.altered for layer in self.layers])

    def count(self, grade: Grade) -> int:
        """Units of this grade, over all layers."""
        return sum(layer.count(grade) for layer in self.layers)

    def verify(self) -> Recheck:
        """Check every certificate again, with matrix products alone.

        Sound is a network in which every change is proven; approximate repairs are not, and count as unexplained.

        Raises:
            InputError: The network was purified with ``proof=False``.
        """
        if not self.provenance["settings"]["proof"]:
            raise InputError("verify needs the coefficients and duals; purify with proof=True")
        proofs = [proof for layer in self.layers for proof in layer.proofs]
        decays = {layer.name: layer.decay for layer in self.layers}
        floor = self.provenance["settings"]["noise_floor"]
        return recheck(
            proofs, decays, self.contaminated, self.initial, resolve(self.model), self.policy, noise_floor=floor
        )


def purify(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None,
    policy: Policy = "recover",
    layers: Collection[str] | None = None,
    rank: float | None = None,
    forward: Forward | None = None,
    noise_floor: float | None = None,
    decay: float | None = None,
    proof: bool = True,
    engine: str | None = None,
    jobs: int | None = None,
    batch: int = 32,
    progress: Progress | None = None,
) -> Purification:
    """Purify a network with a few clean inputs, without labels and without training.

    ``policy="recover"`` is for weights that were altered after training: noise, bit flips, tampering. What is proven to
    be altered is replaced, everything else keeps its exact bits. ``policy="project"`` is for weights that were poisoned
    during training: Algorithm 2 of the paper as written, every weight takes the fitted value.

    Args:
        model: The contaminated network; it is left as it is.
        data: Clean inputs: a tensor, a ``DataLoader`` or a list of batches; labels are ignored.
        initial: The network before training: a module, a state dict, a file, or ``Seeded(factory, seed)``. ``None`` is
            possible with ``project`` only: the weights themselves are then fitted, as if training had begun at zero.
        policy: What to do; see above.
        layers: Names of the layers to purify; ``None`` for all that can be.
        rank: For ``project``: number of the strongest directions to keep, or the share of energy that they hold.
        forward: Calls the model on a batch, for models that want more than ``model(inputs)``.
        noise_floor: Residuals up to this are rounding; ``None`` for 256 rounding units of a unit's typical weight.
        decay: For ``recover``: factor that weight decay left on the initial weights; ``None`` estimates it per layer.
        proof: Whether to keep coefficients and duals, which ``verify`` needs: two numbers for each weight.
        engine: Where fits run: ``None`` in this process on all cores, else as in ``netpurify.engine``.
        jobs: Most fits at the same time, on an engine.
        batch: Inputs of a tensor that go through the network at a time.
        progress: Called as ``progress(name, done, total)`` before each layer and at the end.

    Raises:
        InputError: An argument does not fit; the message says what was expected, what came and what to do.
    """
    begun = time.perf_counter()
    _check(policy, initial, rank, layers, batch)
    copy = duplicate(model)
    modes = {name: module.training for name, module in copy.named_modules()}
    reference = None if initial is None else resolve(initial)
    chosen = None if layers is None else list(layers)
    known, skipped = sort_layers(copy, reference, chosen, ties(model))
    contaminated = {name: value.clone() for name, value in resolve(copy).items()}
    digest = digest_of_data(data)
    runner = Runner(copy, data, forward=forward, batch=batch)
    before = _outputs(runner)
    calls = runner.order(known)
    skipped += [Skipped(it.name, it.kind, "the clean inputs never reach it") for it in known if it.name not in calls]
    ordered = [layer for name in calls for layer in known if layer.name == name]
    modules = dict(copy.named_modules())
    unknown = any(differs(modules[it.name], it.name, reference) for it in skipped)
    options = recovery.Options(noise_floor, decay, proof, engine, jobs)
    records: list[LayerRecord] = []
    works: list[_Work] = []
    with one_thread():
        for number, layer in enumerate(ordered):
            if progress is not None:
                progress(layer.name, number, len(ordered))
            doubt = unknown or any((record.grade != Grade.RECOVERED).any() or record.unjudged for record in records)
            work = _Work(layer, reference_matrix(layer, reference), runner, calls[layer.name], options, doubt=doubt)
            records.append(work.recover() if policy == "recover" else work.project(rank))
            works.append(work)
        for work in works:
            work.settle()
    if progress is not None:
        progress("", len(ordered), len(ordered))
    agreement = _agreement(before, _outputs(runner))
    for name, module in copy.named_modules():
        module.training = modes[name]
    settings = {"policy": policy, "layers": chosen, "rank": rank, "noise_floor": noise_floor, "decay": decay,
                "proof": proof}  # fmt: skip
    return Purification(
        model=copy,
        policy=policy,
        layers=tuple(records),
        skipped=tuple(skipped),
        agreement=agreement,
        seconds=time.perf_counter() - begun,
        peak_bytes=_peak(),
        provenance={
            "model": checkpoint.digest(contaminated),
            "initial": None if reference is None else checkpoint.digest(reference),
            "purified": checkpoint.digest(resolve(copy)),
            "data": digest,
            "versions": {name: version(name) for name in ("netpurify", "torch", "numpy", "scipy", "numba")},
            "settings": settings,
        },
        contaminated=contaminated,
        initial=reference,
    )


class _Work:
    """One layer at work."""

    def __init__(
        self, layer: Layer, reference: Tensor, runner: Runner, calls: int, options: recovery.Options, *, doubt: bool
    ) -> None:
        self._layer = layer
        self._weights = recovery.Weights.of(layer.matrix(), reference, bias=layer.module.bias is not None)
        self._runner = runner
        self._calls = calls
        self._options = options
        self._doubt = doubt
        self._begun = time.perf_counter()
        self._final: NDArray | None = None

    def settle(self) -> None:
        """Write what the layer is to be, where another was needed to go on with."""
        if self._final is not None:
            self._layer.write(recovery.to_tensor(self._final, self._layer.module.weight))

    def recover(self) -> LayerRecord:
        found = recovery.frozen(self._weights)
        if found is not None:
            return self._finish(found, [], [], "")
        spans, reason = self._spans()
        if not spans:
            return self._finish(recovery.Outcome(self._weights), [], [], reason)
        designs = [projection.cut(span, None) for span in spans]
        found = recovery.recover(
            self._weights, spans, designs, doubt=self._doubt, options=self._options, name=self._layer.name
        )
        if (found.grade != Grade.RECOVERED).any():
            reason = _why_left(designs)
        return self._finish(found, spans, designs, reason)

    def project(self, rank: float | None) -> LayerRecord:
        spans, reason = self._spans()
        if not spans:
            return self._finish(recovery.Outcome(self._weights), [], [], reason)
        designs = [projection.cut(span, rank) for span in spans]
        found = projection.project(self._weights, designs, options=self._options, name=self._layer.name)
        if any(design is None for design in designs):
            reason = "the clean inputs span every direction, so the fit changes nothing; set a rank"
        return self._finish(found, spans, designs, reason)

    def _spans(self) -> tuple[list[Span], str]:
        found = self._runner.spans([self._layer], calls=self._calls)[self._layer.name]
        return (found, "") if isinstance(found, list) else ([], str(found))

    def _finish(
        self, found: recovery.Outcome, spans: list[Span], designs: "list[lad.Design | None]", reason: str
    ) -> LayerRecord:
        layer, weights = self._layer, self._weights
        instead = recovery.stand_in(weights, found) if spans else None
        self._final = None if instead is None else found.matrix
        layer.write(recovery.to_tensor(found.matrix if instead is None else instead, layer.module.weight))
        lives = [int(span.live().sum()) for span in spans]
        ranks = [live if design is None else design.rank for live, design in zip(lives, designs, strict=True)]
        rank, live = max(ranks, default=0), min(lives, default=layer.fan_in)
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
            altered=_altered(layer, weights, found),
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


def _why_left(designs: "list[lad.Design | None]") -> str:
    if all(design is None for design in designs):
        return "the clean inputs span every direction, so no weight can be proven wrong; fewer inputs would span less"
    return "too few weights agree on one fit: too many are altered, or the clean inputs do not span what training saw"


def _altered(layer: Layer, weights: recovery.Weights, found: recovery.Outcome) -> Altered:
    """The replaced weights as a table; for ``project``, which replaces all, none."""
    if (found.grade == Grade.PROJECTED).any():
        return Altered.join([])
    group, row, column = np.nonzero(found.replaced)
    unit = group * weights.units + column
    per_unit = layer.fan_in - weights.bias
    is_bias = row == per_unit if weights.bias else np.zeros(row.size, np.bool_)
    return Altered(
        tensor=is_bias.astype(np.int32),
        index=np.where(is_bias, unit, unit * per_unit + row).astype(np.int64),
        was=weights.contaminated[found.replaced].astype(np.float64),
        now=found.matrix[found.replaced].astype(np.float64),
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


def _outputs(runner: Runner) -> list[Tensor | None]:
    return [None if found is None else found.detach().cpu() for found in runner.outputs()]


def _agreement(before: list[Tensor | None], after: list[Tensor | None]) -> Agreement:
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not None and new is not None]
    if not pairs:
        return Agreement(0, float("nan"), float("nan"))
    scores = all(old.dim() == 2 and old.shape[1] > 1 and not old.is_complex() for old, _ in pairs)
    scores &= all(bool(torch.isfinite(part).all()) for pair in pairs for part in pair)
    same = torch.cat([old.argmax(1) == new.argmax(1) for old, new in pairs]).double().mean() if scores else torch.nan
    old, new = (torch.cat([pair[side].reshape(-1).to(torch.complex128) for pair in pairs]) for side in (0, 1))
    inputs = sum(len(old) if old.dim() else 1 for old, _ in pairs)
    return Agreement(inputs, float(same), float((new - old).norm() / old.norm().clamp(min=1e-300)))


def _check(policy: str, initial: object, rank: float | None, layers: object, batch: int) -> None:
    if policy not in ("recover", "project"):
        raise InputError(f'policy must be "recover" or "project"; got {policy!r}')
    if initial is None and policy == "recover":
        raise InputError(
            'recover needs the initial weights; give initial=, or use policy="project", which without them fits the '
            "weights themselves"
        )
    if rank is not None and policy == "recover":
        raise InputError('rank is an option of policy="project"; recover takes all that the clean inputs span')
    projection.check_rank(rank)
    if isinstance(layers, str):
        raise InputError(f"layers must be a collection of names; got the single string {layers!r}; give [{layers!r}]")
    if batch < 1:
        raise InputError(f"batch must be at least 1; got {batch}")


def _peak() -> int:
    if sys.platform == "win32":  # which does not have the module
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
