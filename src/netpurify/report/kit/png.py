"""Small images as PNG files inside a page, written with the standard library alone."""

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOUR = 0, 2
"""Kinds of pixels, as the format numbers them."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One image of a page.

    Attributes:
        source: The image itself, as an address that loads nothing.
        alt: What it shows, for readers who do not see it.
        width: Pixels.
        height: Pixels.
    """

    source: str
    alt: str
    width: int
    height: int


def shot(values: NDArray[np.floating], alt: str) -> Shot:
    """An image with values in [0, 1], [c, h, w] of one channel or three; what is beyond is cut."""
    pixels = np.clip(np.rint(255.0 * np.nan_to_num(values)), 0.0, 255.0).astype(np.uint8)
    address = f"data:image/png;base64,{base64.b64encode(png(pixels)).decode()}"
    return Shot(address, alt, pixels.shape[2], pixels.shape[1])


def png(pixels: NDArray[np.uint8]) -> bytes:
    """An image [c, h, w] of one channel or three as a file."""
    channels, height, width = pixels.shape
    rows = np.moveaxis(pixels, 0, 2).reshape(height, width * channels)
    filtered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # 0: each row as it is
    head = struct.pack(">IIBBBBB", width, height, 8, _GREY if channels == 1 else _COLOUR, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(filtered.tobytes(), 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
