"""Implicit backdoor adversarial unlearning: a network learns to withstand the pattern that leads it astray most."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from netpurify.experiments.studies.defence.baseline import Baseline, CleanData


@dataclass(frozen=True, slots=True)
class ImplicitUnlearning(Baseline):
    """Unlearns the pattern that changes the most classes, and knows that the pattern follows the weights (I-BAU).

    Minimises over the weights the loss of clean images a few of which carry a pattern d, where d maximises the loss of
    all images less ``penalty`` times the squared norm of d. The gradient counts how the best d moves with the weights.
    Zeng et al. 2022, authors' code: one d for all images, from zero, one SGD step of rate 10 for each batch, away from
    the network's own classes; norm of d cut to 10 (as in their notebooks); penalty 0.001; d is on 1 % of a batch; the
    implicit gradient by 5 fixed-point iterations of descent with step 0.1 on the first batch; pixels are not clamped;
    batch 100. BackdoorBench (config/defense/i-bau): 5 rounds, Adam with AMSGrad, rate 1e-4 (authors: 1e-3).
    As in both, BatchNorm keeps its statistics. At least one image of a batch carries d, because 1 % of the few images
    here may be none; the batches are drawn once, as the order is fixed in the authors' code. No augmentation.
    """

    name: ClassVar[str] = "I-BAU"
    labels: ClassVar[bool] = True
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    rounds: int = 5
    rate: float = 1e-4
    iterations: int = 5
    step: float = 0.1
    pattern_rate: float = 10.0
    radius: float = 10.0
    penalty: float = 0.001
    share: float = 0.01
    batch: int = 100

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, trained on in evaluation mode."""
        generator = torch.Generator().manual_seed(clean.seed)
        drawn = torch.randperm(len(clean.images), generator=generator).split(self.batch)
        batches = [(clean.images[some], clean.labels[some]) for some in drawn]
        parameters = list(network.parameters())
        optimiser = torch.optim.Adam(parameters, lr=self.rate, amsgrad=True)

        def inner(pattern: Tensor) -> Tensor:
            return self.objective(network, pattern, *batches[0])

        for _ in range(self.rounds):
            pattern = self.pattern(network, [images for images, _ in batches])
            for images, labels in batches:
                carriers = torch.randperm(len(images), generator=generator)[: max(1, int(self.share * len(images)))]
                outer = _Stamped(network, images, labels, carriers)
                slopes = hypergradient(outer, inner, pattern, parameters, step=self.step, iterations=self.iterations)
                for value, slope in zip(parameters, slopes, strict=True):
                    value.grad = slope
                optimiser.step()
        optimiser.zero_grad()
        return network

    def pattern(self, network: nn.Module, batches: Sequence[Tensor]) -> Tensor:
        """The pattern that leads the network away from its own classes, [1, c, h, w]."""
        found = torch.zeros_like(batches[0][:1])
        for images in batches:
            found.requires_grad_()
            with torch.no_grad():
                classes = network(images).argmax(1)
            (slope,) = torch.autograd.grad(self.objective(network, found, images, classes), found)
            found = found.detach() - self.pattern_rate * slope
        return found * (self.radius / found.norm().clamp_min(self.radius))

    def objective(self, network: nn.Module, pattern: Tensor, images: Tensor, labels: Tensor) -> Tensor:
        """What the pattern minimises: the loss with its sign turned, plus the penalty of the pattern's norm."""
        loss = nn.functional.cross_entropy(network(images + pattern), labels)
        return self.penalty * pattern.square().sum() - loss


@dataclass(frozen=True, slots=True)
class _Stamped:
    """The loss of a batch of which a few images, the carriers, have the pattern added."""

    network: nn.Module
    images: Tensor
    labels: Tensor
    carriers: Tensor

    def __call__(self, pattern: Tensor) -> Tensor:
        chosen = torch.zeros(len(self.images), 1, 1, 1, dtype=pattern.dtype)
        chosen[self.carriers] = 1.0
        return nn.functional.cross_entropy(self.network(self.images + chosen * pattern), self.labels)


def hypergradient(
    outer: Callable[[Tensor], Tensor],
    inner: Callable[[Tensor], Tensor],
    pattern: Tensor,
    parameters: Sequence[Tensor],
    *,
    step: float,
    iterations: int,
) -> list[Tensor]:
    """Slope of the outer loss in the parameters when the pattern stays where the inner loss is least.

    With A the Jacobian of one descent step on the inner loss in the pattern, B the same in the parameters, and g the
    outer slope in the pattern, it is the outer slope in the parameters plus v B. The vector v, which solves
    v = v A + g, is taken after ``iterations`` fixed-point iterations from zero.
    """
    pattern = pattern.detach().requires_grad_()
    direct, *slopes = torch.autograd.grad(outer(pattern), [pattern, *parameters], materialize_grads=True)
    (downhill,) = torch.autograd.grad(inner(pattern), pattern, create_graph=True)
    moved = pattern - step * downhill
    vector = direct  # the first iteration from zero
    for _ in range(iterations - 1):
        (turned,) = torch.autograd.grad(moved, pattern, vector, retain_graph=True)
        vector = turned + direct
    through = torch.autograd.grad(moved, parameters, vector, materialize_grads=True)
    return [slope + more for slope, more in zip(slopes, through, strict=True)]
