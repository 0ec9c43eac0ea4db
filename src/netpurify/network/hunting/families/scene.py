"""A second, blurred picture that is mixed in: reflections and low-frequency blends."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, normal, real, register_family, whole
from netpurify.network.hunting.families.field import enlarged


@register_family("scene")
@dataclass(frozen=True, slots=True, eq=False)
class Scene(TriggerFamily):
    """Mixes 8 to 25 % of a smooth picture into the image.

    Attributes:
        parameters: Values of the picture at k x k points [1, 1 or c, k, k], of which it is the bicubic interpolation.
        share: Share of the picture in the mixture.
    """

    parameters: Tensor
    share: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A picture of 3 x 3 to 10 x 10 points, grey or coloured; a variation has other values at the points."""
        if near is not None:
            moved = near.parameters + 0.2 * normal(generator, *near.parameters.shape)
            return replace(near, parameters=moved.clamp(0.0, 1.0))
        points = whole(generator, 3, 10)
        channels = shape[0] if whole(generator, 0, 1) else 1
        return cls(torch.rand(1, channels, points, points, generator=generator), real(generator, 0.08, 0.25))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The mixture."""
        picture = enlarged(parameters, inputs).clamp(0.0, 1.0)
        return (1.0 - self.share) * inputs + self.share * picture

    def climb(self, slope: Tensor) -> Self:
        """Steps of 0.05 of the values at the points."""
        return replace(self, parameters=(self.parameters + 0.05 * slope.sign()).clamp(0.0, 1.0))
