"""Pickles as ``torch.save`` writes them, read by a machine of our own: a file can neither import nor call anything.

A pickle is a program for a machine with a stack. This machine knows the steps that ``torch.save`` writes for weights
and no others, takes a bounded number of them, and leaves it to a ``Vocabulary`` what the names in a file stand for.
"""

import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any, Protocol

MOST_STEPS = 8_000_000
"""A tensor takes about 35, so that 200,000 tensors fit, or a list of as many numbers; they take a few seconds."""
MOST_CONTAINERS = 1_000_000
"""Tuples, lists and dictionaries beside those that tensors are made of."""
_DEEPEST = 1000
"""Lists within lists and the like; Python itself cannot pickle more."""
_LONGEST_NAME = 1024
_PROTOCOLS = range(2, 6)
_LARGEST_KEY = 1 << 63
"""Larger whole numbers can be chosen so that their hashes collide, and a dictionary takes quadratic time."""


_UNREAD = {
    pickle.EMPTY_SET[0]: "set", pickle.FROZENSET[0]: "frozenset", pickle.BYTEARRAY8[0]: "bytearray",
    pickle.BINBYTES[0]: "bytes", pickle.SHORT_BINBYTES[0]: "bytes", pickle.BINBYTES8[0]: "bytes",
}  # fmt: skip
"""Steps of protocols 3 to 5 whose values an intact file may hold beside its weights, and that are not supported."""


class UnsupportedError(UnpicklingError):
    """The pickle holds a value that is not supported, though an intact file may hold it."""


@dataclass(frozen=True, slots=True)
class Call:
    """Stands for a function that a file may name.

    Attributes:
        action: Ours.
        containers: How many tuples and the like a file has to build for each call.
    """

    action: Callable[..., Any]
    containers: int = 0


class Vocabulary(Protocol):
    """What the names in a pickle stand for."""

    def named(self, module: str, name: str) -> Any:
        """A value, or a ``Call`` if the file may call it."""
        ...

    def persistent(self, key: Any) -> Any:
        """What stands outside of the pickle under ``key``."""
        ...


class Machine:
    """What is on the stack, behind marks and in the memo while a pickle is read."""

    def __init__(self, content: memoryview, vocabulary: Vocabulary, at: int = 0) -> None:
        """``at`` is where in ``content`` the pickle begins, and after ``run`` where it ends."""
        self.content = content
        self.vocabulary = vocabulary
        self.at = at
        self.containers = 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        """What the marks that are still open keep apart from ``stack``."""
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The value that the pickle stands for.

        Raises:
            UnsupportedError: It is too long, or holds a value that is not supported.
            UnpicklingError: It is damaged, or takes a step that torch.save does not.
            Exception: Whatever the vocabulary raises; IndexError or KeyError for a stack or memo that lacks a value.
        """
        for _ in range(MOST_STEPS):
            code = self.number(1)
            if code == pickle.STOP[0]:
                return self.stack.pop()
            step = _STEPS.get(code)
            if code in _UNREAD:
                raise UnsupportedError(f"a {_UNREAD[code]}")
            if step is None:
                raise UnpicklingError(f"the step {bytes([code])!r} of its pickle is none that torch.save takes")
            step(self)
        raise UnsupportedError(f"a pickle of more than {MOST_STEPS} steps")

    def take(self, count: int) -> memoryview:
        """The next bytes."""
        taken = self.content[self.at : self.at + count]
        if len(taken) < count:
            raise UnpicklingError("its pickle ends too early")
        self.at += count
        return taken

    def number(self, count: int, *, signed: bool = False) -> int:
        """The next bytes as a whole number."""
        if count == 1 and not signed and self.at < len(self.content):  # most steps, so without a slice
            self.at += 1
            return self.content[self.at - 1]
        return int.from_bytes(self.take(count), "little", signed=signed)

    def text(self, count: int) -> str:
        """The next bytes as text."""
        return str(self.take(count), "utf-8", "surrogatepass")

    def name(self) -> str:
        """The next bytes, up to a line feed, as text."""
        start = bytes(self.content[self.at : self.at + _LONGEST_NAME])
        length = start.find(b"\n")
        if length < 0:
            raise UnpicklingError(f"it ends within a name, or a name is longer than {_LONGEST_NAME} bytes")
        self.at += length + 1
        return start[:length].decode()

    def put(self, container: Any) -> None:
        """Pushes a new tuple, list or dictionary."""
        self.containers += 1
        if self.containers > MOST_CONTAINERS:
            raise UnsupportedError(f"more than {MOST_CONTAINERS} tuples, lists and dictionaries beside its tensors")
        self.stack.append(container)

    def above_mark(self) -> list[Any]:
        """What was pushed since the last mark."""
        values, self.stack = self.stack, self.below.pop()
        return values

    def popped(self, count: int) -> list[Any]:
        """The last ``count`` values, oldest first."""
        if len(self.stack) < count:
            raise UnpicklingError("its pickle takes a value from an empty stack")
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values


def set_item(record: Any, key: Any, value: Any) -> None:
    """``record[key] = value`` for keys that cost no more than others.

    Raises:
        UnsupportedError: ``key`` is neither text nor a number of 64 bits nor ``None``.
        UnpicklingError: ``record`` is no dictionary.
    """
    if type(record) is not dict:
        raise UnpicklingError(f"a {type(record).__name__} is used as a dictionary")
    # Hashing a tuple of a million nested tuples would end the process, and flat ones can be chosen to collide.
    if not isinstance(key, str | int | float | None):
        raise UnsupportedError(f"a dictionary with a {type(key).__name__} as a key")
    if isinstance(key, int) and not -_LARGEST_KEY <= key < _LARGEST_KEY:
        raise UnsupportedError("a dictionary with a number of more than 64 bits as a key")
    record[key] = value


def _mark(machine: Machine) -> None:
    if len(machine.below) >= _DEEPEST:
        raise UnpicklingError(f"its pickle is nested more than {_DEEPEST} deep")
    machine.below.append(machine.stack)
    machine.stack = []


def _append(machine: Machine, values: list[Any]) -> None:
    if type(machine.stack[-1]) is not list:
        raise UnpicklingError(f"a {type(machine.stack[-1]).__name__} is used as a list")
    machine.stack[-1].extend(values)


def _set(machine: Machine, values: list[Any]) -> None:
    if len(values) % 2:
        raise UnpicklingError("a dictionary is given a key without a value")
    for key, value in zip(values[::2], values[1::2], strict=True):
        set_item(machine.stack[-1], key, value)


def _call(machine: Machine) -> None:
    called, arguments = machine.popped(2)
    if type(called) is not Call or not isinstance(arguments, tuple):
        raise UnpicklingError("it calls what is no function")
    machine.containers -= called.containers
    machine.stack.append(called.action(*arguments))


def _state(machine: Machine) -> None:
    """Leaves out the version notes that torch hangs on a dictionary of weights."""
    owner, _ = machine.popped(2)
    if type(owner) is not dict:
        kind = "function" if type(owner) is Call else type(owner).__name__
        raise UnpicklingError(f"a {kind} is given a state")
    machine.stack.append(owner)


def _stacked_name(machine: Machine) -> None:
    module, name = machine.popped(2)
    if not isinstance(module, str) or not isinstance(name, str) or max(len(module), len(name)) > _LONGEST_NAME:
        raise UnpicklingError("a name is no text, or too long")
    machine.stack.append(machine.vocabulary.named(module, name))


def _protocol(machine: Machine) -> None:
    if machine.number(1) not in _PROTOCOLS:
        raise UnpicklingError("its pickle is of a protocol that torch.save does not write")


def _remember(machine: Machine, key: int) -> None:
    machine.memo[key] = machine.stack[-1]


_STEPS: dict[int, Callable[[Machine], Any]] = {
    pickle.PROTO[0]: _protocol,
    pickle.FRAME[0]: lambda m: m.take(8),
    pickle.MARK[0]: _mark,
    pickle.NONE[0]: lambda m: m.stack.append(None),
    pickle.NEWTRUE[0]: lambda m: m.stack.append(True),
    pickle.NEWFALSE[0]: lambda m: m.stack.append(False),
    pickle.BININT[0]: lambda m: m.stack.append(m.number(4, signed=True)),
    pickle.BININT1[0]: lambda m: m.stack.append(m.number(1)),
    pickle.BININT2[0]: lambda m: m.stack.append(m.number(2)),
    pickle.LONG1[0]: lambda m: m.stack.append(m.number(m.number(1), signed=True)),
    pickle.BINFLOAT[0]: lambda m: m.stack.append(struct.unpack(">d", m.take(8))[0]),
    pickle.BINUNICODE[0]: lambda m: m.stack.append(m.text(m.number(4))),
    pickle.SHORT_BINUNICODE[0]: lambda m: m.stack.append(m.text(m.number(1))),
    pickle.SHORT_BINSTRING[0]: lambda m: m.stack.append(m.text(m.number(1))),
    pickle.EMPTY_TUPLE[0]: lambda m: m.stack.append(()),
    pickle.EMPTY_LIST[0]: lambda m: m.put([]),
    pickle.EMPTY_DICT[0]: lambda m: m.put({}),
    pickle.TUPLE[0]: lambda m: m.put(tuple(m.above_mark())),
    pickle.TUPLE1[0]: lambda m: m.put(tuple(m.popped(1))),
    pickle.TUPLE2[0]: lambda m: m.put(tuple(m.popped(2))),
    pickle.TUPLE3[0]: lambda m: m.put(tuple(m.popped(3))),
    pickle.APPEND[0]: lambda m: _append(m, m.popped(1)),
    pickle.APPENDS[0]: lambda m: _append(m, m.above_mark()),
    pickle.SETITEM[0]: lambda m: _set(m, m.popped(2)),
    pickle.SETITEMS[0]: lambda m: _set(m, m.above_mark()),
    pickle.BINPUT[0]: lambda m: _remember(m, m.number(1)),
    pickle.LONG_BINPUT[0]: lambda m: _remember(m, m.number(4)),
    pickle.MEMOIZE[0]: lambda m: _remember(m, len(m.memo)),
    pickle.BINGET[0]: lambda m: m.stack.append(m.memo[m.number(1)]),
    pickle.LONG_BINGET[0]: lambda m: m.stack.append(m.memo[m.number(4)]),
    pickle.GLOBAL[0]: lambda m: m.stack.append(m.vocabulary.named(m.name(), m.name())),
    pickle.STACK_GLOBAL[0]: _stacked_name,
    pickle.BINPERSID[0]: lambda m: m.stack.append(m.vocabulary.persistent(m.stack.pop())),
    pickle.REDUCE[0]: _call,
    pickle.BUILD[0]: _state,
}
