"""Reconstructive neuron pruning: channels that a network, made to forget clean images, cannot use to recover."""

import copy
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from netpurify.contaminate import accuracy
from netpurify.errors import InputError
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData

_THRESHOLDS = tuple(place / 20 for place in range(19, 0, -1))
"""Thresholds that are tried, the largest first."""


@dataclass(frozen=True, slots=True)
class ReconstructivePruning(Baseline):
    """Prunes channels that do not help a copy that has unlearned the clean images to recover them (RNP).

    First maximises the clean loss over all weights of a copy, until at most 20 % of the clean images were right in an
    epoch; then minimises alpha times the clean loss over masks m in [0, 1] of the copy's channels, its weights fixed.
    Channels of the network with a mask of at most the threshold are pruned. Li et al. 2023, authors' code, with 500
    images: unlearning by SGD of rate 0.01, a tenth of it from epoch 10 on, momentum 0.9, weight decay 5e-4, 20 epochs
    at most; recovery by SGD of rate 0.2, momentum 0.9, alpha 0.2, 20 epochs; batch 128. They look for the threshold
    with the attack at hand; 0.7 is BackdoorBench's fixed one, and without a threshold the largest one is taken that
    costs at most ``allowed`` of the accuracy on the clean images.
    As in their code BatchNorm uses the statistics of the batch meanwhile, a mask scales the weight alone, and a pruned
    channel keeps its bias. Channels are those of BatchNorm; in networks without, those of the convolutions. All their
    networks have BatchNorm: without it the copy is damaged so much that the threshold prunes most channels. Their code
    clips slopes at norm 20, but before they are computed, which does nothing; here the slopes are clipped, so that the
    weights of the copy stay finite. If the copy does not forget within the epochs, recovery starts all the same, as in
    BackdoorBench. Augmented only if the clean data are.
    """

    name: ClassVar[str] = "RNP"
    labels: ClassVar[bool] = True
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    unlearning_epochs: int = 20
    unlearning_rate: float = 0.01
    milestone: int = 10
    decay: float = 5e-4
    clip: float = 20.0
    forgotten: float = 0.2
    recovering_epochs: int = 20
    recovering_rate: float = 0.2
    alpha: float = 0.2
    momentum: float = 0.9
    batch: int = 128
    threshold: float | None = 0.7
    allowed: float = 0.05

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, pruned."""
        generator = torch.Generator().manual_seed(clean.seed)
        masks = self.masks(self.unlearned(network, clean, generator), clean, generator)
        if self.threshold is not None:
            return _pruned(network, masks, self.threshold)
        least = accuracy(network, clean.images, clean.labels) - self.allowed
        for threshold in _THRESHOLDS:
            pruned = _pruned(copy.deepcopy(network), masks, threshold)
            if accuracy(pruned, clean.images, clean.labels) >= least:
                return pruned
        return network

    def unlearned(self, network: nn.Module, clean: CleanData, generator: torch.Generator) -> nn.Module:
        """A copy that has forgotten the clean images."""
        work = copy.deepcopy(network).train()
        optimiser = torch.optim.SGD(
            work.parameters(), lr=self.unlearning_rate, momentum=self.momentum, weight_decay=self.decay
        )
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [self.milestone], gamma=0.1)
        for _ in range(self.unlearning_epochs):
            hits = 0
            for drawn in torch.randperm(len(clean.images), generator=generator).split(self.batch):
                optimiser.zero_grad()
                scores = work(clean.batch(drawn, generator))
                hits += int((scores.argmax(1) == clean.labels[drawn]).sum())
                (-nn.functional.cross_entropy(scores, clean.labels[drawn])).backward()
                nn.utils.clip_grad_norm_(work.parameters(), self.clip)
                optimiser.step()
            schedule.step()
            if hits <= self.forgotten * len(clean.images):
                break
        return work

    def masks(self, unlearned: nn.Module, clean: CleanData, generator: torch.Generator) -> dict[str, Tensor]:
        """The mask of every channel after recovery, [channels] for each layer by its name."""
        # A copy: BatchNorm's running statistics move while the masks are sought.
        work = copy.deepcopy(unlearned).train().requires_grad_(False)
        weights = {name: work.get_parameter(f"{name}.weight") for name in _masked(work)}
        masks = {name: torch.ones(len(weight), requires_grad=True) for name, weight in weights.items()}
        optimiser = torch.optim.SGD(masks.values(), lr=self.recovering_rate, momentum=self.momentum)
        for _ in range(self.recovering_epochs):
            for drawn in torch.randperm(len(clean.images), generator=generator).split(self.batch):
                scaled = {
                    f"{name}.weight": weight * masks[name].reshape(-1, *[1] * (weight.dim() - 1))
                    for name, weight in weights.items()
                }
                optimiser.zero_grad()
                scores = functional_call(work, scaled, (clean.batch(drawn, generator),))
                (self.alpha * nn.functional.cross_entropy(scores, clean.labels[drawn])).backward()
                optimiser.step()
                for mask in masks.values():
                    mask.data.clamp_(0.0, 1.0)
        return {name: mask.detach() for name, mask in masks.items()}


def _pruned(network: nn.Module, masks: dict[str, Tensor], threshold: float) -> nn.Module:
    """The network without the channels whose mask is at most the threshold."""
    with torch.no_grad():
        for name, mask in masks.items():
            network.get_parameter(f"{name}.weight")[mask <= threshold] = 0.0
    return network


def _masked(network: nn.Module) -> list[str]:
    """Names of the layers whose channels have masks.

    Raises:
        InputError: There are none.
    """
    named = list(network.named_modules())
    norms = [name for name, module in named if isinstance(module, nn.BatchNorm2d)]
    found = norms or [name for name, module in named if isinstance(module, nn.Conv2d)]
    if not found:
        raise InputError("RNP masks channels; expected BatchNorm2d or Conv2d in the network, got neither; leave it out")
    return found
