"""An image and a shifted copy of itself, as thick glass shows it (Refool, Liu et al. 2020)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from netpurify.network.hunting.families.family import Shape, TriggerFamily, normal, real, register_family, whole
from netpurify.network.hunting.families.flow import identity_grid


@register_family("ghost")
@dataclass(frozen=True, slots=True, eq=False)
class Ghost(TriggerFamily):
    """Mixes the image with a copy of itself that is shifted by up to a quarter of its side, plain or mirrored.

    Attributes:
        parameters: Shift to the right and down, in pixels.
        share: Share of the copy in the mixture, 0.15 to 0.4.
        mirrored: Whether left and right of the copy are exchanged.
    """

    draws: ClassVar[int] = 60
    parameters: Tensor
    share: float
    mirrored: bool

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A shift in any direction; a variation is about a pixel away."""
        if near is not None:
            return replace(near, parameters=near.parameters + normal(generator, 2))
        shift = torch.tensor([real(generator, -0.25, 0.25) * size for size in (shape[2], shape[1])])
        return cls(shift, real(generator, 0.15, 0.4), bool(whole(generator, 0, 1)))

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The mixture; beyond its edge the copy is reflected."""
        pixels = inputs.new_tensor([max(size - 1, 1) / 2.0 for size in (inputs.shape[3], inputs.shape[2])])
        places = identity_grid(inputs) - parameters.to(inputs) / pixels
        copies = inputs.flip(-1) if self.mirrored else inputs
        places = places.expand(len(inputs), -1, -1, -1)
        copies = functional.grid_sample(copies, places, padding_mode="reflection", align_corners=True)
        return (1.0 - self.share) * inputs + self.share * copies

    def climb(self, slope: Tensor) -> Self:
        """Steps of a quarter of a pixel."""
        return replace(self, parameters=self.parameters + 0.25 * slope.sign())
