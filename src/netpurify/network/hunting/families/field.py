"""Smooth additive patterns."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from netpurify.network.hunting.families.family import (
    Shape,
    TriggerFamily,
    normal,
    real,
    register_family,
    scaled,
    whole,
)

CLIMB = 0.15
"""Step of a climb, relative to the deviation of the slope."""


@register_family("field")
@dataclass(frozen=True, slots=True, eq=False)
class Field(TriggerFamily):
    """Adds a smooth pattern, grey or coloured, whose root mean square is 0.02 to 0.06.

    Attributes:
        parameters: Values at k x k points [1, 1 or c, k, k], of which the pattern is the bicubic interpolation; their
            root mean square is 1.
        size: Root mean square of the pattern at the points.
    """

    parameters: Tensor
    size: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A pattern of 2 x 2 to 12 x 12 points; a variation has other values at the points."""
        if near is not None:
            moved = near.parameters + 0.4 * normal(generator, *near.parameters.shape)
            return replace(near, parameters=scaled(moved))
        points = whole(generator, 2, 12)
        channels = shape[0] if whole(generator, 0, 1) else 1
        return cls(scaled(normal(generator, 1, channels, points, points)), real(generator, 0.02, 0.06))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images with the pattern added."""
        return (inputs + self.size * enlarged(parameters, inputs)).clamp(0.0, 1.0)

    def climb(self, slope: Tensor) -> Self:
        """A step along the slope; the size stays."""
        return replace(self, parameters=scaled(self.parameters + CLIMB * slope / (slope.std() + 1e-12)))


def enlarged(points: Tensor, images: Tensor) -> Tensor:
    """Values at points [1, channels, k, k], brought to the height and width of images by bicubic interpolation."""
    return functional.interpolate(points.to(images), size=images.shape[2:], mode="bicubic", align_corners=True)
