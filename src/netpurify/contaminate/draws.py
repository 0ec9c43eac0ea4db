"""Random draws of this room: on the CPU, in float64, in row-major order, so that no dtype or device changes them."""

from collections.abc import Sequence
from numbers import Real

import torch
from torch import Tensor

from netpurify.errors import InputError


def uniform(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Independent draws from [0, 1)."""
    check_generator(generator)
    return torch.rand(tuple(shape), generator=generator, dtype=torch.float64)


def normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Independent standard normal draws."""
    check_generator(generator)
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float64)


def shuffle(count: int, generator: torch.Generator) -> Tensor:
    """The numbers 0 .. count - 1 in random order."""
    check_generator(generator)
    return torch.randperm(count, generator=generator)


def check_generator(generator: torch.Generator) -> None:
    """Refuses anything but a CPU generator."""
    if not isinstance(generator, torch.Generator):
        raise InputError(
            f"generator must be a torch.Generator; got {type(generator).__name__}; "
            "give torch.Generator() after seeding it"
        )
    if generator.device.type != "cpu":
        raise InputError(
            f"generator must live on the CPU, so that a draw is the same for every device; got one on "
            f"{generator.device}; give torch.Generator(), whatever the device of the tensors"
        )


def check_share(name: str, value: float) -> None:
    """Refuses anything but a number in [0, 1]."""
    if not isinstance(value, Real) or not 0.0 <= value <= 1.0:
        raise InputError(f"{name} must be a number in [0, 1]; got {value!r}")
