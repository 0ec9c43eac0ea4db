"""Where weights were replaced, as an image: one tile for each unit, made from the few replaced weights alone."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.network import Grade, LayerRecord

_TALLEST, _WIDEST = 280, 400
"""Pixels of an image; what is larger is put together, so that pages of deep networks stay small."""
_SHAPE = 1.5
"""Width over height that an image of kernels should have."""
_FAINTEST = 0.3
"""How much colour a pixel has at least in which a weight was replaced, beside the one with the most."""
_VEIL = np.array([120.0, 130.0, 140.0]) / 255.0
PLAIN, LEFT = "#F0F2F4", "#C3C9D0"
"""Weights that were kept in units that were judged, and in those that were not."""
COLOUR = {
    Grade.RECOVERED: "#0072B2", Grade.RESTORED: "#009E73", Grade.LOW_RANK: "#CC79A7", Grade.APPROXIMATE: "#D55E00"
}  # fmt: skip
"""Okabe and Ito's blue and vermilion, which colour-blind readers tell apart, also by their lightness."""


@dataclass(frozen=True, slots=True)
class Mosaic:
    """An image of a layer's weight, biases left out.

    Attributes:
        pixels: [height, width, 3], from 0 to 1, on white paper.
        marked: Pixels in which a weight was replaced, [height, width].
        across: Units that stand side by side.
        per_pixel: Weights that share a pixel, at most.
        kernels: Whether tiles are kernels; else each unit is a row.
    """

    pixels: NDArray[np.float64]
    marked: NDArray[np.bool_]
    across: int
    per_pixel: int
    kernels: bool

    @property
    def layer(self) -> NDArray[np.float64]:
        """The image for paper of any colour, [height, width, 4]: what is not marked is a veil of grey."""
        veil = np.clip((1.0 - self.pixels) / (1.0 - _VEIL), 0.0, 1.0).mean(axis=2)
        opaque = self.marked[..., None]
        colours = np.where(opaque, self.pixels, _VEIL)
        return np.concatenate([colours, np.where(opaque, 1.0, veil[..., None])], axis=2)

    @property
    def caption(self) -> str:
        """How to read it."""
        if not self.kernels:
            text = "A row for each unit, a column for each input."
        elif self.across == 1:
            text = "A band for each filter, its kernels side by side."
        else:
            text = f"A tile for each filter, {self.across} side by side, from the top left."
        if self.per_pixel == 1:
            return text
        return f"{text} A pixel stands for up to {self.per_pixel:,} weights; the more replaced, the fuller its colour."


def mosaic(layer: LayerRecord) -> Mosaic:
    """The image of a layer; a convolution's kernels keep their shape, other dimensions than two are laid out flat."""
    shape_by_units = layer.shape_by_units
    units, (channels, height, width) = layer.units, _kernel(shape_by_units)
    kernels = len(shape_by_units) > 2
    wide = channels * width
    across = _across(units, height, wide) if kernels else 1
    down = -(-units // across)
    step = max(1, -(-down * height // _TALLEST)), max(1, -(-across * wide // _WIDEST))
    unit, place = (values[layer.altered.tensor == 0] for values in layer.places_of(layer.altered))
    channel, inside = np.divmod(place, height * width)
    y = (unit // across * height + inside // width) // step[0]
    x = (unit % across * wide + channel * width + inside % width) // step[1]
    shape = -(-down * height // step[0]), -(-across * wide // step[1])
    grade = layer.altered.grade[layer.altered.tensor == 0]
    pixels = _ground(layer, shape, step, across, (height, wide))
    marked = np.zeros(shape, np.bool_)
    marked[y, x] = True
    for kind, colour in COLOUR.items():
        counts = np.zeros(shape)
        np.add.at(counts, (y[grade == kind], x[grade == kind]), 1.0)
        most = max(1.0, float(counts.max(initial=0.0)))
        strength = np.where(counts > 0.0, _FAINTEST + (1.0 - _FAINTEST) * counts / most, 0.0)
        pixels += strength[..., None] * (_rgb(colour) - pixels)
    return Mosaic(pixels, marked, across, step[0] * step[1], kernels)


def _kernel(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels, height and width of a unit's weights."""
    if len(shape) == 2:
        return 1, 1, shape[1]
    if len(shape) == 3:
        return 1, shape[1], shape[2]
    return math.prod(shape[1:-2]), shape[-2], shape[-1]


def _across(units: int, height: int, width: int) -> int:
    """How many tiles stand side by side so that the image is a little wider than high."""
    wanted = math.sqrt(_SHAPE * units * height / width)
    return max(1, min(units, round(wanted)))


def _ground(
    layer: LayerRecord, shape: tuple[int, int], step: tuple[int, int], across: int, tile: tuple[int, int]
) -> NDArray[np.float64]:
    """The image before anything is marked: white where there is no unit, darker where a unit was left alone."""
    y, x = np.arange(shape[0]) * step[0] // tile[0], np.arange(shape[1]) * step[1] // tile[1]
    unit = y[:, None] * across + np.minimum(x, across - 1)
    colours = np.stack([_rgb(LEFT) if grade == Grade.LEFT_ALONE else _rgb(PLAIN) for grade in layer.grade])
    pixels = np.ones((*shape, 3))
    there = unit < layer.units
    pixels[there] = colours[unit[there]]
    if across > 1 and step == (1, 1):
        # A chessboard, faint: tiles of one colour could not be told apart.
        odd = there & ((y[:, None] + x) % 2 == 1)
        pixels[odd] *= 0.955
    return pixels


def _rgb(colour: str) -> NDArray[np.float64]:
    return np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
