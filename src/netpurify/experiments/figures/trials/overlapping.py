"""Trial of Figure 17: the paper's network with overlapping, strided and padded patches, as a torch convolution.

Only the proofs need patches that do not overlap. Training moves a filter within the span of all patches, whatever they
share. So a convolution is trained as the paper's network on inputs that are all its patches one after the other, and
then purified as the torch network that it is.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from netpurify import lad, network
from netpurify.contaminate import Normal, contaminate
from netpurify.experiments.figures.trials.altered_weights import NOISE_SEED, Cell
from netpurify.experiments.figures.trials.three_classes import ThreeClasses
from netpurify.paper import PatchCNN, train

EXACT = 1e-6


class ConvolutionSum(nn.Module):
    """Equation 1 with any stride and padding: convolution, ReLU, sum over all places, output layer."""

    def __init__(self, kernel: tuple[int, int], stride: int, padding: tuple[int, int], p: int) -> None:  # noqa: D107
        super().__init__()
        conv: Any = nn.utils.skip_init(
            nn.Conv2d, 1, p, kernel, stride=stride, padding=padding, bias=False, dtype=torch.float64
        )
        output: Any = nn.utils.skip_init(nn.Linear, p, 1, bias=False, dtype=torch.float64)
        self.conv, self.output = conv, output

    def forward(self, images: Tensor) -> Tensor:
        """Outputs [n] of images [n, 1, height, width]."""
        features = self.conv(images).relu().flatten(2).sum(2)
        return self.output(features)[:, 0] / math.sqrt(features.shape[1])

    def load(self, trained: PatchCNN) -> "ConvolutionSum":
        """The same network with the weights of the paper's, whose patches are those of the convolution."""
        with torch.no_grad():
            self.conv.weight.copy_(trained.layers[0].weight.reshape(self.conv.weight.shape))
            self.output.weight.copy_(trained.output.weight)
        return self


def convolution(settings: Cell, seed: int, *, shares: Sequence[float]) -> list[Cell]:
    """One trained convolution, its filters contaminated at every share and purified."""
    generator = torch.Generator().manual_seed(seed)
    images, targets = _inputs(settings, generator)
    kernel = (settings["rows"], settings["columns"])
    padding = (settings["padding"] if kernel[0] > 1 else 0, settings["padding"])
    places = nn.functional.unfold(images, kernel, stride=settings["stride"], padding=padding)
    patches = places.transpose(1, 2).flatten(1)
    m, k = places.shape[2], places.shape[1]
    start = PatchCNN(m=m, k=k, p=settings["p"], generator=generator)
    training = train(start, patches, targets, gamma=min(1.0, 5.0 / m**2), steps=settings["steps"])
    shape = (kernel, settings["stride"], padding, settings["p"])
    initial, trained = (ConvolutionSum(*shape).load(net) for net in (training.initial, training.trained))
    head: Cell = {"m": m, "fan_in": k, "outside": _outside(training.initial, training.trained, patches)}
    rows = []
    for eps in shares:
        noise = torch.Generator().manual_seed(NOISE_SEED + seed)
        state = contaminate(trained.state_dict(), Normal(1.0, 1.0), share=eps, generator=noise, names=["conv.weight"])
        dirty = copy.deepcopy(trained)
        dirty.load_state_dict(state.state)
        policy = network.Project(initial, proof=False)
        result = network.purify(dirty, images, policy=policy, layers=["conv"])
        (layer,) = result.layers
        error = (result.model.get_parameter("conv.weight") - trained.conv.weight).detach().flatten(1).abs().amax(1)
        rows.append({
            **head,
            "eps": eps,
            "live": layer.live,
            "rank": layer.rank,
            "exact": float((error <= EXACT).double().mean()),
            "predicted": _odds(layer.live, layer.rank, eps),
            "called": float(np.isin(layer.status, (lad.Status.CLEAN, lad.Status.RECOVERED)).mean()),
        })  # fmt: skip
    return rows


def _inputs(settings: Cell, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images [n, 1, height, width] and targets: normal signals of one row, or digits as in Figures 5 and 6."""
    n = settings["n"]
    if settings["inputs"] == "normal":
        images = torch.randn(n, 1, 1, settings["length"], generator=generator, dtype=torch.float64)
        return images, 2.0 * torch.rand(n, generator=generator, dtype=torch.float64) - 1.0
    source = ThreeClasses(settings["inputs"])
    (digits,) = source.draw((n,), generator)
    return source.inputs(digits).reshape(n, 1, 28, 28), digits.labels.double() - 1.0


def _outside(initial: PatchCNN, trained: PatchCNN, patches: Tensor) -> float:
    """The part of training's change of W that does not lie in the span of the patches, as a share of the whole."""
    change = (trained.layers[0].weight - initial.layers[0].weight).detach().T
    rows = initial.patches(patches).T
    rest = change - rows @ torch.linalg.lstsq(rows, change, driver="gelsd").solution
    return float(rest.norm() / change.norm())


def _odds(live: int, rank: int, eps: float) -> float:
    """The odds of a filter on a generic design; none if the patches span every direction."""
    return lad.recovery_probability(live, rank, eps) if rank < live else 0.0
