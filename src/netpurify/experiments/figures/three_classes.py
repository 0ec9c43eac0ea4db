"""The three classes of MNIST and CIFAR-10 that the paper uses, as inputs of its network."""

from functools import cache

import torch
from torch import Tensor

from netpurify import data
from netpurify.findings import Mode


class ThreeClasses:
    """Zero, one, two of MNIST with raw pixels; airplane, automobile, bird of CIFAR-10 in grey, (x - .48) / .25.

    Raw CIFAR-10 pixels are not usable: without centring every clean image excites the trigger's direction, and
    purification can raise the attack's success.
    """

    def __init__(self, name: str) -> None:  # noqa: D107 (the class says it)
        self.name = name
        self.colour = name == "cifar10"

    def draw(self, counts: tuple[int, ...], generator: torch.Generator) -> tuple[data.Images, ...]:
        """Disjoint balanced subsets of the training split."""
        return data.draw(_three(self.name, "train"), counts, generator=generator)

    def test(self) -> data.Images:
        """All test images of the three classes."""
        return _three(self.name, "test")

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
def _three(name: str, split: str) -> data.Images:
    return data.classes(data.load(name, split=split), (0, 1, 2))  # type: ignore[arg-type] # only "train" and "test"
