"""What a file of ``torch.save`` announces: storages, and tensors that are given their memory after all checks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

BITS = {"conj": torch._C._set_conj, "neg": torch._C._set_neg}
"""Flags of a tensor whose numbers are to be conjugated or negated when they are read; torch has no public setter."""
_LONGEST_NAME = 200
_DEEPEST = 32
"""Levels of nesting in which a tensor's name is looked for; a forged file may have a million."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A stretch of memory that the file announces: ``count`` items of ``dtype``."""

    key: str
    dtype: torch.dtype
    count: int

    @property
    def size(self) -> int:
        """In bytes."""
        return self.count * self.dtype.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class SavedTensor:
    """A tensor that the file announces.

    Attributes:
        tensor: The tensor within ``Inspection.content``, still empty.
        storage: The storage that holds its numbers.
        layout: Offset, shape and stride within the storage.
        bits: Names in ``BITS`` of the flags to set on it.
        problem: What is wrong with it, if anything.
    """

    tensor: Tensor
    storage: Storage | None = None
    layout: tuple[int, tuple[int, ...], tuple[int, ...]] = (0, (), ())
    bits: tuple[str, ...] = ()
    problem: str | None = None

    def fill(self, memory: torch.UntypedStorage) -> None:
        """Gives the tensor its numbers."""
        self.tensor.set_(memory, *self.layout)  # type: ignore[reportArgumentType]  # torch takes it, its stub does not
        for bit in self.bits:
            BITS[bit](self.tensor, True)


@dataclass(slots=True)
class Inspection:
    """What a pickle holds.

    Attributes:
        content: Dictionaries, lists and tuples, texts and numbers, and empty tensors.
        end: Where the pickle ends.
        storages: By key.
        tensors: Every tensor, also those beside the weights.
    """

    content: Any = None
    end: int = 0
    storages: dict[str, Storage] = field(default_factory=dict)
    tensors: list[SavedTensor] = field(default_factory=list)

    def problem(self) -> str | None:
        """The name of the first tensor with a problem, and the problem; ``None`` if there is none."""
        bad = next((saved for saved in self.tensors if saved.problem), None)
        return None if bad is None else f"{_name(self.content, bad.tensor) or 'a tensor'} {bad.problem}"


def _name(content: Any, tensor: Tensor) -> str | None:
    """The path of a tensor in the content, such as ``optimizer.0.step``; a list may contain itself."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(content, ())]
    seen: set[int] = set()
    while waiting:
        value, path = waiting.pop()
        if value is tensor:
            return ".".join(path)[:_LONGEST_NAME]
        if id(value) not in seen and len(path) < _DEEPEST:
            seen.add(id(value))
            waiting += [
                (item, (*path, str(key))) for key, item in _items(value) if item is tensor or _is_container(item)
            ]
    return None


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
