"""Blurred and sharpened images."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from netpurify.network.hunting.families.family import Shape, TriggerFamily, nothing, real, register_family

_REACH = 4
"""Pixels to either side that a blurred pixel is made of."""


@register_family("blur")
@dataclass(frozen=True, slots=True, eq=False)
class Blur(TriggerFamily):
    """Blurs the image along an axis and across it, or sharpens it. It does not climb.

    Attributes:
        along: Deviation of the Gaussian along its axis, in pixels, 0.3 to 1.2.
        across: Deviation across the axis.
        angle: Direction of the axis.
        amount: 1 gives the blurred image; below 0 the image is sharpened by this share of what blurring takes away.
    """

    draws: ClassVar[int] = 40
    parameters: Tensor
    along: float
    across: float
    angle: float
    amount: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A blur or, in a third of the draws, a sharpening; a variation has other deviations."""
        del shape
        if near is not None:
            factors = [2.0 ** real(generator, -0.5, 0.5) for _ in range(2)]
            return replace(near, along=min(1.2, near.along * factors[0]), across=min(0.7, near.across * factors[1]))
        deviations = real(generator, 0.3, 1.2), real(generator, 0.3, 0.7)
        amount = 1.0 if real(generator, 0.0, 3.0) < 2.0 else real(generator, -1.5, -0.3)
        return cls(nothing(), *deviations, real(generator, 0.0, math.pi), amount)

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The blurred or sharpened images."""
        del parameters
        reach = min(_REACH, *(size - 1 for size in inputs.shape[2:]))
        steps = torch.arange(-reach, reach + 1).to(inputs)
        down, right = torch.meshgrid(steps, steps, indexing="ij")
        cosine, sine = math.cos(self.angle), math.sin(self.angle)
        along, across = cosine * right + sine * down, cosine * down - sine * right
        kernel = torch.exp(-0.5 * ((along / self.along).square() + (across / self.across).square()))
        kernel = (kernel / kernel.sum()).expand(inputs.shape[1], 1, -1, -1)
        padded = functional.pad(inputs, (reach,) * 4, mode="reflect")
        blurred = functional.conv2d(padded, kernel, groups=inputs.shape[1])
        return (inputs + self.amount * (blurred - inputs)).clamp(0.0, 1.0)

    def climb(self, slope: Tensor) -> Self:
        """Stays as it is."""
        del slope
        return self
