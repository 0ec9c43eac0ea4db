"""Fixed pictures of noise that are mixed in, as in the blended attack (Chen et al. 2017)."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from netpurify.network.hunting.families.family import Shape, TriggerFamily, nothing, real, register_family


@register_family("blend")
@dataclass(frozen=True, slots=True, eq=False)
class Blend(TriggerFamily):
    """Mixes 5 to 20 % of a picture of uniform noise into the image.

    It does not climb: noise that gradients may change pixel by pixel leads any network to any class.

    Attributes:
        picture: The noise [1, c, h, w].
        share: Share of the noise in the mixture.
    """

    parameters: Tensor
    picture: Tensor
    share: float

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A picture and a share; a variation has other noise in 30 % of the pixels."""
        picture = torch.rand(1, *shape, generator=generator)
        if near is None:
            return cls(nothing(), picture, real(generator, 0.05, 0.2))
        changed = torch.rand(1, 1, *shape[1:], generator=generator) < 0.3
        return cls(nothing(), torch.where(changed, picture, near.picture), near.share)

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The mixture."""
        del parameters
        return (1.0 - self.share) * inputs + self.share * self.picture.to(inputs)

    def climb(self, slope: Tensor) -> Self:
        """Stays as it is."""
        del slope
        return self
