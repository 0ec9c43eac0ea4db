"""Defences that train on the labelled clean images: fine-tuning, and fine-pruning."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData


@dataclass(frozen=True, slots=True)
class Finetuning(Baseline):
    """Trains all weights on the clean images: SGD whose rate falls to zero along half a cosine.

    Settings of BackdoorBench (Wu et al. 2022, config/defense/ft): 100 epochs, rate 0.01, momentum 0.9, weight
    decay 5e-4.
    Its batch of 256 is for 2,500 images; 128 leaves more steps to the few images here. No augmentation.
    """

    name: ClassVar[str] = "fine-tuning"
    labels: ClassVar[bool] = True
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    epochs: int = 100
    rate: float = 0.01
    momentum: float = 0.9
    decay: float = 5e-4
    batch: int = 128

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, trained on."""
        self.descend(network, clean)
        return network

    def descend(self, network: nn.Module, clean: CleanData, *, after: Callable[[], None] | None = None) -> None:
        """Train the network in place, BatchNorm included; ``after`` is called after every step."""
        optimiser = torch.optim.SGD(network.parameters(), lr=self.rate, momentum=self.momentum, weight_decay=self.decay)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.epochs)
        generator = torch.Generator().manual_seed(clean.seed)
        network.train()
        for _ in range(self.epochs):
            for drawn in torch.randperm(len(clean.images), generator=generator).split(self.batch):
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(clean.images[drawn]), clean.labels[drawn]).backward()
                optimiser.step()
                if after is not None:
                    after()
            schedule.step()
        optimiser.zero_grad()


@dataclass(frozen=True, slots=True)
class FinePruning(Baseline):
    """Prunes channels of the last convolution that clean images hardly excite, then fine-tunes what is left.

    Liu et al. 2018. Channels go one by one, the least active first, as long as no more than ``tolerance`` of the clean
    images are lost (4 points). What is pruned is the channel as the first fully connected layer sees it: in a residual
    network that is the sum of the last block's convolutions. Pruned channels stay pruned while the rest is tuned.
    """

    name: ClassVar[str] = "fine-pruning"
    labels: ClassVar[bool] = True
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    tolerance: float = 0.04
    tuning: Finetuning = Finetuning()

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network, pruned and trained on."""
        _, head, _ = _split(network)
        pruned = self.pruned(network, clean)
        columns = pruned.repeat_interleave(head.in_features // len(pruned))

        def prune() -> None:
            with torch.no_grad():
                head.weight[:, columns] = 0.0

        prune()
        self.tuning.descend(network, clean, after=prune)
        return network

    def pruned(self, network: nn.Module, clean: CleanData) -> Tensor:
        """Which channels of the last convolution to prune, [channels]."""
        body, head, tail = _split(network)
        width = _convolutions(body)[-1].out_channels
        pruned = torch.zeros(width, dtype=torch.bool)
        with torch.no_grad():
            features = torch.cat([body(images) for images in clean.images.split(self.tuning.batch)])
            features = features.unflatten(1, (width, -1))
            allowed = _hits(features, head, tail, clean.labels) - self.tolerance * len(features)
            for channel in features.mean((0, 2)).argsort(stable=True).tolist():
                features[:, channel] = 0.0
                if _hits(features, head, tail, clean.labels) < allowed:
                    break
                pruned[channel] = True
        return pruned


def _hits(features: Tensor, head: nn.Linear, tail: nn.Sequential, labels: Tensor) -> int:
    return int((tail(head(features.flatten(1))).argmax(1) == labels).sum())


def _convolutions(body: nn.Module) -> list[nn.Conv2d]:
    return [module for module in body.modules() if isinstance(module, nn.Conv2d)]


def _split(network: nn.Module) -> tuple[nn.Sequential, nn.Linear, nn.Sequential]:
    """A network's convolutions, its first fully connected layer, and the rest.

    Raises:
        InputError: It is not a sequence of such parts.
    """
    parts = list(network) if isinstance(network, nn.Sequential) else []
    for place, part in enumerate(parts):
        if not isinstance(part, nn.Linear):
            continue
        body, tail = nn.Sequential(*parts[:place]), nn.Sequential(*parts[place + 1 :])
        convolutions = _convolutions(body)
        if convolutions and part.in_features % convolutions[-1].out_channels == 0:
            return body, part, tail
        break
    raise InputError(
        "fine-pruning needs a Sequential in which a Linear layer takes the flattened channels of the last convolution; "
        f"got {type(network).__name__} of {[type(part).__name__ for part in parts]}"
    )
