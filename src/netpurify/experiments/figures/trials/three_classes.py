"""The three classes of MNIST and CIFAR-10 that the paper uses, as inputs of its network, and images from elsewhere."""

from functools import cache
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from netpurify import data
from netpurify.findings import Mode

CENTRE = (0.48, 0.25)
"""Mean and scale by which pixels of CIFAR-10 are centred: about their mean and spread. The paper does not say whether
it centres them; Figure 9 has a row without."""
OTHER_CLASSES = (7, 8, 9)
"""Of MNIST the digits themselves; of CIFAR-10 horse, ship, truck."""
PixelScale = Literal["raw", "centred"]


class ThreeClasses:
    """Zero, one, two of MNIST, by default with raw pixels; airplane, automobile, bird of CIFAR-10, grey, centred."""

    def __init__(self, name: str, pixels: PixelScale | None = None) -> None:  # noqa: D107 (the class says it)
        self.name = name
        self.colour = name == "cifar10"
        self.centred = self.colour if pixels is None else pixels == "centred"

    def draw(self, counts: tuple[int, ...], generator: torch.Generator) -> tuple[data.Images, ...]:
        """Disjoint balanced subsets of the training split."""
        return data.draw(load_classes(self.name, "train"), counts, generator=generator)

    def test(self) -> data.Images:
        """All test images of the three classes."""
        return load_classes(self.name, "test")

    def test_inputs(self) -> Tensor:
        """The inputs of all test images, made once: a trial measures some thirty networks on them."""
        return _test_inputs(self.name, self.centred)

    def inputs(self, images: data.Images) -> Tensor:
        """Inputs [n, d]."""
        grey = data.grey(images) if images.pixels.ndim == 4 else images
        return data.to_inputs(grey, centre=CENTRE if self.centred else None)

    def value(self, level: float) -> float:
        """What a pixel of a level between 0, black, and 1, white or ink, is in an input."""
        return (level - CENTRE[0]) / CENTRE[1] if self.centred else level

    def elsewhere(self, origin: str, n: int, generator: torch.Generator) -> Tensor:
        """``n`` inputs that are not from the three classes.

        ``"other classes"`` are three other classes of the data set; ``"other data set"`` is the other of the two data
        sets, in grey, with the middle cut out or a black border added so that the sizes agree; ``"noise"`` has
        independent pixels, uniform between black and white.
        """
        if origin == "other classes":
            return self.inputs(data.draw(load_classes(self.name, "train", OTHER_CLASSES), (n,), generator=generator)[0])
        if origin == "other data set":
            other = ThreeClasses(("mnist" if self.name == "cifar10" else "cifar10"), pixels="raw")
            (drawn,) = other.draw((n,), generator)
            side = round(other.inputs(drawn).shape[1] ** 0.5)
            border = 2 if self.colour else -2
            pixels = pad(other.inputs(drawn).reshape(n, side, side), (border,) * 4)
            return self._scaled(pixels.flatten(1))
        if origin == "noise":
            size = self.inputs(data.take(self.test(), [0])).shape[1]
            return self._scaled(torch.rand(n, size, generator=generator, dtype=torch.float64))
        raise ValueError(f"images from elsewhere are other classes, other data set or noise; got {origin!r}")

    def _scaled(self, levels: Tensor) -> Tensor:
        return (levels - CENTRE[0]) / CENTRE[1] if self.centred else levels


def mnist(mode: Mode) -> str:
    """The MNIST that a mode uses: quick runs need no download."""
    return "mnist-sample" if mode == "quick" else "mnist"


@cache
def load_classes(name: str, split: str, kept: tuple[int, ...] = (0, 1, 2)) -> data.Images:
    """The images of some classes of a data set, the first three unless others are named, loaded once."""
    return data.classes(data.load(name, split=split), kept)  # type: ignore[arg-type] # only "train" and "test"


@cache
def _test_inputs(name: str, centred: bool) -> Tensor:  # noqa: FBT001
    source = ThreeClasses(name, "centred" if centred else "raw")
    return source.inputs(source.test())
