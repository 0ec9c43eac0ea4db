"""Colour and tone filters."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, normal, register_family

_LIMITS = torch.tensor([[0.35], [0.15], [0.06], [0.5]])
"""Largest logarithm of gamma, logarithm of gain, offset, and change of saturation."""


@register_family("tone")
@dataclass(frozen=True, slots=True, eq=False)
class Tone(TriggerFamily):
    """Gives every channel a gamma, a gain and an offset of its own, and changes the saturation.

    Attributes:
        parameters: Four numbers for each channel [4, c], as shares of their largest sizes, in [-1, 1]: logarithm of
            gamma, logarithm of gain, offset, saturation (of which the mean over the channels counts).
    """

    draws: ClassVar[int] = 80
    parameters: Tensor

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A filter; a variation has other numbers nearby."""
        if near is not None:
            moved = near.parameters + 0.25 * normal(generator, *near.parameters.shape)
            return replace(near, parameters=moved.clamp(-1.0, 1.0))
        return cls(2.0 * torch.rand(4, shape[0], generator=generator) - 1.0)

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The filtered images."""
        numbers = (_LIMITS.to(inputs) * parameters.to(inputs))[..., None, None]
        grey = inputs.mean(dim=1, keepdim=True)
        coloured = grey + (1.0 + numbers[3].mean()) * (inputs - grey)
        # The smallest value is not 0, where the slope of a power below 1 is infinite.
        curved = coloured.clamp(1e-3, 1.0).pow(numbers[0].exp())
        return (numbers[1].exp() * curved + numbers[2]).clamp(0.0, 1.0)

    def climb(self, slope: Tensor) -> Self:
        """Steps of a tenth of the largest sizes."""
        return replace(self, parameters=(self.parameters + 0.1 * slope.sign()).clamp(-1.0, 1.0))
