"""Smooth warps, as in WaNet (Nguyen and Tran 2021)."""

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
from netpurify.network.hunting.families.field import CLIMB, enlarged


@register_family("flow")
@dataclass(frozen=True, slots=True, eq=False)
class Flow(TriggerFamily):
    """Moves pixels along a smooth field of shifts whose root mean square is 0.2 to 0.6 pixels.

    Attributes:
        parameters: Shifts at k x k points [1, 2, k, k], to the right and down; their root mean square is 1.
        size: Root mean square of the shifts at the points, in pixels.
    """

    parameters: Tensor
    size: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A field of 3 x 3 to 8 x 8 points; a variation has other shifts at the points."""
        del shape
        if near is not None:
            moved = near.parameters + 0.4 * normal(generator, *near.parameters.shape)
            return replace(near, parameters=scaled(moved))
        points = whole(generator, 3, 8)
        return cls(scaled(normal(generator, 1, 2, points, points)), real(generator, 0.2, 0.6))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images, read where the shifts point, in between bilinearly."""
        pixels = inputs.new_tensor([max(size - 1, 1) / 2.0 for size in (inputs.shape[3], inputs.shape[2])])
        shifts = self.size * enlarged(parameters, inputs).permute(0, 2, 3, 1) / pixels
        places = (identity_grid(inputs) + shifts).clamp(-1.0, 1.0)
        return functional.grid_sample(inputs, places.expand(len(inputs), -1, -1, -1), align_corners=True)

    def climb(self, slope: Tensor) -> Self:
        """A step along the slope; the size stays."""
        return replace(self, parameters=scaled(self.parameters + CLIMB * slope / (slope.std() + 1e-12)))


def identity_grid(images: Tensor) -> Tensor:
    """The places [1, h, w, 2] at which ``grid_sample`` reads the images as they are."""
    down, right = (torch.linspace(-1.0, 1.0, size).to(images) for size in images.shape[2:])
    return torch.stack(torch.meshgrid(right, down, indexing="xy"), dim=2)[None]
