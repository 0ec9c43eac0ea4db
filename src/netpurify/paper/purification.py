"""Algorithm 2: every layer back into the span of its clean inputs, by ``network.layer_by_layer``."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.errors import InputError
from netpurify.network import Outcome, PurifiedLayer, SpanError, layer_by_layer, layers_of, prepare
from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.policies import FEATURES, Features, InitialWeights, L1Fit, LeastSquaresFit, is_recovered
from netpurify.threads import one_torch_thread

Fit = Literal["l1", "l2", "initial"]
_POLICIES = {"l1": L1Fit, "l2": LeastSquaresFit, "initial": InitialWeights}


@dataclass(frozen=True, slots=True)
class FittedLayer:
    """How one layer was purified.

    Attributes:
        name: Name of the layer in the network.
        design: The layer's clean inputs as columns, factored: A_W (equation 6), or A_beta (equation 7). ``None`` if
            they span every direction and are so many that they were not kept; every unit is then RANK_FULL.
        rank: How many directions the clean inputs span.
        difference: Contaminated minus initial weights, [fan-in, units]; NaN where the weight counts as missing.
        doubtful: Which entries of the fan-in come from units that were not recovered, [fan-in]. Their rows of the
            design are wrong. The fit of a recovered unit is right about all other entries, and worthless about these.
        status: ``lad.Status`` of each unit's L1 fit, [units]; ``None`` for the baselines, which make no such fit.
        altered: Weights that differ from the L1 fit by more than the noise floor, or are missing, [fan-in, units]; none
            where no L1 fit was made.
        certificate: What was proven of each unit, recomputed from its fit; ``None`` if no fit was verified.
    """

    name: str
    design: lad.Design | None
    rank: int
    difference: Tensor
    doubtful: Tensor
    status: NDArray[np.int8] | None
    altered: Tensor
    certificate: lad.Certificate | None

    @property
    def recovered(self) -> Tensor:
        """Which units have the evidence that they are what training left, up to ``doubtful`` entries, [units].

        The evidence is agreement: as many weights as this can fit one point of the span only if it is the truth, or if
        alterations agree with one another (more than half of a unit's weights reset to the initial ones, say).
        """
        if self.status is None:
            return torch.zeros(self.difference.shape[1], dtype=torch.bool)
        return torch.from_numpy(is_recovered(self.status))

    @property
    def certified(self) -> Tensor:
        """Which units' L1 fits are proven minima, [units]."""
        if self.status is None:
            return torch.zeros(self.difference.shape[1], dtype=torch.bool)
        return torch.tensor([lad.Status(code).certified for code in self.status])


@dataclass(frozen=True, slots=True)
class Purified:
    """The purified network, and one record per layer that was purified, in forward order."""

    model: PatchCNN
    layers: tuple[FittedLayer, ...]


@one_torch_thread()
def purify(
    contaminated: PatchCNN,
    initial: PatchCNN,
    inputs: Tensor,
    *,
    fit: Fit = "l1",
    features: Features = "purified",
    layers: Collection[str] | None = None,
    noise_floor: float | None = None,
    certify: bool = True,
) -> Purified:
    """Purify a network with clean inputs: W~_j = W_j(0) + A u~_j, u~_j = argmin |Theta_j - W_j(0) - A u|_1.

    A holds the layer's inputs: the patches of the clean inputs for the first layer, what the layers before make of them
    for the others. Labels are not needed, and the inputs may come from outside the training set; exactness needs inputs
    that span what the training inputs span. The loop over the layers, the fits and the rules for missing weights and
    rounding are those of ``network.layer_by_layer`` with the policy ``Project``.

    Args:
        contaminated: Network to purify; it is left as it is. Weights that are NaN, infinite or absurd (a million times
            what is usual in their layer: a flipped exponent) count as missing.
        initial: The same network before training.
        inputs: Clean inputs [n, d].
        fit: ``"l1"`` is Algorithm 2. Baselines: ``"l2"`` projects on the span by least squares, ``"initial"`` returns
            the initial weights.
        features: What the inputs of later layers go through: the ``"purified"`` layers before, which alone are exact in
            the sequential regime; the ``"initial"`` ones; or, unit by unit, the purified weights where a unit is
            ``"recovered"`` with evidence and the initial weights elsewhere. The paper leaves it open. A unit that was
            not recovered can be far off, and then its initial weights, which training moves little, are the better
            guess.
        layers: Names of the layers to purify; ``None`` for all. The others are taken as they are.
        noise_floor: Residuals up to this are zero. ``None``: 256 rounding units of the unit's typical weight, which is
            what some hundred steps of training round away.
        certify: Whether every unit's fit is verified independently, at about the cost of the fit.

    Raises:
        InputError: The networks differ in shape or dtype or have fewer than 32 bits, there are no inputs, or inputs or
            initial weights are not finite.
    """
    _check(contaminated, initial, inputs, fit, features)
    policy = _POLICIES[fit](noise_floor=noise_floor, proof=False, features=features, certify=certify)
    network = prepare(contaminated, inputs, initial=initial, layers=layers, batch=inputs.shape[0])
    chosen = {layer.name for layer in network.layers}
    others = [(layer, network.weights(layer)) for layer in layers_of(network.model) if layer.name not in chosen]
    for layer, weights in others:
        network.write(layer, policy.weights_fed_forward(Outcome(weights), np.True_))
    purified = {result.layer.name: result for result in layer_by_layer(network, policy)}
    for layer, weights in others:
        network.write(layer, weights.contaminated)
    model: Any = network.restore_modes(network.model)  # a copy of ``contaminated``, so of the same class
    return Purified(model, tuple(_records(model, purified, features)))


def _records(model: PatchCNN, purified: dict[str, PurifiedLayer], features: Features) -> Iterator[FittedLayer]:
    """The records of the purified layers, in forward order, each with the doubt that the layer before leaves."""
    doubtful = torch.zeros(model.k, dtype=torch.bool)
    for name, layer in zip(model.names, model.layers, strict=True):
        recovered = torch.ones(layer.out_features, dtype=torch.bool)
        if name in purified:
            bias = torch.zeros(int(layer.bias is not None), dtype=torch.bool)
            record = _record(purified[name], torch.cat([doubtful, bias]))
            recovered = record.recovered
            yield record
        doubtful = torch.zeros_like(recovered) if features == "initial" else ~recovered


def _record(result: PurifiedLayer, doubtful: Tensor) -> FittedLayer:
    if result.regressions is None:
        raise SpanError(f"{result.layer.name}: {result.outcome.reason}")
    (design,), (span,) = result.regressions.designs, result.regressions.spans
    outcome = result.outcome
    was_fitted = (outcome.status >= 0).any()  # the baselines leave every status at -1
    return FittedLayer(
        name=result.layer.name,
        design=design,
        rank=int(span.live().sum()) if design is None else design.rank,
        difference=torch.from_numpy(outcome.weights.difference(0, slice(None))),
        doubtful=doubtful,
        status=outcome.status if was_fitted else None,
        altered=torch.from_numpy(outcome.altered[0]),
        certificate=outcome.certificate,
    )


@dataclass(frozen=True, slots=True)
class LayerError:
    """How far a layer is from the true one.

    Attributes:
        mean: Mean over units of |W~_j - W_j|_2, the paper's error of W.
        rms: Root mean square over all weights; for a single unit |beta~ - beta|_2 / sqrt(p), the paper's error of beta.
        largest: Largest error of any weight.
        exact: Share of units whose weights are all within 1e-6.
    """

    mean: float
    rms: float
    largest: float
    exact: float


def compare(network: PatchCNN, true: PatchCNN) -> dict[str, LayerError]:
    """Errors of every layer of ``network`` against the ``true`` one, by layer name."""
    found = {}
    for name, layer, other in zip(network.names, network.layers, true.layers, strict=True):
        error = (matrix(layer) - matrix(other)).double()
        found[name] = LayerError(
            mean=float(error.norm(dim=0).mean()),
            rms=float(error.square().mean().sqrt()),
            largest=float(error.abs().max()),
            exact=float((error.abs().amax(0) <= 1e-6).double().mean()),
        )
    return found


def _check(contaminated: PatchCNN, initial: PatchCNN, inputs: Tensor, fit: str, features: str) -> None:
    if fit not in _POLICIES:
        raise InputError(f'fit must be "l1", "l2" or "initial"; got {fit!r}')
    if features not in FEATURES:
        raise InputError(f'features must be "purified", "initial" or "recovered"; got {features!r}')
    shapes = [{name: list(value.shape) for name, value in net.state_dict().items()} for net in (contaminated, initial)]
    if shapes[0] != shapes[1] or contaminated.m != initial.m:
        raise InputError(
            "the contaminated and the initial network must have the same layers; got "
            f"m = {contaminated.m}, {shapes[0]} and m = {initial.m}, {shapes[1]}"
        )
    kinds = {value.dtype for net in (contaminated, initial) for value in net.state_dict().values()}
    if not (kinds == {torch.float64} or kinds == {torch.float32}):
        raise InputError(
            f"both networks must be float64 or float32: rounding to less hides what training changed; got {kinds}"
        )
    initial.patches(inputs)  # refuses inputs of another shape
    if not inputs.shape[0]:
        raise InputError("purification needs at least one clean input; got n = 0")
