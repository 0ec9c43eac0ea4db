"""The policy *defend*: deep networks that were poisoned in training. No labels, no training, no proof of cleanness."""

import copy
import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.errors import DisagreementError, InputError
from netpurify.network.agreement import Agreement, compare
from netpurify.network.capture import Data, Forward, Runner, digest_of_data
from netpurify.network.defence.strength import TRIALS, Step, search
from netpurify.network.defence.sweep import LayerFit, Progress, look, sweep
from netpurify.network.reference import Skipped, duplicate, resolve, sort_layers, ties

HELD_OUT = 5
"""One in so many clean inputs is kept from the fit, to judge it."""


@dataclass(frozen=True, slots=True)
class Defence:
    """The defended network and everything that is known about it. It is never known to be clean.

    Attributes:
        model: The defended network, in the mode in which the contaminated one came.
        policy: ``"defend"``.
        strength: The one that was used.
        guard: Whether channels are kept within their range.
        curve: What each strength that was tried does to the held-out inputs, from the weakest on.
        chosen: The step of the curve with the strength that was used.
        confidence: Mean of the largest probability that the contaminated network gives on the held-out inputs.
        layers: What each layer became, in the order of execution.
        skipped: Everything else that has weights, with the reason.
        agreement: The two networks' outputs on all the clean inputs, those of the fit included.
        seconds: Time it took.
        provenance: Digests of model, data and result, versions, settings.
        contaminated: The contaminated weights.
    """

    model: nn.Module
    policy: Literal["defend"]
    strength: float
    guard: bool
    curve: tuple[Step, ...]
    chosen: Step
    confidence: float
    layers: tuple[LayerFit, ...]
    skipped: tuple[Skipped, ...]
    agreement: Agreement
    seconds: float
    provenance: dict[str, Any]
    contaminated: dict[str, Tensor]


def defend(
    model: nn.Module,
    data: Data,
    *,
    strength: float | Literal["auto"] = "auto",
    guard: bool = True,
    max_disagreement: float | None = None,
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = 32,
    progress: Progress | None = None,
) -> Defence:
    """Make a deep network forget what clean inputs cannot justify; ``purify(policy="defend")``.

    Every Linear and Conv layer, in the order of execution, is fitted to give on clean inputs, through what is already
    purified, the outputs that it used to give; a ridge makes it forget directions in which clean inputs have little
    energy. The guard then keeps every channel within the range and the spread over an image that clean inputs use. A
    part of the inputs is held out; how often the defended network disagrees there with the contaminated one bounds what
    accuracy can be lost.

    Args:
        model: The contaminated network; it is left as it is.
        data: Clean inputs, as in ``purify``; some hundred of them.
        strength: Ridge, relative to the mean energy of a layer's inputs. The guard cuts off a tenth as much of each
            channel's values at either end, and as much of the images by a channel's spread. ``"auto"`` tries several
            and takes the strongest that the network's own confidence allows for.
        guard: Whether to keep channels in range; without, the architecture stays as it is.
        max_disagreement: Refuse if the defended network disagrees on more than this share of held-out inputs.
        layers: Names of the layers to fit; ``None`` for all that can be.
        forward: As in ``purify``.
        batch: As in ``purify``.
        progress: Called as ``progress(name, done, total)`` before each layer and at the end, over all sweeps.

    Raises:
        InputError: An argument does not fit.
        DisagreementError: The price is above ``max_disagreement``.
    """
    begun = time.perf_counter()
    _check(strength, max_disagreement, layers, batch)
    work = _Work(model, data, forward, batch, layers, guard=guard)
    _check_work(work, automatic=strength == "auto")
    watch = _Watch(progress, 1 + (TRIALS if strength == "auto" else 1), len(work.layers))
    if strength == "auto":
        curve, chosen = search(lambda one: work.judge(one, watch.next()), work.confidence)
    else:
        chosen = work.judge(float(strength), watch.next())
        curve = [chosen]
    if max_disagreement is not None and not chosen.disagreement <= max_disagreement:
        raise DisagreementError(
            "the defended network must disagree with the contaminated one on at most "
            f"{100 * max_disagreement:.1f} % of the held-out inputs; at strength {chosen.strength} it does on "
            f"{chosen.differing} of {chosen.inputs}; give more clean inputs, a smaller strength, or allow for more"
        )
    found, fits = work.fit(work.inputs, chosen.strength, watch.next())
    agreement = compare(work.outputs(work.contaminated, work.inputs), work.outputs(found, work.inputs))
    for name, module in model.named_modules():
        found.get_submodule(name).training = module.training
    if progress is not None:
        progress("", watch.total, watch.total)
    settings = {
        "policy": "defend", "strength": strength, "guard": guard, "max_disagreement": max_disagreement,
        "layers": None if layers is None else list(layers),
    }  # fmt: skip
    contaminated = resolve(work.contaminated)
    return Defence(
        model=found,
        policy="defend",
        strength=chosen.strength,
        guard=guard,
        curve=tuple(curve),
        chosen=chosen,
        confidence=work.confidence,
        layers=tuple(fits),
        skipped=tuple(work.skipped),
        agreement=agreement,
        seconds=time.perf_counter() - begun,
        provenance={
            "model": checkpoint.digest(contaminated),
            "purified": checkpoint.digest(resolve(found)),
            "data": work.digest,
            "versions": {name: version(name) for name in ("netpurify", "torch", "numpy", "scipy")},
            "settings": settings,
        },
        contaminated=contaminated,
    )


class _Work:
    """The contaminated network, the clean inputs, and how they go through it."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        forward: Forward | None,
        batch: int,
        layers: Collection[str] | None,
        *,
        guard: bool,
    ) -> None:
        self.contaminated = duplicate(model)
        self._forward, self._batch, self._guard = forward, batch, guard
        self._chosen = None if layers is None else list(layers)
        self._tied = ties(model)
        self.digest = digest_of_data(data)
        # Read once: every layer of every sweep goes over them again, and a part is held out.
        self.inputs: list[Any] = [(one,) for one in Runner(self.contaminated, data, batch=batch).batches()]
        self.fitted, self.held = _split(self.inputs)
        if not self.held:
            raise InputError(
                f"one in {HELD_OUT} clean inputs is held out to judge the defence, so at least {HELD_OUT} are needed; "
                "give more; of batches that are no tensors, as many batches"
            )
        known, self.skipped = sort_layers(self.contaminated, None, self._chosen, self._tied)
        reached = self._runner(self.contaminated, self.inputs).order(known)
        self.layers = [layer for layer in known if layer.name in reached]
        self.skipped += [
            Skipped(it.name, it.kind, "the clean inputs never reach it") for it in known if it.name not in reached
        ]
        self._before = self.outputs(self.contaminated, self.held)
        self.confidence = _confidence(self._before)

    def fit(self, inputs: list[Any], strength: float, progress: Progress) -> tuple[nn.Module, list[LayerFit]]:
        """A defended copy, fitted to some of the inputs."""
        found = copy.deepcopy(self.contaminated)
        known, _ = sort_layers(found, None, self._chosen, self._tied)
        runner = self._runner(found, inputs)
        walk = look(found, runner, known)
        before = {layer.name: layer for layer in self.layers}
        fits = sweep(
            self._runner(self.contaminated, inputs), before, runner, found, walk, strength=strength, guard=self._guard,
            progress=progress,
        )  # fmt: skip
        return found, fits

    def judge(self, strength: float, progress: Progress) -> Step:
        """What a strength does to the inputs that are held out."""
        found, _ = self.fit(self.fitted, strength, progress)
        agreement = compare(self._before, self.outputs(found, self.held))
        if math.isnan(agreement.same):
            return Step(strength, 0, 0)
        return Step(strength, agreement.inputs, round((1.0 - agreement.same) * agreement.inputs))

    def outputs(self, model: nn.Module, inputs: list[Any]) -> list[Tensor | None]:
        """What a network gives, batch by batch."""
        return [None if found is None else found.detach().cpu() for found in self._runner(model, inputs).outputs()]

    def _runner(self, model: nn.Module, inputs: list[Any]) -> Runner:
        return Runner(model, inputs, forward=self._forward, batch=self._batch)


def _check_work(work: _Work, *, automatic: bool) -> None:
    if not work.layers:
        reasons = "; ".join(f"{it.name} ({it.kind}): {it.reason}" for it in work.skipped[:5])
        raise InputError(f"at least one layer must be open to the defence; none is; {reasons}")
    if automatic and math.isnan(work.confidence):
        raise InputError(
            'strength="auto" needs a network that gives finite scores [inputs, classes]; this one does not; give '
            "a number, such as 0.1, or a forward function that returns the scores"
        )


class _Watch:
    """Progress over several sweeps."""

    def __init__(self, progress: Progress | None, sweeps: int, layers: int) -> None:
        self._progress, self._layers, self._sweep = progress, layers, -1
        self.total = sweeps * layers

    def next(self) -> Progress:
        """Progress of the sweep that comes."""
        self._sweep += 1
        done = self._sweep * self._layers

        def follow(name: str, number: int, _: int) -> None:
            if self._progress is not None:
                self._progress(name, done + number, self.total)

        return follow


def _split(inputs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Inputs for the fit, and one in ``HELD_OUT`` to judge it: single inputs, or batches where they are no tensors.

    Drawn by chance, since data often come in turns of their classes; the same inputs give the same draw.
    """
    generator = torch.Generator().manual_seed(0)
    if all(isinstance(one, Tensor) for (one,) in inputs):
        count = sum(len(one) for (one,) in inputs)
        held = torch.zeros(count, dtype=torch.bool)
        held[torch.randperm(count, generator=generator)[: count // HELD_OUT]] = True
        parts = [(one, mask) for (one,), mask in zip(inputs, held.split([len(one) for (one,) in inputs]), strict=True)]
        fitted, judged = [(one[~mask],) for one, mask in parts], [(one[mask],) for one, mask in parts]
        return [part for part in fitted if len(part[0])], [part for part in judged if len(part[0])]
    order = torch.randperm(len(inputs), generator=generator).tolist()
    judged = sorted(order[: len(inputs) // HELD_OUT])
    return [one for number, one in enumerate(inputs) if number not in judged], [inputs[number] for number in judged]


def _confidence(outputs: Sequence[Tensor | None]) -> float:
    """Mean of the largest probability; NaN if the outputs are no scores of classes."""
    found = [one for one in outputs if one is not None]
    if not found or any(one.dim() != 2 or one.shape[1] < 2 or not torch.isfinite(one).all() for one in found):
        return math.nan
    scores = torch.cat(found).double()
    shares = bool((scores >= 0.0).all()) and torch.allclose(scores.sum(dim=1), scores.new_ones(()), atol=1e-3)
    return float((scores if shares else scores.softmax(dim=1)).amax(dim=1).mean())


def _check(strength: object, most: float | None, layers: object, batch: int) -> None:
    if strength != "auto" and not (isinstance(strength, int | float) and 0.0 < strength < math.inf):
        raise InputError(f'strength must be "auto" or a number above 0, such as 0.1; got {strength!r}')
    if most is not None and not 0.0 <= most <= 1.0:
        raise InputError(f"max_disagreement must be a share between 0 and 1; got {most}")
    if isinstance(layers, str):
        raise InputError(f"layers must be a collection of names; got the single string {layers!r}; give [{layers!r}]")
    if batch < 1:
        raise InputError(f"batch must be at least 1; got {batch}")
