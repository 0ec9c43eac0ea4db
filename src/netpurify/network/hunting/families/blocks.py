"""Artefacts of compression in blocks, such as those of JPEG."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from netpurify.network.hunting.families.family import Shape, TriggerFamily, nothing, real, register_family, whole


@register_family("blocks")
@dataclass(frozen=True, slots=True, eq=False)
class Blocks(TriggerFamily):
    """Rounds the cosine transform of each block of 4 x 4 or 8 x 8 pixels, coarser for higher frequencies.

    It does not climb.

    Attributes:
        side: Pixels of a block's side.
        step: Step to which the mean of a block is rounded, 0.02 to 0.1.
        growth: By how much the step grows with each frequency, relative to the step.
    """

    draws: ClassVar[int] = 40
    parameters: Tensor
    side: int
    step: float
    growth: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """Blocks and steps; a variation has other steps."""
        del shape
        if near is not None:
            return replace(
                near, step=min(0.1, near.step * 2.0 ** real(generator, -0.5, 0.5)), growth=real(generator, 0.0, 2.0)
            )
        side = 4 * whole(generator, 1, 2)
        return cls(nothing(), side, 10.0 ** real(generator, -1.7, -1.0), real(generator, 0.0, 2.0))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images after compression; blocks at the edge are filled up with the pixels at the edge."""
        del parameters
        side, (rows, columns) = self.side, inputs.shape[2:]
        padded = functional.pad(inputs, (0, -columns % side, 0, -rows % side), mode="replicate")
        blocks = padded.unfold(2, side, side).unfold(3, side, side)
        basis = _cosines(side).to(inputs)
        order = torch.arange(side).to(inputs)
        steps = self.step * side * (1.0 + self.growth * (order + order[:, None]) / 2.0)
        coefficients = (torch.matmul(basis @ blocks, basis.T) / steps).round() * steps
        blocks = torch.matmul(basis.T @ coefficients, basis)
        joined = blocks.permute(0, 1, 2, 4, 3, 5).reshape(padded.shape)
        return joined[..., :rows, :columns].clamp(0.0, 1.0)

    def climb(self, slope: Tensor) -> Self:
        """Stays as it is."""
        del slope
        return self


def _cosines(side: int) -> Tensor:
    """The orthonormal cosine transform (DCT-II) of ``side`` points, as a matrix."""
    order = torch.arange(side, dtype=torch.float64)
    basis = torch.cos(math.pi / side * (order + 0.5) * order[:, None]) * math.sqrt(2.0 / side)
    basis[0] /= math.sqrt(2.0)
    return basis
