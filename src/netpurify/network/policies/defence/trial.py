"""One strength tried: a copy of the network is defended, and judged on clean inputs that were held out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.network.adapter.capture import Data
from netpurify.network.adapter.reference import Skipped
from netpurify.network.agreement import Agreement, compare
from netpurify.network.policies.defence.inputs import count, split, twice
from netpurify.network.policies.defence.strength import Step
from netpurify.network.policies.defence.sweep import LayerFit, sweep
from netpurify.network.policies.defence.walk import look
from netpurify.network.policies.policy import Progress
from netpurify.network.prepared import Network


@dataclass(frozen=True, slots=True)
class Trial:
    """A network that was defended with one strength, and judged.

    Attributes:
        step: What it costs.
        model: The defended network.
        layers: What its layers became.
        agreement: Its outputs on the held-out inputs beside those of the contaminated network.
    """

    step: Step
    model: nn.Module
    layers: list[LayerFit]
    agreement: Agreement


class Trials:
    """The contaminated network, the clean inputs, and how they go through it.

    Attributes:
        layers: The layers that are fitted.
        confidence: Mean of the largest probability on the held-out inputs; NaN if the outputs are no scores of classes.
    """

    def __init__(self, network: Network, *, guard: bool) -> None:
        """Looks at how inputs go through the network; layers that cannot be fitted become skipped.

        Raises:
            InputError: There is nothing to fit, or the inputs do not fit the network.
        """
        self._network, self._guard = network, guard
        network.require_layers("the defence")
        fitted, held = split(network.runner.inputs())
        self._twice, self._inputs = [(twice(fitted),)], count(fitted)
        self._held: Data = held if isinstance(held, Tensor) else [(held,)]
        known = network.layers
        once = network.runner.with_data([(fitted,)])
        self._walk = look(network.model, once, known, inputs=self._inputs)
        network.layers = self.layers = [layer for layer in known if layer.name in self._walk.order]
        left = [layer for layer in known if layer not in self.layers]
        network.skipped += [Skipped(it.name, it.kind, self._walk.left[it.name], missed=True) for it in left]
        network.require_layers("the defence")
        self._before = self._outputs(network.model)
        self._scored = sum(len(one) if one is not None and one.dim() else 0 for one in self._before) == count(held)
        self.confidence = _confidence(self._before) if self._scored else math.nan

    def fit(self, strength: float, progress: Progress) -> Trial:
        """Defend a copy, and judge it on what is held out.

        Raises:
            InputError: Weights or what layers see are not finite, or the outputs of one input depend on the others.
        """
        model, layers = sweep(
            self._network.model, self.layers, self._walk, self._run, inputs=self._inputs, strength=strength,
            guard=self._guard, progress=progress,
        )  # fmt: skip
        agreement = compare(self._before, self._outputs(model))
        scored = self._scored and not math.isnan(agreement.same)
        differing = round((1.0 - agreement.same) * agreement.inputs) if scored else 0
        return Trial(Step(strength, agreement.inputs if scored else 0, differing), model, layers, agreement)

    def _run(self, network: nn.Module) -> None:
        """Run a network on the inputs twice side by side; the second half must come out as if it were alone."""
        (output,) = self._network.runner.with_data(self._twice, network).outputs()
        alone = self._walk.output
        if output is None or alone is None:
            return
        if not _alike(output[len(alone) :] if output.dim() and alone.dim() else output, alone):
            raise InputError(
                "the network must treat its inputs one by one along the first dimension, without chance; the output "
                "of one depends on the others, or changes when it is run again; leave the layers out that see inputs "
                "along another dimension, and switch off what draws random numbers"
            )

    def _outputs(self, model: nn.Module) -> list[Tensor | None]:
        """What a network gives for the held-out inputs, batch by batch."""
        return [
            None if one is None else one.detach().cpu()
            for one in self._network.runner.with_data(self._held, model).outputs()
        ]


def _alike(found: Tensor, expected: Tensor) -> bool:
    """Whether outputs are the same but for rounding, NaN and infinities in the same places."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    found, expected = (it.to(torch.complex128 if it.is_complex() else torch.float64) for it in (found, expected))
    sizes = expected.abs()
    scale = float(sizes[sizes.isfinite()].max()) if bool(sizes.isfinite().any()) else 0.0
    return torch.allclose(found, expected, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)


def _confidence(outputs: Sequence[Tensor | None]) -> float:
    """Mean of the largest probability; NaN if the outputs are no scores of classes."""
    found = [one for one in outputs if one is not None]
    if not found or any(one.dim() != 2 or one.shape[1] < 2 for one in found):
        return math.nan
    if any(one.is_complex() or one.dtype == torch.bool for one in found):  # which have no largest
        return math.nan
    scores = torch.cat(found).double()
    if not torch.isfinite(scores).all():
        return math.nan
    shares = bool((scores >= 0.0).all()) and torch.allclose(scores.sum(dim=1), scores.new_ones(()), atol=1e-3)
    return float((scores if shares else scores.softmax(dim=1)).amax(dim=1).mean())
