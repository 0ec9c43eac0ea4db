"""Algorithm 2: every layer back into the span of what its clean inputs justify."""

import copy
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from netpurify import lad
from netpurify.errors import InputError
from netpurify.paper.model import PatchCNN, matrix, with_bias, write
from netpurify.threads import one_torch_thread

Fit = Literal["l1", "l2", "initial"]
Features = Literal["purified", "initial", "recovered"]
_ABSURD = 1e6


@dataclass(frozen=True, slots=True)
class LayerFit:
    """How one layer was purified.

    Attributes:
        name: Name of the layer in the network.
        design: The layer's clean inputs as columns, factored: A_W (equation 6), or A_beta (equation 7).
        difference: Contaminated minus initial weights [fan-in, units]; NaN where the weight counts as missing.
        doubtful: Which entries of the fan-in come from units that were not recovered, [fan-in]. Their rows of the
            design are wrong. Of a unit that is recovered the fit is right about all other entries, and worthless there.
        solution: The L1 fit, with a status for each unit; ``None`` for the baselines.
        certificate: What was proven of each unit, recomputed; ``None`` for the baselines.
    """

    name: str
    design: lad.Design
    difference: Tensor
    doubtful: Tensor
    solution: lad.Solution | None
    certificate: lad.Certificate | None

    @property
    def recovered(self) -> Tensor:
        """Which units have the evidence that they are what training left, up to ``doubtful`` entries, [units].

        The evidence is agreement: as many weights as this can fit one point of the span only if it is the truth, or if
        alterations agree with one another (more than half of a unit's weights reset to the initial ones, say).
        """
        if self.solution is None:
            return torch.zeros(self.difference.shape[1], dtype=torch.bool)
        return torch.from_numpy(np.isin(self.solution.status, (lad.Status.CLEAN, lad.Status.RECOVERED)))


@dataclass(frozen=True, slots=True)
class Purified:
    """The purified network, and one record per layer that was purified, in forward order."""

    model: PatchCNN
    layers: tuple[LayerFit, ...]


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
    threads: int | None = None,
) -> Purified:
    """Purify a network with clean inputs: W~_j = W_j(0) + A u~_j, u~_j = argmin |Theta_j - W_j(0) - A u|_1.

    A holds the layer's inputs: the patches of the clean inputs for the first layer, what the layers before make of them
    for the others. All units of a layer are one call of ``lad.solve``. Labels are not needed, and the inputs may come
    from outside the training set; exactness needs inputs that span what the training inputs span.

    Args:
        contaminated: Network to purify; it is left as it is. Weights that are NaN, infinite or absurd (a million times
            what is usual in their layer: a flipped exponent) count as missing.
        initial: The same network before training.
        inputs: Clean inputs [n, d].
        fit: ``"l1"`` is Algorithm 2. Baselines: ``"l2"`` projects on the span by least squares, ``"initial"`` returns
            the initial weights.
        features: What the inputs of later layers go through: the ``"purified"`` layers before, which alone are exact in
            the sequential regime; the ``"initial"`` ones; or, unit by unit, what is ``"recovered"`` with evidence and
            the initial weights elsewhere. The paper leaves it open. A unit that was not recovered can be far off, and
            then its initial weights, which training moves little, are the better guess.
        layers: Names of the layers to purify; ``None`` for all. The others are taken as they are.
        noise_floor: Residuals up to this are zero. ``None``: 256 rounding units of the unit's typical weight, which is
            what some hundred steps of training round away.
        certify: Whether every unit's fit is verified independently, at about the cost of the fit.
        threads: As in ``lad.solve``.

    Raises:
        InputError: The networks differ in shape or dtype or have fewer than 32 bits, there are no inputs, or inputs or
            initial weights are not finite.
    """
    _check(contaminated, initial, inputs, fit, features)
    chosen = _chosen(contaminated, layers)
    model = copy.deepcopy(contaminated)
    rows = initial.patches(inputs)
    doubtful = torch.zeros(0, dtype=torch.bool)
    fits = []
    for name, layer, reference in zip(model.names, model.layers, initial.layers, strict=True):
        seen, units = with_bias(rows, layer), torch.ones(layer.out_features, dtype=torch.bool)
        if name in chosen:
            found, change = _fit(name, layer, reference, seen, doubtful, fit, noise_floor, certify, threads)
            write(layer, matrix(reference) + change)
            fits.append(found)
            units = found.recovered
        if layer is model.output:
            break
        doubtful = torch.zeros_like(units) if features == "initial" else ~units
        trusted = units if features == "recovered" else torch.full_like(units, features == "purified")
        trusted &= _sane(layer, reference)
        rows = (seen @ torch.where(trusted, matrix(layer), matrix(reference))).relu()
        rows = initial.pool(rows) if layer is model.hidden[-1] else rows
    return Purified(model, tuple(fits))


def _fit(
    name: str,
    layer: nn.Linear,
    reference: nn.Linear,
    seen: Tensor,
    doubtful: Tensor,
    fit: Fit,
    noise_floor: float | None,
    certify: bool,  # noqa: FBT001
    threads: int | None,
) -> tuple[LayerFit, Tensor]:
    """The record of one layer, and by how much its fit differs from the initial weights, [fan-in, units]."""
    difference = matrix(layer) - matrix(reference)
    sizes = torch.maximum(matrix(layer).abs(), matrix(reference).abs())
    # Beyond this a weight tells nothing but that it is wrong, and would cost the others their digits. Where the initial
    # weights are 0, the small ones of the layer say what is usual: nine in ten may be altered.
    usual = torch.maximum(matrix(reference).abs().max(), sizes.flatten().sort().values[sizes.numel() // 10])
    absurd = _ABSURD * usual
    difference = torch.where(sizes <= absurd, difference, torch.nan)
    design = lad.Design.prepare(seen.T)
    solution = certificate = None
    change = torch.zeros_like(difference)
    if fit == "l1":
        floor = _rounding(layer, reference) if noise_floor is None else noise_floor
        solution = lad.solve(design, difference, noise_floor=floor, threads=threads)
        certificate = lad.verify(design, difference, solution.claim) if certify else None
        change = seen.T @ torch.as_tensor(solution.coefficients).to(seen)
    if fit == "l2":
        change = seen.T @ torch.linalg.lstsq(seen.T, torch.nan_to_num(difference), driver="gelsd").solution
    bias = torch.zeros(difference.shape[0] - doubtful.shape[0], dtype=torch.bool)
    return LayerFit(name, design, difference, torch.cat([doubtful, bias]), solution, certificate), change


def _chosen(model: PatchCNN, layers: Collection[str] | None) -> Collection[str]:
    unknown = [name for name in layers or () if name not in model.names]
    if unknown or isinstance(layers, str):
        raise InputError(f"layers must be names among {model.names}; got {layers!r}")
    return model.names if layers is None else layers


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


def _sane(layer: nn.Linear, reference: nn.Linear) -> Tensor:
    """Which units can be fed forward: a fit that is thousands of times its initial weights would drown all others."""
    sizes = [matrix(part).norm(dim=0) for part in (layer, reference)]
    return sizes[0] <= 1e3 * torch.maximum(sizes[1], sizes[1].median())


def _rounding(layer: nn.Linear, reference: nn.Linear) -> Tensor:
    """A noise floor for each unit, [units]."""
    size = torch.maximum(matrix(layer).abs(), matrix(reference).abs())
    typical = torch.nan_to_num(size.double().nanmedian(0).values, posinf=0.0)
    typical = torch.minimum(typical, typical.median())  # a unit that is all noise has no say in its own floor
    return 256.0 * torch.finfo(layer.weight.dtype).eps * typical


def _check(contaminated: PatchCNN, initial: PatchCNN, inputs: Tensor, fit: str, features: str) -> None:
    if fit not in ("l1", "l2", "initial"):
        raise InputError(f'fit must be "l1", "l2" or "initial"; got {fit!r}')
    if features not in ("purified", "initial", "recovered"):
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
    rows = initial.patches(inputs)
    if not inputs.shape[0]:
        raise InputError("purification needs at least one clean input; got n = 0")
    if not torch.isfinite(rows).all():
        raise InputError("clean inputs must be finite; got NaN or infinite entries; leave such inputs out")
    for name, value in initial.state_dict().items():
        if not torch.isfinite(value).all():
            raise InputError(f"initial weights must be finite; {name} has NaN or infinite entries")
