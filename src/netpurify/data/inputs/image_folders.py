"""A folder of images as network inputs; every image that cannot be used is refused by its name."""

import math
import os
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.checkpoint import open_regular
from netpurify.data.inputs.available_memory import free_memory
from netpurify.data.pillow import require_pillow
from netpurify.errors import DataError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".pgm", ".ppm")
_FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "GIF", "TIFF", "PPM")
"""Without those that Pillow hands on to another program."""
_GREY = ("1", "L", "LA", "La")
_DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""More than eight bits; Pillow cuts them off rather than scaling them."""
_CUT = re.compile(";16[BLN]$")
"""The form, in Pillow's words, of sixteen bits that it makes eight of. Five or six bits of a BMP end in a number."""
_BITS_PER_SAMPLE = 258
MOST_PIXELS = 89_478_485
"""Of one image, as it is or resized: so many Pillow opens without a warning."""


def read_images(
    folder: Path,
    *,
    size: tuple[int, int] | None,
    channels: int | None,
    limit: int | None,
    shape: Callable[[Any], Any] | None = None,
) -> Tensor:
    """The images below ``folder``, sorted by name, as [n, channels, h, w] in [0, 1]; see ``reading.load_inputs``.

    Args:
        folder: Where they are.
        size: Height and width of the inputs; ``None`` if they come from the images.
        channels: 1 or 3; ``None`` as they come.
        limit: Only the first so many.
        shape: Gives a Pillow image its size; ``None`` for a plain resize to ``size``.

    Raises:
        DataError: There are no images, one cannot be used or differs from the first, or Pillow is not installed.
    """
    paths = _image_files(folder)[:limit]
    module = require_pillow("images of a folder are read by Pillow", "save the images as one .npy array")
    if size is not None:
        _require_memory(folder, len(paths), (*size, channels or 1))  # before the first is made larger
    shape = shape or (None if size is None else partial(_resized, size=size, resample=module.Resampling.BILINEAR))
    first = _pixels(module, paths[0], shape, channels)
    inputs = _room(folder, len(paths), first.shape)
    for position, path in enumerate(paths):
        pixels = _pixels(module, path, shape, channels) if position else first
        if pixels.shape != first.shape:
            raise DataError(
                f"{path}: expected {_shape(first)}, like {paths[0].name}; got {_shape(pixels)}; "
                f"give {'channels' if pixels.shape[:2] == first.shape[:2] else 'size'}, or take that image out"
            )
        inputs[position] = torch.from_numpy(pixels).permute(2, 0, 1)
    return inputs.div_(255)


def _image_files(folder: Path) -> list[Path]:
    """Images below ``folder``; hidden files and folders, and folders behind links, do not count."""
    files, others = [], 0
    for parent, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]
        visible = [Path(parent) / name for name in names if not name.startswith(".")]
        images = [path for path in visible if path.suffix.lower() in SUFFIXES]
        files += images
        others += len(visible) - len(images)
    if not files:
        raise DataError(
            f"{folder}: expected images ({', '.join(SUFFIXES)}) in the folder or below; got {others} other files; "
            "give the folder that has them, or a file"
        )
    return sorted(files, key=lambda path: path.relative_to(folder).parts)


def _resized(image: Any, *, size: tuple[int, int], resample: int) -> Any:
    return image if image.size == size[::-1] else image.resize(size[::-1], resample)


def _pixels(module: Any, path: Path, shape: Callable[[Any], Any] | None, channels: int | None) -> NDArray[np.uint8]:
    """One image as [h, w, channels]."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", module.DecompressionBombWarning)
            with open_regular(path) as stream, module.open(stream, formats=_FORMATS) as image:
                deep = _deep(image)
                grey = channels == 1 or (channels is None and image.mode in _GREY)
                plain = None if deep else image.convert("L" if grey else "RGB")
        if plain is not None and shape is not None:
            plain = shape(plain)
        pixels = np.atleast_3d(np.array(plain))
    except DataError as problem:  # of ``shape``
        raise DataError(f"{path}: {problem}; give a size, or take the image out") from problem
    except Exception as problem:  # a damaged image can lead Pillow's readers to any error
        first = str(problem).split("\n", maxsplit=1)[0][:200]
        raise DataError(f"{path}: the image cannot be read ({first}); repair it or take it out") from problem
    if deep:
        raise DataError(f"{path}: expected 8 bits for each channel; got {deep}; convert it, or save a .npy array")
    return pixels


def _deep(image: Any) -> str | None:
    """How an image says that it has more than eight bits for a channel, if it does; Pillow may not show it."""
    if image.mode in _DEEP:
        return f"mode {image.mode}"
    if image.format == "TIFF":
        bits = max(image.tag_v2.get(_BITS_PER_SAMPLE, (1,)))
        return f"{bits} bits" if bits > 8 else None
    for *_, form in image.tile:
        word, *rest = (form,) if isinstance(form, str) else form or ("",)
        if isinstance(word, str) and _CUT.search(word):
            return f"mode {word}"
        if image.format == "PPM" and rest and rest[0] > 255:
            return f"values up to {rest[0]}"
    return None


def _room(folder: Path, count: int, shape: tuple[int, ...]) -> Tensor:
    _require_memory(folder, count, shape)
    high, wide, channels = shape
    try:
        return torch.empty((count, channels, high, wide))
    except RuntimeError as problem:
        raise _too_many(folder, count, shape) from problem


def _require_memory(folder: Path, count: int, shape: tuple[int, ...]) -> None:
    # The system may promise any memory, and end the process when it is used.
    if _size(count, shape) > free_memory():
        raise _too_many(folder, count, shape)


def _size(count: int, shape: tuple[int, ...]) -> int:
    """In bytes, as float32."""
    return 4 * count * math.prod(shape)


def _too_many(folder: Path, count: int, shape: tuple[int, ...]) -> DataError:
    return DataError(
        f"{folder}: {count} images of {shape[0]}x{shape[1]} need {_size(count, shape) / 1e9:.0f} GB, more than there "
        "is; give limit, or a smaller size"
    )


def _shape(pixels: NDArray[np.uint8]) -> str:
    high, wide, channels = pixels.shape
    return f"{high}x{wide} in {'colour' if channels == 3 else 'grey'}"
