"""Borders of an image in one colour."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, register_family, whole
from netpurify.network.hunting.families.spot import climb_colours

Widths = tuple[int, ...]
"""Width of the border at the top, at the bottom, on the left and on the right."""


@register_family("frame")
@dataclass(frozen=True, slots=True, eq=False)
class Frame(TriggerFamily):
    """Sets the outermost one or two pixels on one to four sides to a colour.

    Attributes:
        parameters: The colour [c, 1, 1], in [0, 1].
        widths: How wide the border is on each side; 0 where there is none.
    """

    draws: ClassVar[int] = 60
    parameters: Tensor
    widths: Widths

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A border and a corner of the colour cube; a variation has another width on one side, or another colour."""
        if near is not None and whole(generator, 0, 1):
            side, width = whole(generator, 0, 3), whole(generator, 0, 2)
            widths = tuple(width if place == side else old for place, old in enumerate(near.widths))
            return replace(near, widths=widths)
        colour = torch.rand(shape[0], 1, 1, generator=generator).round()
        if near is not None:
            return replace(near, parameters=colour)
        width, sides = whole(generator, 1, 2), whole(generator, 1, 15)
        return cls(colour, tuple(width if sides >> place & 1 else 0 for place in range(4)))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images with the border."""
        top, bottom, left, right = self.widths
        rows, columns = (torch.arange(size, device=inputs.device) for size in inputs.shape[2:])
        outside = (rows < top) | (rows >= len(rows) - bottom)
        edge = outside[:, None] | (columns < left) | (columns >= len(columns) - right)
        return torch.where(edge, parameters.to(inputs), inputs)

    def climb(self, slope: Tensor) -> Self:
        """Steps of 0.15 of the colour."""
        return replace(self, parameters=climb_colours(self.parameters, slope))
