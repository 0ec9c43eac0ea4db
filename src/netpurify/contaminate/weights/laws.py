"""Laws of alteration: each proposes a new value for every entry of a tensor; ``contaminate`` decides who takes it.

A new law is one class in this file: its name for the command line is what it is registered under, its parameters are
the fields of the dataclass, and its name in ``__all__`` exports it from ``netpurify.contaminate``.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol

import torch
from torch import Tensor

from netpurify.contaminate.draws import check_generator, normal, uniform
from netpurify.contaminate.registry import Registry
from netpurify.contaminate.weights.bits import check_float, from_bits, to_bits
from netpurify.errors import InputError

__all__ = [
    "LAWS", "BitFlip", "Cauchy", "Constant", "Erase", "Laplace", "Law", "Normal", "Quantise", "Scale", "SignFlip",
    "Truncate", "Uniform", "Zero",
]  # fmt: skip


class Law(Protocol):
    """What an alteration does to an entry. To write a new law, write this one method.

    Draw as many numbers as the tensor has entries, whatever their values: then one seed gives the same proposals for
    every share of altered entries.
    """

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes a value for every entry: a new tensor of the same shape, dtype and device."""
        ...


LAWS: Registry[Law] = Registry("law")
"""Every law by the name that the command line gives it."""


@LAWS.register("normal")
@dataclass(frozen=True, slots=True)
class Normal:
    """Adds normal noise of the given mean and standard deviation; noise beyond the dtype's range becomes infinite."""

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        _check_finite(self, "mean", "sd")
        _check_not_negative(self, "sd")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes value + mean + sd * standard normal."""
        return _add(values, self.mean + self.sd * normal(values.shape, generator))


@LAWS.register("uniform")
@dataclass(frozen=True, slots=True)
class Uniform:
    """Adds noise that is uniform between ``low`` and ``high``."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_finite(self, "low", "high")
        if self.low > self.high:
            raise InputError(f"Uniform: low must be at most high; got low={self.low}, high={self.high}; swap them")
        if not math.isfinite(self.high - self.low):
            raise InputError(f"Uniform: high - low must be finite; got low={self.low}, high={self.high}")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes value + uniform noise."""
        noise = self.low + (self.high - self.low) * uniform(values.shape, generator)
        return _add(values, noise.clamp(self.low, self.high))


@LAWS.register("laplace")
@dataclass(frozen=True, slots=True)
class Laplace:
    """Adds Laplace noise: two-sided exponential around ``location``."""

    location: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_finite(self, "location", "scale")
        _check_not_negative(self, "scale")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes value + location + scale * standard Laplace."""
        # A difference of two exponentials: unlike the inverse distribution function, it is finite for every draw.
        first, second = (-torch.log1p(-uniform(values.shape, generator)) for _ in range(2))
        return _add(values, self.location + self.scale * (first - second))


@LAWS.register("cauchy")
@dataclass(frozen=True, slots=True)
class Cauchy:
    """Adds Cauchy noise, which has no mean; noise beyond the dtype's range becomes infinite."""

    location: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_finite(self, "location", "scale")
        _check_not_negative(self, "scale")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes value + location + scale * standard Cauchy."""
        angle = math.pi * (uniform(values.shape, generator) - 0.5)
        return _add(values, self.location + self.scale * angle.tan())


@LAWS.register("constant")
@dataclass(frozen=True, slots=True)
class Constant:
    """Adds the same number to every altered entry."""

    value: float

    def __post_init__(self) -> None:
        _check_finite(self, "value")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes value + constant."""
        check_generator(generator)
        return _add(values, torch.full(values.shape, float(self.value), dtype=torch.float64))


@LAWS.register("scale")
@dataclass(frozen=True, slots=True)
class Scale:
    """Multiplies entries by a factor."""

    factor: float

    def __post_init__(self) -> None:
        _check_finite(self, "factor")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes factor * value."""
        check_generator(generator)
        return _cast(_exact(values) * float(self.factor), values)


@LAWS.register("sign-flip")
@dataclass(frozen=True, slots=True)
class SignFlip:
    """Flips the sign, also that of zeros and NaN."""

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes -value."""
        check_float(values, "values")
        return BitFlip(8 * values.dtype.itemsize - 1).alter(values, generator)


@LAWS.register("zero")
@dataclass(frozen=True, slots=True)
class Zero:
    """Sets entries to zero, as pruning does."""

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes 0."""
        check_generator(generator)
        check_float(values, "values")
        return torch.zeros_like(values.detach())


@LAWS.register("erase")
@dataclass(frozen=True, slots=True)
class Erase:
    """Erases the value: NaN stands for a missing entry, which ``lad.solve`` leaves out."""

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes NaN."""
        check_generator(generator)
        check_float(values, "values")
        return torch.full_like(values.detach(), math.nan)


@LAWS.register("bit-flip")
@dataclass(frozen=True, slots=True)
class BitFlip:
    """Flips one bit of the stored float: ``bit`` (0 is the least significant), or one at random for each entry."""

    bit: int | None = None

    def __post_init__(self) -> None:
        if self.bit is not None and not (isinstance(self.bit, Integral) and 0 <= self.bit < 64):
            raise InputError(f"BitFlip: bit must be None or a whole number from 0 to 63; got {self.bit!r}")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes the value with one bit flipped, which may be infinite or NaN."""
        check_generator(generator)
        check_float(values, "values")
        width = 8 * values.dtype.itemsize
        if self.bit is not None and self.bit >= width:
            raise InputError(f"BitFlip: {values.dtype} has bits 0 to {width - 1}; got bit={self.bit}")
        if self.bit is None:
            position = (width * uniform(values.shape, generator)).long()
        else:
            position = torch.full(values.shape, self.bit)
        bits = to_bits(values.detach())
        return from_bits(bits ^ (torch.ones_like(bits) << position.to(bits)), values.dtype)


@LAWS.register("quantise")
@dataclass(frozen=True, slots=True)
class Quantise:
    """Rounds to 2^bits - 1 evenly spaced levels, symmetric about zero, up to the tensor's largest finite magnitude.

    Entries that are not finite stay as they are.
    """

    bits: int

    def __post_init__(self) -> None:
        if not (isinstance(self.bits, Integral) and 2 <= self.bits <= 32):
            raise InputError(f"Quantise: bits must be a whole number from 2 to 32; got {self.bits!r}")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes the nearest level."""
        check_generator(generator)
        exact = _exact(values)
        finite = exact.isfinite()
        peak = float(exact[finite].abs().max()) if finite.any() else 0.0
        if peak == 0.0:
            return values.detach().clone()
        top = 2 ** (self.bits - 1) - 1
        # Divided by the peak, not by the spacing, which is zero for a subnormal peak.
        rounded = (exact / peak * top).round() / top * peak
        return _cast(torch.where(finite, rounded, exact), values)


@LAWS.register("truncate")
@dataclass(frozen=True, slots=True)
class Truncate:
    """Keeps the first ``bits`` of the mantissa and drops the others, as a shorter format without rounding does.

    Seven bits of a float32 are a bfloat16. A weight moves towards zero. Entries that are not finite stay as they are,
    and so does a weight whose mantissa is no longer than that.
    """

    bits: int

    def __post_init__(self) -> None:
        if not (isinstance(self.bits, Integral) and 0 <= self.bits <= 52):
            raise InputError(f"Truncate: bits must be a whole number from 0 to 52; got {self.bits!r}")

    def alter(self, values: Tensor, generator: torch.Generator) -> Tensor:
        """Proposes the value with the last bits of its mantissa cleared."""
        check_generator(generator)
        check_float(values, "values")
        mantissa = -round(math.log2(torch.finfo(values.dtype).eps))
        dropped = max(mantissa - int(self.bits), 0)
        shorter = from_bits(to_bits(values.detach()) >> dropped << dropped, values.dtype)
        return torch.where(values.detach().isfinite(), shorter, values.detach())


def _exact(values: Tensor) -> Tensor:
    check_float(values, "values")
    # To the CPU first: some devices have no float64.
    return values.detach().cpu().double()


def _cast(exact: Tensor, values: Tensor) -> Tensor:
    """The result in the dtype and on the device of ``values``; an entry that was NaN keeps its exact bits."""
    result = exact.to(values.dtype).to(values.device)
    # Casts may change the bits of a NaN, depending on dtype and position, and that would count as an alteration.
    return torch.where(values.detach().isnan(), values.detach(), result)


def _add(values: Tensor, noise: Tensor) -> Tensor:
    return _cast(_exact(values) + noise, values)


def _check_finite(law: Law, *names: str) -> None:
    for name in names:
        value = getattr(law, name)
        if not isinstance(value, Real) or not math.isfinite(value):
            raise InputError(f"{type(law).__name__}: {name} must be a finite number; got {value!r}")


def _check_not_negative(law: Law, name: str) -> None:
    if getattr(law, name) < 0.0:
        raise InputError(f"{type(law).__name__}: {name} must be at least 0; got {getattr(law, name)}")
