"""A folder of images as network inputs; every image that cannot be used is refused by its name."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.data.formats import require_pillow
from netpurify.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".pgm", ".ppm")
_FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "GIF", "TIFF", "PPM")
"""Without those that Pillow hands on to another program."""
_GREY = ("1", "L", "LA", "La")
_DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""More than eight bits; Pillow cuts them off rather than scaling them."""


def read_images(folder: Path, *, size: tuple[int, int] | None, channels: int | None, limit: int | None) -> Tensor:
    """The images below ``folder``, sorted by name, as [n, channels, h, w] in [0, 1]; see ``files.load_inputs``.

    Raises:
        DataError: There are no images, one cannot be used or differs from the first, or Pillow is not installed.
    """
    paths = _found(folder)[:limit]
    module = require_pillow("images of a folder are read by Pillow", "save the images as one .npy array")
    first = _pixels(module, paths[0], size, channels)
    inputs = _room(folder, len(paths), first.shape)
    for place, path in enumerate(paths):
        pixels = _pixels(module, path, size, channels) if place else first
        if pixels.shape != first.shape:
            raise DataError(
                f"{path}: expected {_shape(first)}, like {paths[0].name}; got {_shape(pixels)}; "
                f"give {'channels' if pixels.shape[:2] == first.shape[:2] else 'size'}, or take that image out"
            )
        inputs[place] = torch.from_numpy(pixels).permute(2, 0, 1)
    return inputs.div_(255)


def _found(folder: Path) -> list[Path]:
    """Images below ``folder``; what is hidden, and folders behind links, do not count."""
    found, others = [], 0
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]
        visible = [Path(place) / name for name in names if not name.startswith(".")]
        images = [path for path in visible if path.suffix.lower() in SUFFIXES]
        found += images
        others += len(visible) - len(images)
    if not found:
        raise DataError(
            f"{folder}: expected images ({', '.join(SUFFIXES)}) in the folder or below; got {others} other files; "
            "give the folder that has them, or a file"
        )
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def _pixels(module: Any, path: Path, size: tuple[int, int] | None, channels: int | None) -> NDArray[np.uint8]:
    """One image as [h, w, channels]."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", module.DecompressionBombWarning)
            with module.open(path, formats=_FORMATS) as image:
                mode = image.mode
                grey = channels == 1 or (channels is None and mode in _GREY)
                plain = None if mode in _DEEP else image.convert("L" if grey else "RGB")
    except Exception as problem:  # a damaged image can lead Pillow's readers to any error
        first = str(problem).split("\n", maxsplit=1)[0]
        raise DataError(f"{path}: the image cannot be read ({first}); repair it or take it out") from problem
    if plain is None:
        raise DataError(f"{path}: expected 8 bits for each channel; got mode {mode}; convert it, or save a .npy array")
    if size is not None and plain.size != size[::-1]:
        plain = plain.resize(size[::-1], module.Resampling.BILINEAR)
    return np.atleast_3d(np.array(plain))


def _room(folder: Path, count: int, shape: tuple[int, ...]) -> Tensor:
    high, wide, channels = shape
    try:
        return torch.empty((count, channels, high, wide))
    except RuntimeError as problem:
        raise DataError(
            f"{folder}: {count} images of {high}x{wide} need {count * high * wide * channels * 4 / 1e9:.0f} GB, more "
            "than there is; give limit, or a smaller size"
        ) from problem


def _shape(pixels: NDArray[np.uint8]) -> str:
    high, wide, channels = pixels.shape
    return f"{high}x{wide} in {'colour' if channels == 3 else 'grey'}"
