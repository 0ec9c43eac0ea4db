"""What a torch pickle would build, found out without building it: nothing is imported, called or allocated.

The unpickler here knows the few names that ``torch.save`` writes for weights and answers each with a record. Any other
name is a function that the file wants Python to call, and is refused. Every tensor's shape and stride is held against
its storage, because torch would otherwise take whatever memory a file asks for.
"""

import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

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
_INERT = {("torch", "Size"), ("torch", "device"), ("_codecs", "encode"), ("torch.serialization", "_get_layout")}
_DTYPES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
_OPCODES = (
    pickle.PROTO, pickle.STOP, pickle.REDUCE, pickle.BUILD, pickle.MARK, pickle.BINPERSID,
    pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.EMPTY_TUPLE, pickle.EMPTY_LIST, pickle.APPEND,
    pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS, pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE,
    pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1, pickle.BINFLOAT, pickle.BINUNICODE,
    pickle.SHORT_BINSTRING, pickle.BINPUT, pickle.LONG_BINPUT, pickle.BINGET, pickle.LONG_BINGET,
    # torch reads none of the newer ones; they are here so that a function is refused by its name
    pickle.STACK_GLOBAL, pickle.MEMOIZE, pickle.FRAME, pickle.SHORT_BINUNICODE,
)  # fmt: skip
_DEEPEST = 32
"""Levels below which nobody keeps tensors; a forged file may nest a million."""


class ForeignCodeError(Exception):
    """The file names a function that weights have no use for."""


class Stream(Protocol):
    """A file, as far as unpickling needs it; a read never takes more memory than there are bytes left."""

    def read(self, n: int = ..., /) -> bytes:
        """Up to ``n`` bytes."""
        ...

    def readline(self) -> bytes:
        """Bytes up to a line feed."""
        ...


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
class Claim:
    """A tensor that the file announces, and what is wrong with it, if anything."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a pickle holds.

    Attributes:
        content: Its outline: dictionaries, lists and tuples as they are, a ``Claim`` in place of each tensor.
        storages: By key.
        claims: Every tensor, also those beside the weights, since torch will build them all.
    """

    content: Any
    storages: dict[str, Storage] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)

    def problem(self) -> str | None:
        """What is wrong with the first tensor that something is wrong with, by its name."""
        bad = next((claim for claim in self.claims if claim.problem), None)
        if bad is None:
            return None
        names = {id(value): name for name, value in _leaves(self.content)}
        return f"{names.get(id(bad), 'a tensor')} {bad.problem}"


def inspect(stream: Stream) -> Inspection:
    """Reads one pickle from ``stream`` as an outline.

    Raises:
        ForeignCodeError: It names a function that weights have no use for.
        Exception: Whatever a damaged pickle may lead to.
    """
    unpickler = _Unpickler(stream)
    content = unpickler.load()
    return Inspection(content, unpickler.storages, unpickler.claims)


class Record(dict):
    """A dictionary whose keys are simple: hashing a tuple of a million nested tuples would end the process."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, str | int | float):
            raise pickle.UnpicklingError(f"the key of a dictionary is a {type(key).__name__}")
        super().__setitem__(key, value)

    def __setstate__(self, state: Any) -> None:
        """Leaves out the version notes that torch hangs on a state."""


class _Call:
    """Stands for a function that a file may name. It has no attributes that a file could replace."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[..., Any]) -> None:
        self.action = action

    def __call__(self, *arguments: Any) -> Any:
        return self.action(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a function is given a state")


def _push_record(unpickler: Any) -> None:
    unpickler.append(Record())


def _push_named(unpickler: Any) -> None:
    lines = unpickler.readline(), unpickler.readline()
    if not all(line.endswith(b"\n") for line in lines):
        raise pickle.UnpicklingError("it ends within a name")
    unpickler.append(unpickler.find_class(*(line[:-1].decode() for line in lines)))


class _Unpickler(pickle._Unpickler):
    """The standard library's own, in Python: the compiled one takes memory for whatever memo number a file names."""

    dispatch = {  # noqa: RUF012  # the base has it so
        **{code[0]: pickle._Unpickler.dispatch[code[0]] for code in _OPCODES},
        pickle.EMPTY_DICT[0]: _push_record,
        pickle.GLOBAL[0]: _push_named,
    }

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self.storages: dict[str, Storage] = {}
        self.claims: list[Claim] = []

    def find_class(self, module: str, name: str) -> Any:
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        if (module, name) == ("torch.storage", "UntypedStorage"):
            return torch.uint8
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        if module == "collections" and name in ("OrderedDict", "Counter"):
            return _Call(_record)
        if (module, name) in _INERT:
            return _Call(lambda *_: None)
        if module == "torch._utils":
            action = self._rebuilding(name)
            if action is not None:
                return _Call(action)
        raise ForeignCodeError(f"{module}.{name}")

    def _rebuilding(self, name: str) -> Callable[..., Claim] | None:
        if name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, *_: self._claim(storage, storage.dtype, offset, size, stride)
        if name == "_rebuild_tensor_v3":
            return lambda storage, offset, size, stride, grad, hooks, dtype, *_: self._claim(  # noqa: ARG005
                storage, dtype, offset, size, stride
            )
        if name == "_rebuild_parameter":
            return _parameter
        if name in _UNUSUAL:
            return lambda *_: self._unusual(_UNUSUAL[name])
        return None

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, key, _, count, *view = pid
        if kind != "storage" or not isinstance(dtype, torch.dtype) or type(key) is not str or view not in ([], [None]):
            raise pickle.UnpicklingError("a storage is announced in an unknown way")
        if type(count) is not int or count < 0:
            raise pickle.UnpicklingError("a storage has no proper size")
        storage = Storage(key, dtype, count)
        if self.storages.setdefault(key, storage) != storage:
            raise pickle.UnpicklingError(f"the storage {key} is announced twice, in two ways")
        return storage

    def _claim(self, storage: Storage, dtype: torch.dtype, offset: Any, size: Any, stride: Any) -> Claim:
        if not (isinstance(storage, Storage) and _are_counts(offset, *size, *stride) and len(size) == len(stride)):
            raise pickle.UnpicklingError("a tensor has no proper storage, offset, shape or stride")
        if str(dtype).startswith("torch.q"):
            return self._unusual("quantised")
        room = storage.size // dtype.itemsize
        items = math.prod(size)
        end = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) + 1 if items else 0
        if max(items, end) <= room:
            return self._keep(None)
        return self._keep(
            f"must fit into its storage of {room} items; its shape {list(size)}, stride {list(stride)} and offset "
            f"{offset} ask for {max(items, end)}; the file is damaged or forged (or the tensor an expanded view: "
            "clone it before saving)"
        )

    def _unusual(self, kind: str) -> Claim:
        return self._keep(f"must be a dense tensor with values; it is {kind}; make it dense and save again")

    def _keep(self, problem: str | None) -> Claim:
        claim = Claim(problem)
        self.claims.append(claim)
        return claim


def _parameter(data: Any, *_: Any) -> Claim:
    if not isinstance(data, Claim):
        raise pickle.UnpicklingError("a parameter is not made of a tensor")
    return data


def _record(*arguments: Any) -> Record:
    record = Record()
    for pairs in arguments:  # as older Pythons write an ordered dictionary
        for key, value in dict.items(pairs) if isinstance(pairs, dict) else pairs:
            record[key] = value
    return record


def _are_counts(*values: Any) -> bool:
    return len(values) <= 129 and all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def _leaves(content: Any) -> Iterator[tuple[str, Any]]:
    """Everything in an outline with its path, such as ``optimizer.0.step``; a file may well hold itself."""
    waiting: list[tuple[list[str], Any]] = [([], content)]
    seen: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        yield ".".join(path), value
        if id(value) in seen or len(path) == _DEEPEST:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting += [([*path, str(key)], part) for key, part in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [([*path, str(place)], part) for place, part in enumerate(value)]
