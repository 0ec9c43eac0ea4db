"""The three classes of MNIST and CIFAR-10 that the paper uses, as inputs of its network."""

from functools import cache

import torch
from torch import Tensor

from netpurify import data
from netpurify.findings import Mode


class ThreeClasses:
    """Zero, one, two of MNIST with raw pixels; airplane, automobile, bird of CIFAR-10 in grey, (x - 0.48) / 0.25.

    Raw pixels of CIFAR-10 cannot be used: if they are not centred, every clean image has a part in the direction of the
    trigger, and purification can raise the success of the attack.
    """

    def __init__(self, name: str) -> None:  # noqa: D107 (the class says it)
        self.name = name
        self.colour = name == "cifar10"

    def draw(self, counts: tuple[int, ...], generator: torch.Generator) -> tuple[data.Images, ...]:
        """Disjoint balanced subsets of the training split."""
        return data.draw(load_classes(self.name, "train"), counts, generator=generator)

    def test(self) -> data.Images:
        """All test images of the three classes."""
        return load_classes(self.name, "test")

    def inputs(self, images: data.Images) -> Tensor:
        """Inputs [n, d]."""
        if self.colour:
            return data.to_inputs(data.grey(images), centre=(0.48, 0.25))
        return data.to_inputs(images)

    @property
    def black(self) -> float:
        """The value of a black pixel after centring."""
        return (0.0 - 0.48) / 0.25 if self.colour else 0.0


def mnist(mode: Mode) -> str:
    """The MNIST that a mode uses: quick runs need no download."""
    return "mnist-sample" if mode == "quick" else "mnist"


@cache
def load_classes(name: str, split: str) -> data.Images:
    """The images of the first three classes of a data set, loaded once."""
    return data.classes(data.load(name, split=split), (0, 1, 2))  # type: ignore[arg-type] # only "train" and "test"
