"""Small rectangles at a fixed place, as in BadNets (Gu et al. 2017)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from netpurify.network.hunting.families.family import Shape, TriggerFamily, Try, register_family, whole

Box = tuple[int, int, int, int]
"""First row, first column, height, width."""
_SPACING = 11
"""Distance between the rectangles of a lattice, in units; so 9 of them are tried at once on a small image."""
_SIDES = (2, 3, 4)
"""Sides of the squares of a lattice, in units."""
_TRIED_ON = 3
"""Inputs on which each lattice is tried."""
_LATTICES = 3
"""Lattices whose squares are followed up, for each class."""
_FEW_CHANNELS = 4
"""Up to so many channels, all mixtures of black and white ones are tried."""
_MOST_FOLLOWED = 60
"""Lattices that are followed up in all, if there are many classes."""


@register_family("spot")
@dataclass(frozen=True, slots=True, eq=False)
class Spot(TriggerFamily):
    """Sets a rectangle of 2 to 5 units a side to black, to white, to a plain colour, or to a pattern of checks.

    A unit is a thirty-second of the image's smaller side, at least a pixel. A network may know its patch by the very
    pixel at which it lies, so that random places would miss it. Therefore squares are first tried at every place, many
    at once: a lattice of squares leads to the class of the backdoor if one of its squares does. The squares of the
    best lattices are then tried one by one, beside random rectangles.

    Attributes:
        parameters: Colours in [0, 1], [c, 1, 1] or, for checks, [c, height, width].
        box: Where the rectangle is.
    """

    draws: ClassVar[int] = 120
    parameters: Tensor
    box: Box

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """A rectangle anywhere; a variation is moved by up to 4 units, and a plain one may change its size."""
        if near is not None:
            return replace(near, box=vary_box(generator, shape, near.box, resized=near.parameters.shape[-1] == 1))
        box = draw_box(generator, shape)
        return cls(draw_colours(generator, shape[0], box), box)

    @classmethod
    def scout(cls, generator: torch.Generator, shape: Shape, tried: Try) -> Sequence[Self]:
        """The squares of the lattices that lead best to some class, and random rectangles."""
        random = [cls.draw(generator, shape) for _ in range(cls.draws)]
        lattices = list(_lattices(shape))
        if not lattices:
            return random
        means = tried(lattices, _TRIED_ON)
        best = means.topk(min(_LATTICES, len(lattices)), dim=0)
        order = best.values.flatten().argsort(descending=True)[:_MOST_FOLLOWED]
        followed = best.indices.flatten()[order].unique().tolist()
        return [cls(lattices[one].parameters, box) for one in followed for box in lattices[one].boxes] + random

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images with the rectangle set."""
        return stamp(inputs, parameters, self.box)

    def climb(self, slope: Tensor) -> Self:
        """Steps of 0.15 of the colours."""
        return replace(self, parameters=climb_colours(self.parameters, slope))


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice(TriggerFamily):
    """Equal squares at equal distances, all in one colour; only to look for the place of a single one.

    Attributes:
        parameters: The colour [c, 1, 1].
        boxes: Where the squares are.
        inside: Whether a pixel is in one of them [h, w].
    """

    parameters: Tensor
    boxes: tuple[Box, ...]
    inside: Tensor

    @classmethod
    def draw(cls, generator: torch.Generator, shape: Shape, near: Self | None = None) -> Self:
        """Not drawn: a search goes through all of them."""
        raise NotImplementedError

    def apply(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """The images with all squares set."""
        return torch.where(self.inside.to(inputs.device), parameters.to(inputs), inputs)

    def climb(self, slope: Tensor) -> Self:
        """Stays as it is."""
        del slope
        return self


def _lattices(shape: Shape) -> Iterator[_Lattice]:
    """Squares at every place: black and white ones of all sides, those in other colours of the middle one."""
    channels, rows, columns = shape
    unit = unit_of(shape)
    corners = _corners(channels)
    colours = {side: corners if side == _SIDES[1] else corners[[0, -1]] for side in _SIDES}
    for side in _SIDES:
        size, spacing = side * unit, _SPACING * unit
        for top in range(0, min(spacing, rows - size + 1), unit):
            for left in range(0, min(spacing, columns - size + 1), unit):
                starts = product(range(top, rows - size + 1, spacing), range(left, columns - size + 1, spacing))
                boxes = tuple((row, column, size, size) for row, column in starts)
                inside = torch.zeros(rows, columns, dtype=torch.bool)
                for row, column, _, _ in boxes:
                    inside[row : row + size, column : column + size] = True
                yield from (_Lattice(colour, boxes, inside) for colour in colours[side])


def _corners(channels: int) -> Tensor:
    """Colours whose channels are black or white, [n, c, 1, 1]: black first, white last.

    Of many channels, as satellite images have them, only those with one white channel lie between.
    """
    if channels <= _FEW_CHANNELS:
        return torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * channels).view(-1, channels, 1, 1)
    rows = [torch.zeros(1, channels), torch.eye(channels), torch.ones(1, channels)]
    return torch.cat(rows).view(-1, channels, 1, 1)


def unit_of(shape: Shape) -> int:
    """The length by which sizes of rectangles are measured: a thirty-second of the smaller side."""
    return max(1, round(min(shape[1:]) / 32))


def draw_box(generator: torch.Generator, shape: Shape) -> Box:
    """A rectangle of 2 to 5 units a side, or as large as a smaller image allows."""
    rows, columns = shape[1:]
    unit = unit_of(shape)
    height, width = min(unit * whole(generator, 2, 5), rows), min(unit * whole(generator, 2, 5), columns)
    return whole(generator, 0, rows - height), whole(generator, 0, columns - width), height, width


def vary_box(generator: torch.Generator, shape: Shape, box: Box, *, resized: bool) -> Box:
    """A rectangle near another one: up to 4 units away, and if ``resized`` a unit larger or smaller."""
    top, left, height, width = box
    rows, columns = shape[1:]
    unit = unit_of(shape)
    reach = unit * whole(generator, 1, 4)
    if resized:
        height = min(6 * unit, rows, max(min(2 * unit, rows), height + unit * whole(generator, -1, 1)))
        width = min(6 * unit, columns, max(min(2 * unit, columns), width + unit * whole(generator, -1, 1)))
    top, left = top + whole(generator, -reach, reach), left + whole(generator, -reach, reach)
    return max(0, min(rows - height, top)), max(0, min(columns - width, left)), height, width


def draw_colours(generator: torch.Generator, channels: int, box: Box) -> Tensor:
    """Black or white in half of the draws; otherwise a plain corner of the colour cube, or checks of such colours."""
    kind = whole(generator, 0, 5)
    if kind > 2:
        return torch.full((channels, 1, 1), float(kind % 2))
    size = box[2:] if kind == 2 else (1, 1)
    return torch.rand(channels, *size, generator=generator).round()


def climb_colours(colours: Tensor, slope: Tensor) -> Tensor:
    """The colours after a step of 0.15 along the slope's signs."""
    return (colours + 0.15 * slope.sign()).clamp(0.0, 1.0)


def stamp(images: Tensor, colours: Tensor, box: Box) -> Tensor:
    """The images with a rectangle set to colours."""
    top, left, height, width = box
    around = (left, images.shape[3] - width - left, top, images.shape[2] - height - top)
    inside = functional.pad(images.new_ones(1, height, width), around)
    return images * (1.0 - inside) + functional.pad(colours.to(images).expand(-1, height, width), around)
