"""Fine-tuning with sharpness-aware minimisation: every step uses the slope at the worst weights nearby."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from netpurify.experiments.studies.defence.baseline import Baseline, CleanData

TINY = 1e-12
"""Added to the norm by which a slope is divided, as in the authors' code."""


@dataclass(frozen=True, slots=True)
class SharpnessAware(Baseline):
    """Fine-tunes to weights around which the clean loss is flat, which shrinks large weights (FT-SAM).

    Minimises the clean loss at the weights w + e, where e maximises it to first order in an ellipsoid that is wide
    where weights are large: e = rho w^2 g / |w g|, with the slope g at w, over all weights at once. Zhu et al. 2023,
    BackdoorBench (config/defense/ft-sam) for CIFAR-10: rho 2, 100 epochs, SGD of rate 0.01, momentum 0.9, weight decay
    5e-4; the true class has a target of 0.9, the others share the 0.1. BatchNorm's running statistics see w alone.
    Its batch of 256 is for 2,500 images; 128 leaves more steps to the few images here, as in fine-tuning. The rate
    falls to zero once, along half a cosine over all epochs; in their code it falls in 100 steps, rises again in the
    next 100, and so on, so that the number of images decides whether the last rate is large or small.
    Augmented only if the clean data are.
    """

    name: ClassVar[str] = "FT-SAM"
    labels: ClassVar[bool] = True
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    epochs: int = 100
    rate: float = 0.01
    momentum: float = 0.9
    decay: float = 5e-4
    batch: int = 128
    rho: float = 2.0
    smoothing: float = 0.1

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, trained on."""
        optimiser = torch.optim.SGD(network.parameters(), lr=self.rate, momentum=self.momentum, weight_decay=self.decay)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.epochs)
        generator = torch.Generator().manual_seed(clean.seed)
        network.train()
        for _ in range(self.epochs):
            for drawn in torch.randperm(len(clean.images), generator=generator).split(self.batch):
                slopes = self.slopes(network, clean.batch(drawn, generator), clean.labels[drawn])
                for value, slope in zip(network.parameters(), slopes, strict=True):
                    value.grad = slope
                optimiser.step()
            schedule.step()
        optimiser.zero_grad()
        return network

    def slopes(self, network: nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """The slope of the loss in each parameter, at the worst weights nearby."""
        names, weights = zip(*network.named_parameters(), strict=True)
        near = torch.autograd.grad(self.loss(network(images), labels), weights)
        moves = climb([weight.detach() for weight in weights], near, self.rho)
        worst = [(weight.detach() + move).requires_grad_() for weight, move in zip(weights, moves, strict=True)]
        # With buffers of its own the second pass leaves the running statistics of the network alone.
        buffers = {name: value.clone() for name, value in network.named_buffers()}
        scores = functional_call(network, {**dict(zip(names, worst, strict=True)), **buffers}, (images,))
        return torch.autograd.grad(self.loss(scores, labels), worst)

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The cross-entropy with smoothed labels."""
        classes = scores.shape[1]
        # PyTorch also gives the true class its part of what is shared; the factor takes that back.
        shared = self.smoothing * classes / (classes - 1)
        return nn.functional.cross_entropy(scores, labels, label_smoothing=shared)


def climb(weights: Sequence[Tensor], slopes: Sequence[Tensor], rho: float) -> list[Tensor]:
    """The moves of the weights, e with |e / w| = rho, that increase the loss most to first order."""
    pairs = list(zip(weights, slopes, strict=True))
    norm = torch.stack([(weight * slope).norm() for weight, slope in pairs]).norm()
    return [weight.square() * slope * (rho / (norm + TINY)) for weight, slope in pairs]
