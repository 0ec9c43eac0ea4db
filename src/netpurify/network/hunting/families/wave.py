"""Sine waves over the whole image, as in SIG (Barni et al. 2019)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, Try, normal, real, register_family, whole

_MOST_PERIODS = 10
"""Periods over the image, at most."""
_SIZES = (0.04, 0.08)
"""Smallest and largest amplitude."""
_VARIATION = torch.tensor([0.4, 0.4, 0.5])
_STEP = torch.tensor([0.1, 0.1, 0.2])


@register_family("wave")
@dataclass(frozen=True, slots=True, eq=False)
class Wave(TriggerFamily):
    """Adds a plane sine wave of 1 to 10 periods and an amplitude of 0.04 to 0.08, grey or coloured.

    A network follows the waves within about a period of the one that it has learnt. So a search begins with grey waves
    of every whole number of periods over the width and the height, and random waves beside them.

    Attributes:
        parameters: Periods over the width, periods over the height, phase.
        colour: Factor of each channel [c, 1, 1], the largest of size 1.
        size: Amplitude.
    """

    draws: ClassVar[int] = 60
    parameters: Tensor
    colour: Tensor
    size: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A wave of any direction; a variation has another frequency and phase."""
        if near is not None:
            return replace(near, parameters=near.parameters + _VARIATION * normal(generator, 3))
        rate, angle = real(generator, 1.0, _MOST_PERIODS), real(generator, 0.0, math.pi)
        phase = real(generator, 0.0, 2.0 * math.pi)
        colour = torch.ones(shape[0]) if whole(generator, 0, 1) else normal(generator, shape[0])
        colour = (colour / colour.abs().max()).view(-1, 1, 1)
        numbers = torch.tensor([rate * math.cos(angle), rate * math.sin(angle), phase])
        return cls(numbers, colour, real(generator, *_SIZES))

    @classmethod
    def scout(cls, generator: torch.Generator, shape: Shape, tried: Try) -> Sequence[Self]:
        """Grey waves of all frequencies, and random waves."""
        del tried
        numbers = range(-_MOST_PERIODS, _MOST_PERIODS + 1)
        pairs = [(across, along) for along in range(_MOST_PERIODS + 1) for across in numbers if along or across > 0]
        grey = torch.ones(shape[0], 1, 1)
        waves = [
            cls(torch.tensor([across, along, real(generator, 0.0, 2.0 * math.pi)]), grey, _SIZES[1])
            for across, along in pairs
            if across * across + along * along <= (_MOST_PERIODS + 0.5) ** 2
        ]
        return waves + [cls.draw(generator, shape) for _ in range(cls.draws)]

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images with the wave added."""
        down, right = (torch.arange(size).to(inputs) / size for size in inputs.shape[2:])
        across, along, phase = parameters.to(inputs)
        wave = torch.sin(2.0 * math.pi * (across * right + along * down[:, None]) + phase)
        return (inputs + self.size * self.colour.to(inputs) * wave).clamp(0.0, 1.0)

    def climb(self, slope: Tensor) -> Self:
        """Steps of a fixed size."""
        return replace(self, parameters=self.parameters + _STEP * slope.sign())
