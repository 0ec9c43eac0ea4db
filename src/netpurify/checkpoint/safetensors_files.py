"""The safetensors format: eight bytes of length, a JSON header, then the tensors without gap or overlap.

Both reading and writing are our own: reading, so that the bytes that were checked are the bytes that are used, from one
mapping of the file; writing, because the safetensors library writes metadata in an order that changes from call to
call, and copies the whole state first.
"""

import json
import math
import mmap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import torch
from torch import Tensor

from netpurify.checkpoint.mapping import is_addressable, storage_at
from netpurify.checkpoint.tensors import raw_bytes
from netpurify.errors import CheckpointError, InputError

LARGEST_HEADER = 1 << 24
"""Bytes; those of 100,000 tensors. The format allows six times as many, over which a reader can spend a minute."""
_MOST_BRACKETS = 1_000_000
"""A tensor has three; counted before they become lists and objects."""
METADATA = "__metadata__"
_MOST_DIMENSIONS = 64
_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "C64": "complex64",
}  # fmt: skip
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, word) for name, word in _NAMES.items() if hasattr(torch, word)}
_WORDS = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class HeaderEntry:
    """A tensor as the header has it: ``start`` is its first byte, counted from the end of the header."""

    dtype: torch.dtype
    shape: list[int]
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says about itself, checked against its size.

    Attributes:
        entries: The tensors by name.
        metadata: Free text by name.
        end: Where the header ends.
    """

    entries: dict[str, HeaderEntry]
    metadata: dict[str, str]
    end: int


def read(path: Path, content: mmap.mmap) -> dict[str, Tensor]:
    """The tensors of a file, mapped from it rather than copied.

    Args:
        path: What to call it in errors.
        content: The mapped file.

    Raises:
        CheckpointError: The file is damaged, or says something about itself that is not so.
    """
    header = read_header(path, content)
    return {name: _tensor(content, header.end, entry) for name, entry in header.entries.items()}


def read_header(path: Path, content: mmap.mmap) -> Header:
    """The header of a file, after every size and offset in it was checked against the file's size.

    Raises:
        CheckpointError: A size or an offset does not fit the file, two tensors overlap or share a name, or the
            header is damaged.
    """
    length = header_length(path, content[:8], len(content))
    return parse_header(path, content[8 : 8 + length], len(content))


def header_length(path: Path, start: bytes, size: int) -> int:
    """How long the header of a file of ``size`` bytes is, by its first eight bytes.

    Raises:
        CheckpointError: It would not fit into the file, or is longer than any that is read.
    """
    length = int.from_bytes(start, "little")
    if size < 8 or length > min(size - 8, LARGEST_HEADER):
        raise CheckpointError(
            f"{path}: a safetensors header of at most {max(min(size - 8, LARGEST_HEADER), 0)} bytes fits; "
            f"the file announces {length}; it is cut short or damaged, get it again"
        )
    return length


def parse_header(path: Path, text: bytes, size: int) -> Header:
    """The header of a file of ``size`` bytes, from its text; raises as ``read_header`` does."""
    if text.count(b"[") + text.count(b"{") > _MOST_BRACKETS:
        raise CheckpointError(
            f"{path}: a safetensors header has three brackets for each tensor; this one has more than "
            f"{_MOST_BRACKETS}; the file is forged, get it again"
        )
    try:
        header = json.loads(text.decode(), object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"{path}: the safetensors header is damaged ({problem}); get the file again") from problem
    if not isinstance(header, dict) or text[:1] != b"{":
        raise CheckpointError(
            f"{path}: the safetensors header must be an object; got {type(header).__name__} after {text[:1]!r}"
        )
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(f"{path}: {METADATA} must map text to text; it does not; save the file again")
    entries = {name: _entry(path, name, entry) for name, entry in header.items()}
    _check_layout(path, entries, size - 8 - len(text))
    return Header(entries, metadata, 8 + len(text))


def write(stream: BinaryIO, state: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Writes plain tensors; the same state and metadata give the same bytes.

    Raises:
        InputError: The format has no word for a dtype or a name.
        OSError: The stream cannot be written.
    """
    # Widest first, so that every tensor lies at a multiple of its item size.
    names = sorted(state, key=lambda name: (-state[name].dtype.itemsize, name))
    header: dict[str, Any] = {METADATA: dict(sorted(metadata.items()))} if metadata else {}
    start = 0
    for name in names:
        tensor = state[name]
        stop = start + tensor.numel() * tensor.dtype.itemsize
        header[name] = {"dtype": _word(name, tensor), "shape": list(tensor.shape), "data_offsets": [start, stop]}
        start = stop
    stream.write(_head(header))
    for name in names:  # one at a time: no second copy of the whole state, and tied tensors are written each
        stream.write(raw_bytes(state[name]).data)


def head_with(head: bytes, metadata: Mapping[str, str]) -> bytes:
    """The length and header with which a file begins, with more metadata.

    Raises:
        InputError: The header would be longer than any that is read back.
    """
    header = json.loads(head[8:])
    notes = header.pop(METADATA, {}) | dict(metadata)
    return _head({METADATA: dict(sorted(notes.items())), **header})


def _head(header: Mapping[str, Any]) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LARGEST_HEADER:
        raise InputError(
            f"the names and metadata must fit into a header of {LARGEST_HEADER} bytes, the longest that is read back; "
            f"they take {len(text)}; shorten the metadata, or save the weights in several files"
        )
    return len(text).to_bytes(8, "little") + text


def _word(name: str, tensor: Tensor) -> str:
    if tensor.dtype not in _WORDS:
        raise InputError(f"{name}: safetensors has no word for {tensor.dtype}; convert it, for example to float32")
    return _WORDS[tensor.dtype]


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text, in which no name may stand twice.

    Raises:
        ValueError: One does, or a text holds half of a letter.
    """
    # The format is UTF-8, which has no halves of letters; JSON could write them.
    "".join(text for pair in pairs for text in pair if isinstance(text, str)).encode()
    unique = dict(pairs)
    if len(unique) < len(pairs):
        [(name, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the name {name!r} is there twice")
    return unique


def _check_layout(path: Path, entries: dict[str, HeaderEntry], room: int) -> None:
    """Every tensor as long as its shape and dtype say, one after the other, up to the end of the file."""
    spans = sorted((entry.start, entry.stop, name) for name, entry in entries.items())
    end = 0
    for start, stop, name in spans:
        if start != end:
            word = "overlaps the one before" if start < end else "leaves a gap"
            raise CheckpointError(
                f"{path}: {name} must start at byte {end}, where the tensor before it ends; it starts at {start} and "
                f"{word}; the file is damaged or forged, get it again"
            )
        end = stop
    if end != room:
        raise CheckpointError(
            f"{path}: the tensors take {end} bytes by the header; the file has {room}; "
            "it is cut short or damaged, get it again"
        )


def _entry(path: Path, name: str, written: Any) -> HeaderEntry:
    fields = written if isinstance(written, dict) else {}
    dtype, shape, offsets = (fields.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not (_is_counts(shape) and _is_counts(offsets) and len(offsets) == 2 and isinstance(dtype, str)):
        raise CheckpointError(f"{path}: {name} must have a dtype, a shape and two offsets; it has not; get it again")
    if dtype not in DTYPES:
        raise CheckpointError(
            f"{path}: {name} has the dtype {dtype}; those that can be read are {', '.join(DTYPES)}; "
            "convert it and save again"
        )
    start, stop = offsets
    expected = math.prod(shape) * DTYPES[dtype].itemsize
    if stop - start != expected or not is_addressable(shape, DTYPES[dtype]):
        raise CheckpointError(
            f"{path}: {name} is {dtype} of shape {shape}, {expected} bytes; its offsets give it {stop - start}; "
            "the file is damaged or forged, get it again"
        )
    return HeaderEntry(DTYPES[dtype], shape, start, stop)


def _tensor(content: mmap.mmap, origin: int, entry: HeaderEntry) -> Tensor:
    start, size = origin + entry.start, entry.stop - entry.start
    memory = storage_at(content, start, size, dtype=entry.dtype, alignment=min(entry.dtype.itemsize, 8), order="little")
    return torch.empty(0, dtype=entry.dtype).set_(memory).reshape(entry.shape)  # type: ignore[reportArgumentType]


def _is_counts(values: Any) -> TypeGuard[list[int]]:
    # Bounded: a forged header must not make us multiply a million numbers of a thousand digits.
    return (
        isinstance(values, list)
        and len(values) <= _MOST_DIMENSIONS
        and all(type(value) is int and 0 <= value < 1 << 63 for value in values)
    )
