"""What all defences of the table have in common: each repairs a copy of a network, with the same few clean images."""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from netpurify.errors import InputError


@dataclass(frozen=True, slots=True)
class CleanData:
    """What a defence is given beside the network; a defence may use less of it.

    Attributes:
        images: Clean images in [0, 1], [n, c, h, w].
        labels: Classes of the images, [n].
        initial: The network before training; ``None`` if nobody has it.
        seed: Seed of all random numbers that the defence draws.
    """

    images: Tensor
    labels: Tensor
    initial: nn.Module | None
    seed: int


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
