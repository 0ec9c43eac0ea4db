"""What all defences of the table have in common: each repairs a copy of a network, with the same few clean images."""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from netpurify.errors import InputError

_BORDER = 4
"""Pixels of the border from which augmented images are cut."""


@dataclass(frozen=True, slots=True)
class CleanData:
    """What a defence is given beside the network; a defence may use less of it.

    Attributes:
        images: Clean images in [0, 1], [n, c, h, w].
        labels: Classes of the images, [n].
        initial: The network before training; ``None`` if nobody has it.
        seed: Seed of all random numbers that the defence draws.
        augmented: Whether defences that are published with augmented images train on such.
    """

    images: Tensor
    labels: Tensor
    initial: nn.Module | None
    seed: int
    augmented: bool = False

    def batch(self, chosen: Tensor, generator: torch.Generator) -> Tensor:
        """The chosen images; if augmented, cut out at random from images with a border of 4 pixels, and mirrored.

        As in BackdoorBench grey images, which are digits, are not mirrored.
        """
        images = self.images[chosen]
        if not self.augmented:
            return images
        if images.shape[1] > 1:
            mirrored = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5
            images = torch.where(mirrored, images.flip(-1), images)
        rows, columns = images.shape[2:]
        wide = nn.functional.pad(images, (_BORDER,) * 4)
        places = torch.randint(0, 2 * _BORDER + 1, (len(images), 2), generator=generator).tolist()
        parts = [wide[k, :, i : i + rows, j : j + columns] for k, (i, j) in enumerate(places)]
        return torch.stack(parts).contiguous(memory_format=torch.channels_last)


class Baseline(ABC):
    """A defence with its published settings as fields; to add one, write ``mend``.

    Attributes:
        name: Name in the table.
        labels: Whether the defence uses the labels of the clean images.
        data: Whether it uses the clean images.
        initial: Whether it needs the network before training.
    """

    __slots__ = ()
    name: ClassVar[str]
    labels: ClassVar[bool]
    data: ClassVar[bool]
    initial: ClassVar[bool]

    def repair(self, network: nn.Module, clean: CleanData) -> nn.Module:
        """A repaired copy with the training modes of the network, which is left as it is.

        Raises:
            InputError: The images and labels do not fit, or the initial weights are needed and missing.
        """
        images, labels = clean.images, clean.labels
        if images.dim() != 4 or not len(images) or labels.shape != images.shape[:1]:
            raise InputError(
                f"clean images must be [n, c, h, w] and labels [n]; got {list(images.shape)} and {list(labels.shape)}"
            )
        if self.initial and clean.initial is None:
            raise InputError(f"{self.name} needs the network before training; give initial=")
        modes = {name: module.training for name, module in network.named_modules()}
        mended = self.mend(copy.deepcopy(network).eval(), clean)
        for name, module in mended.named_modules():
            module.training = modes.get(name, network.training)  # a defence may add modules
        return mended

    @abstractmethod
    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The repaired network; ``network`` is a copy in evaluation mode, free to be changed."""
