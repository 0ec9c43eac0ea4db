"""Adversarial neuron pruning: masks that make a network hard to lead astray by changing its channels."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from netpurify.errors import InputError
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData


@dataclass(frozen=True, slots=True)
class AdversarialPruning(Baseline):
    """Prunes channels whose perturbation does most harm to clean images (ANP).

    Minimises over masks m in [0, 1] the clean loss times alpha plus the loss under the worst perturbation times
    1 - alpha; a channel's weight is multiplied by m + d, its bias by 1 + e, with |d|, |e| about eps. Wu & Wang 2021:
    eps 0.4, alpha 0.2, one step, rate 0.2, momentum 0.9, batch 128, 2,000 iterations; channels
    with a mask of at most 0.2 are pruned.
    As in the authors' code, perturbations start at random in [-eps, eps] and take one signed step of eps, BatchNorm
    uses the statistics of the batch meanwhile, and a pruned channel keeps its bias. Channels are those of BatchNorm;
    in networks without, those of the convolutions. Augmented only if the clean data are.
    """

    name: ClassVar[str] = "ANP"
    labels: ClassVar[bool] = True
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    eps: float = 0.4
    alpha: float = 0.2
    steps: int = 1
    rate: float = 0.2
    momentum: float = 0.9
    batch: int = 128
    iterations: int = 2000
    threshold: float = 0.2

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, pruned."""
        with torch.no_grad():
            for name, mask in self.masks(network, clean).items():
                network.get_parameter(f"{name}.weight")[mask <= self.threshold] = 0.0
        return network

    def masks(self, network: nn.Module, clean: CleanData) -> dict[str, Tensor]:
        """The mask of every channel, [channels] for each layer by its name."""
        # A copy: BatchNorm's running statistics move while the masks are sought, and are then of no use.
        work = copy.deepcopy(network).train().requires_grad_(False)
        names = _names(work)
        sizes = [len(work.get_parameter(f"{name}.weight")) for name in names]
        generator = torch.Generator().manual_seed(clean.seed)

        def loss(some: tuple[Tensor, Tensor], scale: Tensor, shift: Tensor) -> Tensor:
            changed = _scaled(work, names, scale.split(sizes), shift.split(sizes))
            return nn.functional.cross_entropy(functional_call(work, changed, (some[0],)), some[1])

        ones = torch.ones(sum(sizes))
        mask = ones.clone().requires_grad_()
        optimiser = torch.optim.SGD([mask], lr=self.rate, momentum=self.momentum)
        with torch.enable_grad():
            for _ in range(self.iterations):
                drawn = torch.randint(len(clean.images), (self.batch,), generator=generator)
                some = clean.batch(drawn, generator), clean.labels[drawn]
                noise = self.eps * (2.0 * torch.rand(2, len(ones), generator=generator) - 1.0)
                for _ in range(self.steps):
                    noise.requires_grad_()
                    worse = loss(some, mask.detach() + noise[0], ones + noise[1])
                    (slope,) = torch.autograd.grad(worse, noise)
                    noise = noise.detach() + self.eps / self.steps * slope.sign()
                optimiser.zero_grad()
                robust = loss(some, mask + noise[0], ones + noise[1])
                (self.alpha * loss(some, mask, ones) + (1.0 - self.alpha) * robust).backward()
                optimiser.step()
                mask.data.clamp_(0.0, 1.0)
        return dict(zip(names, mask.detach().split(sizes), strict=True))


def _names(network: nn.Module) -> list[str]:
    """Names of the layers whose channels are masked.

    Raises:
        InputError: There are none.
    """
    for kind in (nn.BatchNorm2d, nn.Conv2d):
        names = [name for name, module in network.named_modules() if isinstance(module, kind)]
        if names:
            return names
    raise InputError("ANP masks channels; expected BatchNorm2d or Conv2d in the network, got neither; leave it out")


def _scaled(
    network: nn.Module, names: Sequence[str], scales: Sequence[Tensor], shifts: Sequence[Tensor]
) -> dict[str, Tensor]:
    """The layers' weights times ``scales`` and their biases times ``shifts``, channel by channel."""
    found = {}
    for name, scale, shift in zip(names, scales, shifts, strict=True):
        own = dict(network.get_submodule(name).named_parameters())
        weight = own["weight"]
        found[f"{name}.weight"] = weight * scale.reshape(-1, *[1] * (weight.dim() - 1))
        if "bias" in own:
            found[f"{name}.bias"] = own["bias"] * shift
    return found
