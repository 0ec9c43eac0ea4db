"""Triggers of the literature for images [n, c, h, w] with values in a known range: patch, blend, wave and warp.

Every trigger keeps shape, dtype and device and gives the same result each time. ``low`` and ``high`` are the range of
the images: those outside it are refused, results are clipped to it. Draws come from the trigger's own seed, so that it
is the same trigger in training and in testing.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real

import torch
from torch import Tensor
from torch.nn import functional

from netpurify.contaminate.draws import check_share, uniform
from netpurify.contaminate.images.triggers import TRIGGERS
from netpurify.errors import InputError

__all__ = ["Blended", "NoisyWarp", "Patch", "Sinusoid", "Warp"]


@TRIGGERS.register("patch")
@dataclass(frozen=True, slots=True)
class Patch:
    """Sets a rectangle to one colour: BadNets (Gu et al. 2017).

    Attributes:
        colour: One value for all channels, or a tuple with one for each; within the range.
        top: First row; a negative one counts from the end, -1 is the last row.
        left: First column, counted likewise. The default is 3 x 3 pixels, one pixel away from the bottom right corner.
        height: Rows.
        width: Columns.
    """

    colour: float | tuple[float, ...] = 1.0
    _: KW_ONLY
    top: int = -4
    left: int = -4
    height: int = 3
    width: int = 3
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check_range("Patch", self.low, self.high)
        colours = tuple(self.colour) if isinstance(self.colour, Sequence) else (self.colour,)
        if not colours or not all(isinstance(value, Real) and self.low <= value <= self.high for value in colours):
            raise InputError(
                f"Patch: colour must be a number in [{self.low}, {self.high}], or one for each channel; "
                f"got {self.colour!r}; set low and high if the images have another range"
            )
        for name in ("top", "left"):
            if not isinstance(getattr(self, name), Integral):
                raise InputError(f"Patch: {name} must be a whole number; got {getattr(self, name)!r}")
        _check_whole("Patch: height", self.height, 1)
        _check_whole("Patch: width", self.width, 1)
        if isinstance(self.colour, Sequence):
            object.__setattr__(self, "colour", colours)

    def stamp(self, images: Tensor) -> Tensor:
        """Returns a copy of images [n, c, h, w] with the rectangle set."""
        values = _values("Patch", images, self.low, self.high).clone()
        channels, rows, columns = images.shape[1:]
        colour = torch.tensor(self.colour, dtype=torch.float64).flatten()
        if len(colour) not in (1, channels):
            raise InputError(
                f"Patch: colour must be one value or one for each of the {channels} channels; got {len(colour)}"
            )
        top = self.top + rows if self.top < 0 else self.top
        left = self.left + columns if self.left < 0 else self.left
        if top < 0 or left < 0 or top + self.height > rows or left + self.width > columns:
            raise InputError(
                f"Patch: rows {top} .. {top + self.height - 1} and columns {left} .. {left + self.width - 1} must lie "
                f"inside the image; got images of {rows} x {columns}; move the patch or make it smaller"
            )
        values[:, :, top : top + self.height, left : left + self.width] = colour.to(values)[:, None, None]
        return _clipped(values, images, self.low, self.high)


@TRIGGERS.register("blended")
@dataclass(frozen=True, slots=True)
class Blended:
    """Mixes in a fixed picture of uniform noise: (1 - alpha) * image + alpha * pattern (Chen et al. 2017).

    Attributes:
        alpha: Share of the pattern, in [0, 1].
        seed: Draws the pattern, uniform in [low, high], one for each shape [c, h, w].
    """

    alpha: float = 0.2
    seed: int = 0
    _: KW_ONLY
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_share("Blended: alpha", self.alpha)
        _check_whole("Blended: seed", self.seed, 0)
        _check_range("Blended", self.low, self.high)

    def stamp(self, images: Tensor) -> Tensor:
        """Returns images [n, c, h, w] mixed with the pattern."""
        values = _values("Blended", images, self.low, self.high)
        noise = uniform(images.shape[1:], _seeded(self.seed))
        pattern = (self.low + (self.high - self.low) * noise).to(values)
        return _clipped((1 - self.alpha) * values + self.alpha * pattern, images, self.low, self.high)


@TRIGGERS.register("sinusoid")
@dataclass(frozen=True, slots=True)
class Sinusoid:
    """Adds amplitude * sin(2 pi column frequency / w) to every row and channel: SIG (Barni et al. 2019).

    Attributes:
        amplitude: Height of the wave, in the units of the images.
        frequency: Periods over the width; columns count from 0.
    """

    amplitude: float = 20 / 255
    frequency: float = 6
    _: KW_ONLY
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check_number("Sinusoid: amplitude", self.amplitude)
        _check_number("Sinusoid: frequency", self.frequency)
        _check_range("Sinusoid", self.low, self.high)

    def stamp(self, images: Tensor) -> Tensor:
        """Returns images [n, c, h, w] with the wave added."""
        values = _values("Sinusoid", images, self.low, self.high)
        width = images.shape[3]
        columns = torch.arange(width, dtype=torch.float64)
        wave = self.amplitude * torch.sin(2 * math.pi * self.frequency * columns / width)
        return _clipped(values + wave.to(values), images, self.low, self.high)


@TRIGGERS.register("warp")
@dataclass(frozen=True, slots=True)
class Warp:
    """Bends the image along a smooth random field: WaNet (Nguyen and Tran 2021).

    The field has ``grid`` x ``grid`` points uniform in [-1, 1], is divided by its mean absolute value, brought to h x w
    by bicubic interpolation and multiplied by strength / h; pixels are read where it points, in between bilinearly.

    Attributes:
        seed: Draws the field.
        grid: Points along each side.
        strength: Mean shift at those points, in half pixels of a square image; 0 leaves the image as it is, but for
            rounding.
    """

    seed: int = 0
    _: KW_ONLY
    grid: int = 4
    strength: float = 0.5
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check_whole("Warp: seed", self.seed, 0)
        _check_whole("Warp: grid", self.grid, 2)
        _check_number("Warp: strength", self.strength)
        _check_range("Warp", self.low, self.high)

    def stamp(self, images: Tensor) -> Tensor:
        """Returns images [n, c, h, w] bent along the field."""
        values = _values("Warp", images, self.low, self.high)
        grid = self.sampling_grid(*images.shape[2:]).expand(len(images), -1, -1, -1)
        return _clipped(_read(values, grid), images, self.low, self.high)

    def sampling_grid(self, rows: int, columns: int) -> Tensor:
        """Where each pixel is read [1, h, w, 2]: column, then row, from -1 at the first to 1 at the last."""
        points = 2 * uniform((1, 2, self.grid, self.grid), _seeded(self.seed)) - 1
        points = points / points.abs().mean()
        field = functional.interpolate(points, size=(rows, columns), mode="bicubic", align_corners=True)
        down, right = (torch.linspace(-1, 1, count, dtype=torch.float64) for count in (rows, columns))
        identity = torch.stack((right.expand(rows, -1), down[:, None].expand(-1, columns)), dim=2)
        return (identity + self.strength / rows * field.permute(0, 2, 3, 1)).clamp(-1, 1)

    def noisy(self, seed: int) -> "NoisyWarp":
        """This warp with noise in its field: images that carry it keep their label (``cover`` of ``poison``)."""
        return NoisyWarp(self, seed)


@TRIGGERS.register("noisy-warp")
@dataclass(frozen=True, slots=True)
class NoisyWarp:
    """A warp whose field has noise, uniform in [-1, 1] / h for each image and pixel: WaNet's noise mode.

    Attributes:
        warp: The warp without noise.
        seed: Draws the noise: another for each image of a call, the same for the i-th image of every call.
    """

    warp: Warp
    seed: int

    def __post_init__(self) -> None:
        if not isinstance(self.warp, Warp):
            raise InputError(f"NoisyWarp: warp must be a Warp; got {type(self.warp).__name__}")
        _check_whole("NoisyWarp: seed", self.seed, 0)

    def stamp(self, images: Tensor) -> Tensor:
        """Returns images [n, c, h, w], each bent along a field of its own."""
        values = _values("NoisyWarp", images, self.warp.low, self.warp.high)
        count, _, rows, columns = images.shape
        noise = (2 * uniform((count, rows, columns, 2), _seeded(self.seed)) - 1) / rows
        grid = (self.warp.sampling_grid(rows, columns) + noise).clamp(-1, 1)
        return _clipped(_read(values, grid), images, self.warp.low, self.warp.high)


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(int(seed))


def _read(values: Tensor, grid: Tensor) -> Tensor:
    return functional.grid_sample(values, grid.to(values), mode="bilinear", align_corners=True)


def _values(name: str, images: Tensor, low: float, high: float) -> Tensor:
    """The images in float32 or better: half precision would round the trigger away. Refuses those out of range."""
    if not isinstance(images, Tensor) or images.ndim != 4 or 0 in images.shape[1:]:
        got = list(images.shape) if isinstance(images, Tensor) else type(images).__name__
        raise InputError(f"{name}: images must be a tensor [n, c, h, w]; got {got}")
    if not images.is_floating_point():
        raise InputError(f"{name}: images must be floating point; got {images.dtype}; convert and scale them")
    values = images.to(torch.promote_types(images.dtype, torch.float32))
    # A thousandth of the range is allowed on either side: normalising by channel rounds.
    margin = 1e-3 * (high - low)
    if not ((values >= low - margin) & (values <= high + margin)).all():
        raise InputError(
            f"{name}: images must lie in [{low}, {high}]; got values from {values.min():.4g} to {values.max():.4g}; "
            "set low and high to the range of the images"
        )
    return values


def _clipped(values: Tensor, images: Tensor, low: float, high: float) -> Tensor:
    return values.clamp(low, high).to(images.dtype)


def _check_range(name: str, low: float, high: float) -> None:
    if not all(isinstance(end, Real) and math.isfinite(end) for end in (low, high)) or low >= high:
        raise InputError(f"{name}: low and high must be finite numbers, low the smaller; got {low!r} and {high!r}")


def _check_number(name: str, value: float) -> None:
    if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise InputError(f"{name} must be a finite number, 0 or more; got {value!r}")


def _check_whole(name: str, value: int, least: int) -> None:
    if not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more; got {value!r}")
