"""Faint patterns of any form: free in every pixel, but far too weak to lead a healthy network anywhere."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, register_family


@register_family("faint")
@dataclass(frozen=True, slots=True, eq=False)
class Faint(TriggerFamily):
    """Adds a pattern that changes no pixel by more than 0.025, and that climbs freely.

    Patterns of the size of real triggers that gradients may change pixel by pixel lead any network to any class.
    Patterns a tenth of that size do not, but where training has put a backdoor that is spread over the image, such as a
    blended picture or a wave, they find the direction in which it lies, and a fraction of it is enough.

    Attributes:
        parameters: The pattern [1, c, h, w], in [-1, 1], as a share of the largest change.
    """

    draws: ClassVar[int] = 20
    size: ClassVar[float] = 0.025
    parameters: Tensor

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """Random signs; a variation has others in 10 % of the pixels."""
        signs = 2.0 * torch.rand(1, *shape, generator=generator).round() - 1.0
        if near is None:
            return cls(signs)
        changed = torch.rand(1, 1, *shape[1:], generator=generator) < 0.1
        return cls(torch.where(changed, signs, near.parameters))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images with the pattern added."""
        return (inputs + self.size * parameters.to(inputs)).clamp(0.0, 1.0)

    def climb(self, slope: Tensor) -> Self:
        """Steps of 0.4 of the largest change in every pixel."""
        return replace(self, parameters=(self.parameters + 0.4 * slope.sign()).clamp(-1.0, 1.0))
