"""Reads a pickle of ``torch.save`` into plain values, and tensors that have no memory yet.

The names that ``torch.save`` writes for weights are known here and answered with values of our own; any other name is
refused: a function that the file wants Python to call, or a value that is not supported. Every tensor's shape and
stride is checked against the size of its storage. The tensors in the result are empty at first, and are given their
memory once the whole file has been examined.
"""

import math
from collections.abc import Callable
from functools import partial
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from netpurify.checkpoint.announced import BITS, Inspection, SavedTensor, Storage
from netpurify.checkpoint.mapping import is_addressable
from netpurify.checkpoint.pickles import MOST_STEPS, Call, Machine, UnsupportedError, set_item

STORAGES: dict[str, torch.dtype] = {
    "DoubleStorage": torch.float64, "FloatStorage": torch.float32, "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16, "LongStorage": torch.int64, "IntStorage": torch.int32,
    "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8, "BoolStorage": torch.bool,
    "ComplexFloatStorage": torch.complex64, "ComplexDoubleStorage": torch.complex128,
    "QInt8Storage": torch.qint8, "QUInt8Storage": torch.quint8, "QInt32Storage": torch.qint32,
}  # fmt: skip
_UNUSUAL = {
    "_rebuild_sparse_tensor": "sparse", "_rebuild_qtensor": "quantised", "_rebuild_nested_tensor": "nested",
    "_rebuild_meta_tensor_no_storage": "meta",
}  # fmt: skip
_DTYPES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
_SCHEMES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.qscheme)}
_UNREAD = {
    ("builtins", "set"): "a set", ("builtins", "frozenset"): "a frozenset", ("builtins", "bytearray"): "a bytearray",
    ("builtins", "complex"): "a complex number", ("builtins", "range"): "a range", ("builtins", "slice"): "a slice",
    ("torch._tensor", "_rebuild_from_type_v2"): "a tensor of another class, such as torch.nn.Buffer",
}  # fmt: skip
"""Values that an intact file may hold and that are not supported, by the function that would make them."""
_NEGATED = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
_MOST_TENSORS = 1 << 18
_CONTAINERS = 8
"""Tuples and dictionaries of a tensor: its storage, shape, stride, hooks and arguments, and of its place in a list."""
_MOST_DIMENSIONS = 64
_PAIR = 16
"""Bytes that a pair of a dictionary counts for."""


class ForeignCodeError(Exception):
    """The file names a function that weights have no use for."""


def inspect(content: memoryview, at: int = 0) -> Inspection:
    """Reads the pickle that begins at ``at``.

    Raises:
        ForeignCodeError: It names a function that weights have no use for.
        UnsupportedError: It holds a value that is not supported, though an intact file may hold it.
        Exception: Whatever a damaged pickle may lead to.
    """
    inspection = Inspection()
    machine = Machine(content, _Vocabulary(inspection), at)
    inspection.content = machine.run()
    inspection.end = machine.at
    return inspection


class _Vocabulary:
    """The values and functions that the names written by torch.save stand for."""

    def __init__(self, inspection: Inspection) -> None:
        self.inspection = inspection
        self.copied = 0

    def named(self, module: str, name: str) -> Any:
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        if (module, name) == ("torch.storage", "UntypedStorage"):
            return torch.uint8
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        if module == "torch" and name in _SCHEMES:
            return _SCHEMES[name]
        actions: dict[tuple[str, str], Callable[..., Any]] = {
            ("collections", "OrderedDict"): self._record,
            ("collections", "Counter"): self._record,
            ("torch", "Size"): _size,
            ("torch", "device"): _device,
            ("torch.serialization", "_get_layout"): lambda layout: layout,
            ("_codecs", "encode"): self._bytes,
            ("torch._utils", "_rebuild_tensor"): self._tensor,
            ("torch._utils", "_rebuild_tensor_v2"): self._tensor_v2,
            ("torch._utils", "_rebuild_tensor_v3"): self._tensor_v3,
            ("torch._utils", "_rebuild_parameter"): _parameter,
        }
        action = actions.get((module, name))
        if action is None and module == "torch._utils" and name in _UNUSUAL:
            action = partial(self._unusual, _UNUSUAL[name])
        unread = _UNREAD.get(("builtins" if module == "__builtin__" else module, name))  # Python 2's name for it
        if unread:
            raise UnsupportedError(unread)
        if action is None:
            raise ForeignCodeError(f"{module}.{name}")
        makes_tensor = module == "torch._utils" and action is not _parameter
        return Call(action, _CONTAINERS if makes_tensor else 0)

    def persistent(self, key: Any) -> Storage:
        kind, dtype, name, _, count, *view = key
        if kind != "storage" or not isinstance(dtype, torch.dtype) or type(name) is not str or view not in ([], [None]):
            raise UnpicklingError("a storage is announced in an unknown way")
        if not _are_counts(count):
            raise UnpicklingError("a storage has no proper size")
        storage = Storage(name, dtype, count)
        if self.inspection.storages.setdefault(name, storage) != storage:
            raise UnpicklingError(f"the storage {name[:40]!r} is announced twice, in two ways")
        return self.inspection.storages[name]

    def _record(self, *arguments: Any) -> dict[Any, Any]:
        """An ordered dictionary or a counter, new or of a dictionary or of pairs, as older Pythons write it."""
        [pairs] = arguments or [{}]
        if type(pairs) is dict:
            return pairs
        record: dict[Any, Any] = {}
        self._spend(_PAIR * len(pairs))
        for key, value in pairs:
            set_item(record, key, value)
        return record

    def _bytes(self, text: Any, encoding: Any) -> bytes:
        if type(text) is not str or encoding != "latin1":
            raise UnpicklingError("it encodes a text otherwise than torch.save encodes bytes")
        self._spend(len(text))
        return text.encode("latin1")

    def _spend(self, count: int) -> None:
        """Counts copied bytes, so that a forged file cannot have the same value copied over and over."""
        self.copied += count
        if self.copied > MOST_STEPS:
            raise UnpicklingError(f"it has more than {MOST_STEPS} bytes copied")

    def _tensor(self, storage: Storage, offset: int, size: tuple, stride: tuple) -> Tensor:
        return self._tensor_v2(storage, offset, size, stride)

    def _tensor_v2(self, storage: Storage, offset: int, size: tuple, stride: tuple, *rest: Any) -> Tensor:
        dtype = storage.dtype if isinstance(storage, Storage) else None
        return self._announce(storage, dtype, offset, size, stride, rest[2:])

    def _tensor_v3(self, storage: Storage, offset: int, size: tuple, stride: tuple, *rest: Any) -> Tensor:
        return self._announce(storage, rest[2], offset, size, stride, rest[3:])

    def _announce(
        self, storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, notes: tuple[Any, ...]
    ) -> Tensor:
        bits = notes[0] if notes and notes[0] is not None else {}
        if not (isinstance(storage, Storage) and isinstance(dtype, torch.dtype) and _are_counts(offset, *size, *stride)
                and len(size) == len(stride) <= _MOST_DIMENSIONS and is_addressable(size, dtype)):  # fmt: skip
            raise UnpicklingError("a tensor has no proper storage, offset, shape or stride")
        if len(notes) > 1 or type(bits) is not dict or not all(bit in BITS and on is True for bit, on in bits.items()):
            raise UnpicklingError("a tensor has notes that torch.save does not write")
        if str(dtype).startswith("torch.q"):
            return self._unusual("quantised")
        if "conj" in bits and not dtype.is_complex:
            raise UnpicklingError("numbers that are not complex are to be conjugated")
        if "neg" in bits and dtype not in _NEGATED:
            raise UnpicklingError(f"numbers of {dtype} are to be negated, which torch does not note for them")
        room = storage.size // dtype.itemsize
        items = math.prod(size)
        end = (
            offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) + 1
            if items
            else offset
        )
        problem = None if max(items, end) <= room else (
            f"must fit into its storage of {room} items; its shape {list(size)}, stride {list(stride)} and offset "
            f"{offset} ask for {max(items, end)}; the file is damaged or forged (or the tensor an expanded view: "
            "clone it before saving)"
        )  # fmt: skip
        place = (offset, tuple(size), tuple(stride))
        return self._keep(SavedTensor(torch.empty(0, dtype=dtype), storage, place, tuple(bits), problem))

    def _unusual(self, kind: str, *_: Any) -> Tensor:
        problem = f"must be a dense tensor with values; it is {kind}; make it dense and save again"
        return self._keep(SavedTensor(torch.empty(0), problem=problem))

    def _keep(self, saved: SavedTensor) -> Tensor:
        if len(self.inspection.tensors) >= _MOST_TENSORS:
            raise UnsupportedError(f"more than {_MOST_TENSORS} tensors")
        self.inspection.tensors.append(saved)
        return saved.tensor


def _parameter(data: Any, *_: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise UnpicklingError("a parameter is not made of a tensor")
    return data


def _size(lengths: Any) -> torch.Size:
    if not isinstance(lengths, tuple) or len(lengths) > _MOST_DIMENSIONS or not _are_counts(*lengths):
        raise UnpicklingError("a shape is not made of a few whole numbers")
    return torch.Size(lengths)


def _device(kind: Any, number: Any = None) -> torch.device:
    if type(kind) is not str or len(kind) > _MOST_DIMENSIONS or not (number is None or _are_counts(number)):
        raise UnpicklingError("a device is not named by a word and a number")
    return torch.device(kind) if number is None else torch.device(kind, number)


def _are_counts(*values: Any) -> bool:
    return all(type(value) is int and 0 <= value < 1 << 63 for value in values)
