"""One file of weights that is open: its tensors are listed at once, and read one by one.

Nothing of a safetensors file is mapped: the pages of a mapping would count as memory of this process while it lasts.
"""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import torch
from torch import Tensor

from netpurify.checkpoint.mapping import open_regular
from netpurify.checkpoint.safetensors_files import Header, HeaderEntry, header_length, parse_header
from netpurify.checkpoint.tensors import raw_bytes
from netpurify.checkpoint.weights import is_safetensors, load_file
from netpurify.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """What a file says about a tensor, before its values are read.

    Attributes:
        dtype: Its dtype.
        shape: Its shape.
        file: The file that holds it.
        written: Its name there, with prefixes that ``WeightsFile`` takes off.
    """

    dtype: torch.dtype
    shape: torch.Size
    file: Path
    written: str

    @property
    def size(self) -> int:
        """In bytes."""
        return self.shape.numel() * self.dtype.itemsize


class SafetensorsShard:
    """A safetensors file that stays open; its header was checked against its size as ``load_weights`` does it."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        """Reads the header; the stream is closed by the caller."""
        self.path, self._stream, self._turn = path, stream, Lock()
        self._state = self._now()
        size = self._state[0]
        length = header_length(path, self.take(0, min(size, 8)), size)
        self.header: Header = parse_header(path, self.take(8, length), size)
        self.metadata = self.header.metadata

    def entries(self) -> Iterator[tuple[str, TensorEntry]]:
        """Every tensor, in the order of the header."""
        for name, entry in self.header.entries.items():
            yield name, TensorEntry(entry.dtype, torch.Size(entry.shape), self.path, name)

    def read(self, name: str, rows: slice | None) -> Tensor:
        """The values of a tensor, or of some of its rows."""
        entry = self.header.entries[name]
        shape, start = list(entry.shape), self.header.end + entry.start
        if rows is not None:
            start += rows.start * math.prod(shape[1:]) * entry.dtype.itemsize
            shape[0] = rows.stop - rows.start
        tensor = self._room(shape, entry.dtype, name)
        self._fill(raw_bytes(tensor).data, start)
        if sys.byteorder != "little":
            tensor.untyped_storage().byteswap(entry.dtype)
        return tensor

    def in_order(self) -> list[tuple[str, HeaderEntry]]:
        """The tensors as they lie in the file, one after the other."""
        return sorted(self.header.entries.items(), key=lambda item: (item[1].start, item[1].stop))

    def take(self, start: int, size: int) -> bytes:
        """Some bytes of the file.

        Raises:
            CheckpointError: The file has changed since it was opened, or cannot be read.
        """
        content = bytearray(size)
        self._fill(memoryview(content), start)
        return bytes(content)

    def _room(self, shape: list[int], dtype: torch.dtype, name: str) -> Tensor:
        """Memory for values; a file with holes can be much larger than the disk that it is on."""
        try:
            return torch.empty(shape, dtype=dtype)
        except RuntimeError as problem:
            raise CheckpointError(
                f"{self.path}: {name} needs {math.prod(shape) * dtype.itemsize} bytes of memory, which are not free; "
                "read it in parts"
            ) from problem

    def _fill(self, memory: memoryview, start: int) -> None:
        done = 0
        try:
            with self._turn:  # several threads may read, one at a time
                self._stream.seek(start)
                while done < len(memory) and (count := self._stream.readinto(memory[done:])):  # type: ignore[reportAttributeAccessIssue]  # a reader has it
                    done += count
        except OSError as problem:
            raise CheckpointError(
                f"{self.path}: expected a file that can be read; {problem.strerror}; check the disk"
            ) from problem
        if done < len(memory) or self._now() != self._state:
            raise CheckpointError(
                f"{self.path}: the file must stay as it was when it was opened; its size or its time of change is "
                "another now; open it again when it is complete"
            )

    def _now(self) -> tuple[int, int]:
        found = os.fstat(self._stream.fileno())
        return found.st_size, found.st_mtime_ns


class LoadedShard:
    """A file of ``torch.save``, read as a whole: its tensors may share memory and lie in any order."""

    def __init__(self, path: Path) -> None:
        """Maps the file."""
        self.path, self.metadata = path, dict[str, str]()
        self._tensors = load_file(path)

    def entries(self) -> Iterator[tuple[str, TensorEntry]]:
        """Every tensor, in the order of the file."""
        for name, tensor in self._tensors.items():
            yield name, TensorEntry(tensor.dtype, tensor.shape, self.path, name)

    def read(self, name: str, rows: slice | None) -> Tensor:
        """A copy of a tensor, or of some of its rows."""
        tensor = self._tensors[name]
        part = tensor if rows is None else tensor[rows]
        return part.clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg()


def open_shard(path: Path, stack: ExitStack) -> SafetensorsShard | LoadedShard:
    """Opens a file of weights, to be closed with the stack.

    Raises:
        CheckpointError: As for ``load_weights``.
    """
    try:
        stream = stack.enter_context(open_regular(path))
        start = stream.read(16)
    except OSError as problem:
        raise CheckpointError(
            f"{path}: expected a file that can be read; {problem.strerror}; check its name"
        ) from problem
    if not start:
        raise CheckpointError(f"{path}: expected weights; the file is empty; get it again")
    return SafetensorsShard(path, stream) if is_safetensors(path, start) else LoadedShard(path)
