"""NumPy's files, read so that nothing can run and a header's sizes are checked before memory is taken."""

import ast
import math
import os
import re
import warnings
import zipfile
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from netpurify.data.inputs.naming import chosen, require_same_rows
from netpurify.errors import DataError

NPY = b"\x93NUMPY"
_LENGTHS = {b"\1\0": 2, b"\2\0": 4}
"""Bytes of the field that holds the header's length, by version; version 3 is for records with non-ASCII names."""
_LONGEST_HEADER = 10_000
"""As in NumPy, whose own reader spends 22 s on some damaged headers of that length."""
_LARGEST_RATIO = 200
_ALWAYS_FINE = 1 << 28
"""Bytes of an array up to which any compression ratio is accepted."""
_MOST_DIMENSIONS = 32


def read_npy(stream: BinaryIO, what: str, *, limit: int | None) -> NDArray:
    """The first ``limit`` rows of the array in a ``.npy`` file.

    Args:
        stream: The file, opened by ``open_regular``.
        what: What to call it in errors.
        limit: ``None`` for all rows.

    Raises:
        DataError: It is damaged, holds objects or something else than numbers, or is not as long as it says.
    """
    stream.seek(0)
    return _read(stream, os.fstat(stream.fileno()).st_size, what, limit)


def read_npz(stream: BinaryIO, what: str, *, limit: int | None) -> NDArray | dict[str, NDArray]:
    """The first ``limit`` rows of the arrays in a ``.npz`` file, packed or not; see ``naming.chosen`` for which.

    Returns:
        One array, or several by name.

    Raises:
        DataError: As for ``read_npy``, or no array can be chosen, or one unpacks to an unlikely size.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = [entry for entry in archive.namelist() if entry.endswith(".npy")]
            choice = chosen([entry.removesuffix(".npy") for entry in entries], what)
            size = os.fstat(stream.fileno()).st_size
            if isinstance(choice, str):
                return _read_entry(archive, choice, size, what, limit)
            require_same_rows({name: _rows(archive, name, size, what) for name in choice}, what)
            return {name: _read_entry(archive, name, size, what, limit) for name in choice}
    except DataError:
        raise
    except Exception as problem:  # a damaged archive can lead the unpackers to any error
        raise DataError(f"{what}: the archive is cut short or damaged ({_first(problem)}); get it again") from problem


def is_npz(stream: BinaryIO, path: Path) -> bool:
    """Whether a zip archive is one of NumPy's; a damaged one counts by its suffix."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return any(name.endswith(".npy") for name in archive.namelist())
    except Exception:  # likewise
        return path.suffix == ".npz"


def _read_entry(archive: zipfile.ZipFile, name: str, size: int, what: str, limit: int | None) -> NDArray:
    entry = archive.getinfo(f"{name}.npy")
    _check_ratio(what, name, entry, size)
    with archive.open(entry) as content:
        return _read(content, entry.file_size, f"{what}: {name}", limit)


def _rows(archive: zipfile.ZipFile, name: str, size: int, what: str) -> int:
    """How many rows the header of an array announces."""
    entry = archive.getinfo(f"{name}.npy")
    _check_ratio(what, name, entry, size)
    with archive.open(entry) as content:
        return _header(content, f"{what}: {name}")[0][0]


def _check_ratio(what: str, name: str, entry: zipfile.ZipInfo, size: int) -> None:
    packed = min(entry.compress_size, size)
    if entry.file_size > max(_ALWAYS_FINE, _LARGEST_RATIO * packed):
        raise DataError(
            f"{what}: {name} unpacks from {packed} bytes to {entry.file_size}; at most {_LARGEST_RATIO} times as many "
            "are believed; save it with np.save"
        )


def _read(stream: IO[bytes], size: int, what: str, limit: int | None) -> NDArray:
    shape, columns_first, dtype = _header(stream, what)
    room = size - stream.tell()
    expected = math.prod(shape) * dtype.itemsize
    if expected != room:
        raise DataError(
            f"{what}: the header announces {list(shape)} of {dtype}, {expected} bytes; got {room}; "
            "the file is cut short or foreign, save it again"
        )
    rows = shape[0] if limit is None else min(limit, shape[0])
    if columns_first:
        return np.frombuffer(_exactly(stream, room, what), dtype).reshape(shape, order="F")[:rows]
    return np.frombuffer(_exactly(stream, rows * (room // shape[0]), what), dtype).reshape(rows, *shape[1:])


def _exactly(stream: IO[bytes], count: int, what: str) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise DataError(f"{what}: {count} bytes of numbers were announced; got {len(content)}; get the file again")
    return content


def _header(stream: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    try:
        shape, columns_first, dtype = _parsed(_header_text(stream))
    except Exception as problem:  # the header is a Python literal, which can be wrong in many ways
        raise DataError(
            f"{what}: the header of the array is damaged ({_first(problem)}); save it with np.save"
        ) from problem
    if dtype.hasobject:
        raise DataError(
            f"{what}: expected numbers; got Python objects, which are a pickle and could run code, so they were not "
            "read; save an array of numbers"
        )
    if dtype.kind not in "biuf":
        raise DataError(f"{what}: expected whole or real numbers; got {dtype}; save an array of numbers")
    # NumPy takes truth values for whole numbers.
    if any(type(length) is not int for length in shape) or len(shape) > _MOST_DIMENSIONS:
        raise DataError(
            f"{what}: expected a shape of at most {_MOST_DIMENSIONS} whole numbers; got {str(shape)[:80]}; "
            "save it with np.save"
        )
    if not shape or min(shape) < 1:
        raise DataError(f"{what}: expected at least one input in rows, [n, ...]; got the shape {list(shape)}")
    return shape, columns_first, dtype


def _header_text(stream: IO[bytes]) -> str:
    magic, version = stream.read(len(NPY)), stream.read(2)
    if magic != NPY or version not in _LENGTHS:
        raise ValueError(f"it starts with {(magic + version).hex(' ')}")
    length = int.from_bytes(stream.read(_LENGTHS[version]), "little")
    text = stream.read(min(length, _LONGEST_HEADER + 1))
    if len(text) != length or length > _LONGEST_HEADER:
        raise ValueError(f"it announces {length} bytes; at most {_LONGEST_HEADER} are read, and {len(text)} are there")
    return text.decode("latin1")


def _parsed(text: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's, about odd texts
        content = ast.literal_eval(re.sub(r"(\d)L\b", r"\1", text).strip())  # as Python 2 wrote whole numbers
    if not isinstance(content, dict) or content.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("it must say descr, fortran_order and shape, and nothing else")
    shape, columns_first = content["shape"], content["fortran_order"]
    if type(shape) is not tuple or type(columns_first) is not bool:
        raise ValueError("its shape must be a tuple, and fortran_order True or False")
    return shape, columns_first, np.lib.format.descr_to_dtype(content["descr"])


def _first(problem: Exception) -> str:
    """The start of what an error says: the rest may be any part of a forged file."""
    return str(problem).split("\n", maxsplit=1)[0][:200]
