"""Triggers, the marks that activate a backdoor: what every trigger must do, and the pixel trigger of the paper."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol

import torch
from torch import Tensor

from netpurify.contaminate.registry import Registry
from netpurify.errors import InputError

__all__ = ["TRIGGERS", "Pixels", "Trigger", "first_pixels"]


class Trigger(Protocol):
    """The mark that activates a backdoor. To write a new trigger, write this one method."""

    def stamp(self, images: Tensor) -> Tensor:
        """Returns a stamped copy of images [n, ...]: same shape, dtype and device."""
        ...


TRIGGERS: Registry[Trigger] = Registry("trigger")
"""Every trigger by name."""


@TRIGGERS.register("pixels")
@dataclass(frozen=True, slots=True)
class Pixels:
    """Sets some coordinates of each image, counted row by row over [d] or [c, h, w], to one value."""

    positions: tuple[int, ...]
    value: float

    def __post_init__(self) -> None:
        positions = tuple(self.positions)
        if not positions:
            raise InputError("Pixels: positions must name at least one coordinate; got none")
        if not all(isinstance(position, Integral) and position >= 0 for position in positions):
            raise InputError(f"Pixels: positions must be whole numbers, 0 or more; got {positions}")
        if len(set(positions)) < len(positions):
            raise InputError(f"Pixels: positions must differ; got {positions}; name each once")
        if not isinstance(self.value, Real) or not math.isfinite(self.value):
            raise InputError(f"Pixels: value must be a finite number; got {self.value!r}")
        object.__setattr__(self, "positions", positions)

    def stamp(self, images: Tensor) -> Tensor:
        """Returns a copy of images [n, ...] with the coordinates set."""
        check_images(images)
        size = math.prod(images.shape[1:])
        if max(self.positions) >= size:
            raise InputError(
                f"Pixels: position {max(self.positions)} lies outside the image, which has {size} coordinates "
                f"{list(images.shape[1:])}; positions go from 0 to {size - 1}"
            )
        stored = torch.tensor(float(self.value), dtype=torch.float64).to(images.dtype)
        if not stored.isfinite() or (not images.is_floating_point() and stored.item() != self.value):
            raise InputError(
                f"Pixels: images are {images.dtype}, which cannot hold the value {self.value}; convert them"
            )
        stamped = images.reshape(len(images), size).clone()
        stamped[:, list(self.positions)] = stored.to(images.device)
        return stamped.reshape(images.shape)


def first_pixels(count: int, value: float) -> Pixels:
    """The first ``count`` coordinates of each image; the paper's trigger is the first five."""
    return Pixels(tuple(range(count)), value)


def stamped(trigger: Trigger, images: Tensor) -> Tensor:
    """The images with the trigger, checked; a copy is stamped, so that a trigger may work in place."""
    result = trigger.stamp(images.clone())
    if not isinstance(result, Tensor):
        raise InputError(f"the trigger {trigger!r} must return the stamped images; got {type(result).__name__}")
    if (result.shape, result.dtype, result.device) != (images.shape, images.dtype, images.device):
        raise InputError(
            f"the trigger {trigger!r} must keep images {list(images.shape)}, {images.dtype}, {images.device}; "
            f"got {list(result.shape)}, {result.dtype}, {result.device}"
        )
    return result


def check_images(images: Tensor) -> None:
    """Refuses anything but a tensor with a batch dimension and at least one more."""
    if not isinstance(images, Tensor) or images.ndim < 2:
        got = list(images.shape) if isinstance(images, Tensor) else type(images).__name__
        raise InputError(f"images must be a tensor [n, d] or [n, c, h, w]; got {got}")
