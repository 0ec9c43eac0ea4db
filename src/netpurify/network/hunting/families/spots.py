"""Several small rectangles at once."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, register_family, whole
from netpurify.network.hunting.families.spot import Box, climb_colours, draw_box, stamp, vary_box


@register_family("spots")
@dataclass(frozen=True, slots=True, eq=False)
class Spots(TriggerFamily):
    """Sets two to four plain rectangles of 2 to 5 pixels a side, each to a corner of the colour cube.

    Attributes:
        parameters: One colour for each rectangle [count, c, 1, 1].
        boxes: Where the rectangles are; later ones cover earlier ones.
    """

    draws: ClassVar[int] = 240
    parameters: Tensor
    boxes: tuple[Box, ...]

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """Rectangles anywhere; a variation has one of them moved, resized or in another colour."""
        if near is None:
            boxes = tuple(draw_box(generator, shape) for _ in range(whole(generator, 2, 4)))
            return cls(torch.rand(len(boxes), shape[0], 1, 1, generator=generator).round(), boxes)
        boxes, colours = list(near.boxes), near.parameters.clone()
        place = whole(generator, 0, len(boxes) - 1)
        if whole(generator, 0, 3):
            boxes[place] = vary_box(generator, shape, boxes[place], resized=True)
        else:
            colours[place] = torch.rand(shape[0], 1, 1, generator=generator).round()
        return cls(colours, tuple(boxes))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images with all rectangles set."""
        for colours, box in zip(parameters, self.boxes, strict=True):
            inputs = stamp(inputs, colours, box)
        return inputs

    def climb(self, slope: Tensor) -> Self:
        """Steps of 0.15 of the colours."""
        return replace(self, parameters=climb_colours(self.parameters, slope))
