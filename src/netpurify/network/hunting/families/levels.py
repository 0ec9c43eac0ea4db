"""Few levels of brightness, with or without dithering, as in BppAttack (Wang et al. 2022)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, nothing, real, register_family, whole

_BAYER = torch.tensor([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16.0 - 0.5
"""Thresholds of ordered dithering (Bayer 1973)."""


@register_family("levels")
@dataclass(frozen=True, slots=True, eq=False)
class Levels(TriggerFamily):
    """Rounds every value to one of 5 to 16 levels, with ordered dithering of any strength. It does not climb.

    Attributes:
        count: Number of levels.
        dither: Size of the pattern that is added before rounding, in steps between levels.
        offset: How far the levels are moved, in steps.
    """

    draws: ClassVar[int] = 40
    parameters: Tensor
    count: int
    dither: float
    offset: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """Levels and a strength of the dithering; a variation has a level more or less."""
        del shape
        dither, offset = real(generator, 0.0, 1.0), real(generator, -0.5, 0.5)
        if near is None:
            return cls(nothing(), whole(generator, 5, 16), dither if whole(generator, 0, 1) else 0.0, offset)
        return replace(near, count=max(5, near.count + whole(generator, -1, 1)), offset=offset)

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The rounded images."""
        del parameters
        rows, columns = inputs.shape[2:]
        pattern = _BAYER.repeat(-(-rows // 4), -(-columns // 4))[:rows, :columns].to(inputs)
        steps = (self.count - 1) * inputs + self.dither * pattern + self.offset
        return ((steps.round() - self.offset) / (self.count - 1)).clamp(0.0, 1.0)

    def climb(self, slope: Tensor) -> Self:
        """Stays as it is."""
        del slope
        return self
