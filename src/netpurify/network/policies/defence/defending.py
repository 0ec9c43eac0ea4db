"""One strength at a time: a copy of the network is defended, and judged on clean inputs that were held out."""

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
from netpurify.network.policies.defence.sweep import DefendedLayer, Sweep
from netpurify.network.policies.defence.tracing import trace
from netpurify.network.policies.policy import Progress
from netpurify.network.prepared import Network


@dataclass(frozen=True, slots=True)
class DefendedCandidate:
    """A copy of the network that was defended with one strength, and judged.

    Attributes:
        step: Its strength, and how many held-out inputs change their class.
        model: The defended network.
        layers: What became of its layers.
        agreement: How its outputs on the held-out inputs compare with those of the contaminated network.
    """

    step: Step
    model: nn.Module
    layers: list[DefendedLayer]
    agreement: Agreement


class Defender:
    """Makes candidates, one for each strength, from a contaminated network and its clean inputs.

    Attributes:
        layers: The layers that are fitted.
        confidence: Mean of the largest probability on the held-out inputs; NaN if the outputs are not class scores.
    """

    def __init__(self, network: Network, *, guard: bool) -> None:
        """Traces how inputs go through the network; layers that cannot be fitted become skipped.

        Raises:
            InputError: There is nothing to fit, or the inputs do not fit the network.
        """
        self._network = network
        network.require_layers("the defence")
        fitted, held_out = split(network.runner.inputs())
        inputs = count(fitted)
        self._held_out: Data = held_out if isinstance(held_out, Tensor) else [(held_out,)]
        self._side_by_side = [(twice(fitted),)]
        known = [layer for layer in network.layers if layer.called_alone and not layer.without_bias]
        reason = "a defence fits layers that take one tensor, give one, and share no weights"
        network.skipped += [
            Skipped(layer.name, layer.kind, reason, missed=network.chosen is not None or layer.kind == "Linear")
            for layer in network.layers
            if layer not in known
        ]
        network.layers = known
        network.require_layers("the defence")
        traced = trace(network.model, network.runner.with_data([(fitted,)]), known, inputs=inputs)
        self._alone = traced.output
        network.layers = self.layers = [layer for layer in known if layer.name in traced.order]
        network.skipped += [
            Skipped(layer.name, layer.kind, traced.left_out[layer.name], missed=True)
            for layer in known
            if layer not in self.layers
        ]
        network.require_layers("the defence")
        self._sweep = Sweep(network.model, self.layers, traced, self._run, inputs, guard)
        self._before = self._outputs(network.model)
        rows = sum(len(output) if output is not None and output.dim() else 0 for output in self._before)
        self._scored = rows == count(held_out)
        self.confidence = _confidence(self._before) if self._scored else math.nan

    def defend(self, strength: float, progress: Progress) -> DefendedCandidate:
        """Defend a copy of the network, and judge it on the held-out inputs.

        Raises:
            InputError: Weights or inputs of a layer are not finite, or the outputs for one input depend on the others.
        """
        model, layers = self._sweep.defend(strength, progress)
        model = self._network.rounded(model)  # judged with the weights that are returned, if these are half precision
        agreement = compare(self._before, self._outputs(model))
        scored = self._scored and not math.isnan(agreement.same)
        differing = round((1.0 - agreement.same) * agreement.inputs) if scored else 0
        return DefendedCandidate(Step(strength, agreement.inputs if scored else 0, differing), model, layers, agreement)

    def _run(self, model: nn.Module) -> None:
        """Run a network on the inputs twice side by side; the second half must come out as if it were alone."""
        (output,) = self._network.runner.with_data(self._side_by_side, model).outputs()
        alone = self._alone
        if output is None or alone is None:
            return
        if not _alike(output[len(alone) :] if output.dim() and alone.dim() else output, alone):
            raise InputError(
                "the network must treat its inputs one by one along the first dimension, without chance; the output "
                "of one depends on the others, or changes when it is run again; leave the layers out that see inputs "
                "along another dimension, and switch off what draws random numbers"
            )

    def _outputs(self, model: nn.Module) -> list[Tensor | None]:
        """A network's outputs for the held-out inputs, batch by batch."""
        return [
            None if output is None else output.detach().cpu()
            for output in self._network.runner.with_data(self._held_out, model).outputs()
        ]


def _alike(actual: Tensor, expected: Tensor) -> bool:
    """Whether outputs are the same up to rounding, with NaN and infinities in the same places."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    wide = torch.complex128 if expected.is_complex() else torch.float64
    actual, expected = actual.to(wide), expected.to(wide)
    sizes = expected.abs()
    scale = float(sizes[sizes.isfinite()].max()) if bool(sizes.isfinite().any()) else 0.0
    return torch.allclose(actual, expected, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)


def _confidence(outputs: Sequence[Tensor | None]) -> float:
    """Mean of the largest probability; NaN if the outputs are not scores of classes."""
    batches = [output for output in outputs if output is not None]
    if not batches or any(output.dim() != 2 or output.shape[1] < 2 for output in batches):
        return math.nan
    if any(output.is_complex() or output.dtype == torch.bool for output in batches):  # which have no order
        return math.nan
    scores = torch.cat(batches).double()
    if not torch.isfinite(scores).all():
        return math.nan
    normalised = bool((scores >= 0.0).all()) and torch.allclose(scores.sum(dim=1), scores.new_ones(()), atol=1e-3)
    return float((scores if normalised else scores.softmax(dim=1)).amax(dim=1).mean())
