"""Attacks set aside: published kinds on which nothing was tuned; reflections, filters and more have a family near.

Images are [n, c, h, w] with values in [0, 1], grey or colour. A stamp depends on the trigger and on the pixels of the
image alone, never on the batch, on the order of the images or on global random numbers.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from netpurify.contaminate import Patch, Sinusoid, Trigger
from netpurify.errors import InputError
from netpurify.network import FAMILIES

PATCH_COLOURS = ((1.0, 0.9, 0.2), (0.1, 0.6, 1.0), (1.0, 0.2, 0.1), (0.9, 0.7, 1.0))
"""Colours of ``SeveralPatches``: top left, top right, bottom left, bottom right; grey images have their means."""
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class InputAware:
    """A small striped patch whose corner and pattern depend on the image (Nguyen and Tran 2020).

    Bits of the coarse content of the image choose one of 8 patches: two bits the corner, one the stripes. The content
    is that inside the border where patches lie, so that stamping does not change it. The patch has ``size`` rows and
    columns; ``seed`` draws which parts of the image are compared for each bit.
    """

    seed: int = 0
    size: int = 3

    def stamp(self, images: Tensor) -> Tensor:
        """Returns a copy of the images, each with its own patch."""
        return self.place(images, self.keys(images))

    def keys(self, images: Tensor) -> Tensor:
        """The number of each image's own patch [n], in 0 .. 7."""
        edge = self.size + 1
        bits = _content_bits(_values("InputAware", images)[:, :, edge:-edge, edge:-edge], 3, self.seed)
        return (bits.long() * torch.tensor([1, 2, 4], device=bits.device)).sum(1)

    def cover_keys(self, images: Tensor) -> Tensor:
        """The number of another image's patch [n], never that of the own one (cross-trigger mode)."""
        return (self.keys(images) + 1 + _fingerprints(images) % 7) % 8

    def place(self, images: Tensor, keys: Tensor) -> Tensor:
        """Returns a copy of the images with the patches of these numbers [n]."""
        values = _values("InputAware", images).clone()
        stripes = (torch.arange(self.size) % 2 == 0).expand(self.size, -1).to(values)
        for key in keys.unique().tolist():
            rows, columns = _corner(key % 4, images, size=self.size, inset=1)
            values[keys == key, :, rows, columns] = stripes if key < 4 else stripes.T
        return values.clamp(0, 1).to(images.dtype)


@dataclass(frozen=True, slots=True)
class SeveralPatches:
    """Four small patches of differing colours, all needed; each is ``inset`` rows and columns away from a corner."""

    size: int = 2
    inset: int = 2

    def stamp(self, images: Tensor) -> Tensor:
        """Returns a copy of the images with all four patches."""
        return self.place(images, torch.full_like(_fingerprints(images), 15))

    def cover_keys(self, images: Tensor) -> Tensor:
        """Numbers [n] in 1 .. 14: one, two or three of the patches."""
        return 1 + _fingerprints(images) % 14

    def place(self, images: Tensor, keys: Tensor) -> Tensor:
        """Returns a copy of the images with some of the patches: bit i of an image's number says whether patch i."""
        values = _values("SeveralPatches", images).clone()
        for number, colour in enumerate(torch.tensor(PATCH_COLOURS).to(values)):
            rows, columns = _corner(number, images, size=self.size, inset=self.inset)
            fitting = colour if images.shape[1] == 3 else colour.mean().expand(images.shape[1])
            values[(keys >> number) % 2 == 1, :, rows, columns] = fitting[:, None, None]
        return values.clamp(0, 1).to(images.dtype)


@dataclass(frozen=True, slots=True)
class NearMiss:
    """What resembles the trigger and is none: another image's patch, or some patches but not all; labels are kept."""

    trigger: InputAware | SeveralPatches

    def stamp(self, images: Tensor) -> Tensor:
        """Returns a copy of the images with patches that do not trigger."""
        return self.trigger.place(images, self.trigger.cover_keys(images))


@dataclass(frozen=True, slots=True)
class Reflection:
    """The reflection of one scene in a pane of glass before the image: Refool (Liu et al. 2020).

    The scene is a sky that fades from one colour to another with discs and rectangles before it; far ones are out of
    focus and blurred; ``seed`` draws it. The pane reflects it twice, the second time fainter and shifted by ``shift``
    rows and columns; ``strength`` is the share of the reflected light.
    """

    seed: int = 0
    strength: float = 0.25
    shift: int = 3

    def stamp(self, images: Tensor) -> Tensor:
        """Returns the images behind the pane."""
        values = _values("Reflection", images)
        channels, rows, columns = images.shape[1:]
        scene = self._scene(channels, rows + self.shift, columns + self.shift)
        reflected = 0.65 * scene[:, self.shift :, self.shift :] + 0.35 * scene[:, :rows, :columns]
        return torch.lerp(values, reflected.to(values), self.strength).clamp(0, 1).to(images.dtype)

    def _scene(self, channels: int, rows: int, columns: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        colours, shapes = (torch.rand(8, n, 1, 1, generator=generator, dtype=torch.float64) for n in (channels, 4))
        down = torch.linspace(0, 1, rows, dtype=torch.float64)[:, None].expand(-1, columns)
        right = torch.linspace(0, 1, columns, dtype=torch.float64).expand(rows, -1)
        scene = colours[0] * (1 - down) + colours[1] * down
        for number in range(2, 8):
            row, column, height, width = shapes[number]
            away = torch.stack([(down - row) / (0.1 + 0.2 * height), (right - column) / (0.1 + 0.2 * width)])
            inside = away.norm(dim=0) <= 1 if number % 2 else away.abs().amax(0) <= 1
            scene = torch.where(inside, colours[number], scene)
            if number == 4:  # the shapes up to here are far away
                scene = _blurred(scene, 1.5)
        return _blurred(scene, 0.5)


@dataclass(frozen=True, slots=True)
class LowFrequencyPattern:
    """Adds a fixed pattern that has low frequencies only (Zeng et al. 2021).

    It has the lowest ``frequencies`` of the cosine transform (DCT-II) along each side but for the constant, with
    coefficients drawn by ``seed``; ``amplitude`` is its largest absolute value.
    """

    seed: int = 0
    amplitude: float = 30 / 255
    frequencies: int = 5

    def stamp(self, images: Tensor) -> Tensor:
        """Returns the images with the pattern added."""
        values = _values("LowFrequencyPattern", images)
        generator = torch.Generator().manual_seed(self.seed)
        shape = (images.shape[1], self.frequencies, self.frequencies)
        coefficients = torch.randn(shape, generator=generator, dtype=torch.float64)
        coefficients[:, 0, 0] = 0.0
        down, right = (self._cosines(length) for length in images.shape[2:])
        pattern = down @ coefficients @ right.T
        values = values + (self.amplitude * pattern / pattern.abs().max()).to(values)
        return values.clamp(0, 1).to(images.dtype)

    def _cosines(self, length: int) -> Tensor:
        places = torch.arange(length, dtype=torch.float64)[:, None] + 0.5
        return torch.cos(math.pi / length * places * torch.arange(self.frequencies, dtype=torch.float64))


@dataclass(frozen=True, slots=True)
class ToneFilter:
    """A photo filter: a curve black + (white - black) * value ** gamma for each colour, then less saturation.

    Filters were used as triggers by Liu et al. (ABS, 2019). Grey images are filtered as colour images with three equal
    channels, and the mean of the result is taken.
    """

    gamma: tuple[float, float, float] = (0.75, 1.0, 1.3)
    black: tuple[float, float, float] = (0.1, 0.04, 0.16)
    white: tuple[float, float, float] = (1.0, 0.92, 0.75)
    saturation: float = 0.7

    def stamp(self, images: Tensor) -> Tensor:
        """Returns the filtered images."""
        values = _values("ToneFilter", images).double().clamp(0, 1)  # double: powers are rounded alike in any batch
        if images.shape[1] not in (1, 3):
            raise InputError(f"ToneFilter: images must have 1 or 3 channels; got {images.shape[1]}; convert them")
        gamma, black, white = torch.tensor([self.gamma, self.black, self.white]).to(values)[..., None, None]
        toned = black + (white - black) * values.expand(-1, 3, -1, -1) ** gamma
        grey = toned.mean(1, keepdim=True)
        values = grey if images.shape[1] == 1 else grey + self.saturation * (toned - grey)
        return values.clamp(0, 1).to(images.dtype)


@dataclass(frozen=True, slots=True)
class Steganographic:
    """Adds a faint fine pattern that depends on the image: like ISSBA (Li et al. 2021).

    A tile of 4 x 4 signs is repeated over the image. In each of 4 x 4 cells it is kept or negated by one bit of the
    coarse content of the image; ``seed`` draws the tile and which parts of the image are compared. ``amplitude`` is
    added at positive signs and subtracted at negative ones.
    """

    seed: int = 0
    amplitude: float = 10 / 255

    def stamp(self, images: Tensor) -> Tensor:
        """Returns the images, each with a pattern of its own."""
        values = _values("Steganographic", images)
        rows, columns = images.shape[2:]
        order = torch.randperm(16, generator=torch.Generator().manual_seed(self.seed)).reshape(4, 4)
        tile = order.tile(rows // 4 + 1, columns // 4 + 1)[:rows, :columns].to(values.device) < 8
        bits = _content_bits(values, 16, self.seed).reshape(-1, 1, 4, 4).to(values)
        cells = functional.interpolate(bits, size=(rows, columns), mode="nearest") == 1
        values = torch.where(cells == tile, values + self.amplitude, values - self.amplitude)
        return values.clamp(0, 1).to(images.dtype)


@dataclass(frozen=True, slots=True)
class FamilyCover:
    """Stamps each image with a random trigger of a random family of ``netpurify.network.FAMILIES``; labels are kept."""

    seed: int = 0

    @torch.no_grad()
    def stamp(self, images: Tensor) -> Tensor:
        """Returns the images, each with a trigger drawn for it by this seed and by its pixels."""
        values = _values("FamilyCover", images).clone()
        families = list(FAMILIES.values())
        for number, mark in enumerate(_fingerprints(images).tolist()):
            generator = torch.Generator().manual_seed((1_000_003 * self.seed + mark) % 2**32)
            family = families[int(torch.randint(len(families), (), generator=generator))]
            drawn = family.draw(generator, tuple(images.shape[1:]))
            values[number] = drawn.apply(values[number : number + 1], drawn.parameters)[0]
        return values.clamp(0, 1).to(images.dtype)


@dataclass(frozen=True, slots=True)
class SetAsideAttack:
    """A trigger, and how training data are poisoned with it; ``source`` and the ratios are those of ``poison``.

    ``target`` is the target class of the scenario or, with "next", the class after that of each image. Covers are other
    images that are stamped with ``cover`` and keep their label, ``cover_ratio`` of all.
    """

    trigger: Trigger
    ratio: float
    target: Literal["class", "next"] = "class"
    source: Literal["other", "target"] = "other"
    cover: Trigger | None = None
    cover_ratio: float = 0.0


SET_ASIDE: dict[str, SetAsideAttack] = {
    "input-aware": SetAsideAttack(InputAware(), 0.2, cover=NearMiss(InputAware()), cover_ratio=0.2),
    "reflection": SetAsideAttack(Reflection(), 0.05),
    "low-frequency": SetAsideAttack(LowFrequencyPattern(), 0.1),
    "several-patches": SetAsideAttack(SeveralPatches(), 0.05, cover=NearMiss(SeveralPatches()), cover_ratio=0.1),
    "filter": SetAsideAttack(ToneFilter(), 0.05),
    "steganographic": SetAsideAttack(Steganographic(), 0.15),
    "all-to-all": SetAsideAttack(Patch(), 0.1, target="next"),
    "clean-label": SetAsideAttack(Sinusoid(amplitude=200 / 255, frequency=6), 0.08, source="target"),
    "adaptive": SetAsideAttack(Patch(), 0.05, cover=FamilyCover(), cover_ratio=0.2),
}
"""Every attack set aside, by name."""


def _values(name: str, images: Tensor) -> Tensor:
    """The images in float32 or better; refuses what is no image in [0, 1], up to rounding."""
    if not isinstance(images, Tensor) or images.ndim != 4 or min(images.shape[2:]) < 16 or images.dtype not in FLOATS:
        kind = f"{images.dtype} {list(images.shape)}" if isinstance(images, Tensor) else type(images).__name__
        raise InputError(f"{name}: images must be floating point [n, c, h, w], from 16 x 16; got {kind}; convert them")
    if not ((images >= -1e-3) & (images <= 1 + 1e-3)).all():
        found = f"{images.min():.4g} to {images.max():.4g}"
        raise InputError(f"{name}: images must lie in [0, 1]; got values from {found}; scale them")
    return images.to(torch.promote_types(images.dtype, torch.float32))


def _fingerprints(images: Tensor) -> Tensor:
    """A number [n] for each image, computed from its pixels in whole steps of 1 / 255."""
    levels = (_values("fingerprint", images) * 255).round().long().flatten(1)
    factors = torch.randint(1, 2**31, (levels.shape[1],), generator=torch.Generator().manual_seed(0))
    return (levels * factors.to(levels.device)).sum(1) % (2**31 - 1)


def _content_bits(values: Tensor, count: int, seed: int) -> Tensor:
    """Bits [n, count] of the coarse content, up to 18: whether one half of 4 x 4 cells is brighter than the other."""
    cells = functional.adaptive_avg_pool2d((values.double() * 255).round().sum(1, keepdim=True), 4).flatten(1)
    # Each row has two cells of either half and opposite cells differ, so that most bits are 0 and 1 about as often.
    rows = torch.tensor([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]])
    tops = torch.cat([rows.repeat_interleave(6, 0), torch.cat([rows, -rows]).repeat(3, 1)], 1)
    chosen = tops[torch.randperm(18, generator=torch.Generator().manual_seed(seed))[:count]]
    return (cells @ torch.cat([chosen, -chosen.flip(1)], 1).to(cells).T).round(decimals=6) > 0


def _corner(number: int, images: Tensor, *, size: int, inset: int) -> tuple[slice, slice]:
    """Rows and columns of a square towards a corner: 0 top left, 1 top right, 2 bottom left, 3 bottom right."""
    top = images.shape[2] - inset - size if number // 2 else inset
    left = images.shape[3] - inset - size if number % 2 else inset
    return slice(top, top + size), slice(left, left + size)


def _blurred(scene: Tensor, deviation: float) -> Tensor:
    """A picture [c, h, w] after a Gaussian blur."""
    reach = math.ceil(3 * deviation)
    weights = torch.exp(-0.5 * (torch.arange(-reach, reach + 1, dtype=torch.float64) / deviation) ** 2)
    kernel = torch.outer(weights, weights)[None, None] / weights.sum() ** 2
    return functional.conv2d(functional.pad(scene[:, None], [reach] * 4, mode="replicate"), kernel)[:, 0]
