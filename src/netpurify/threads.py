"""One thread for BLAS, or for torch, while a block of code runs.

A sum that is split over threads is added in another order and so has other bits. Where panels, trials or layers are the
parallel work, one thread for each of them also saves the time that threads spend on waiting for each other.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import RLock, get_ident
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep every BLAS library that numpy and scipy have loaded to one thread.

    Most BLAS libraries know one number for the whole process, so other threads of Python are limited too. Contexts may
    overlap, in any number of threads and in any order: the first sets the limit, the last restores the number before.
    """
    with _BLAS.held():
        yield


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keep torch to one thread.

    torch keeps one number for each thread of Python and hands the number that was set last to new threads. A thread
    that first uses torch while another thread is limited finds a 1, which is not the number to be restored.
    """
    with _TORCH.held():
        yield


class _Number(Protocol):
    """A number of threads that can be read and set."""

    @property
    def per_thread(self) -> bool:
        """Whether each thread of Python has a number of its own."""
        ...

    def read(self) -> int:
        """The number now, as this thread sees it."""
        ...

    def write(self, count: int) -> None:
        """Set the number."""
        ...


class _CountedLimit:
    """Holds numbers of threads at 1 while any context is open, in any thread of Python."""

    def __init__(self, numbers: Callable[[], Sequence[_Number]]) -> None:
        self._numbers = numbers
        # Re-entrant: the garbage collector may close a forgotten generator, and so leave, while its thread enters.
        self._lock = RLock()
        self._depth: Counter[int] = Counter()  # open contexts of each thread
        self._before: dict[int, list[int]] = {}  # what each of these threads is to restore
        self._usual: list[int] = []  # the numbers when the first thread entered
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._in_child
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the limit for the length of a block."""
        thread = get_ident()
        with self._lock:
            if thread not in self._depth:
                self._before[thread] = self._unlimited()
                if not self._depth:
                    self._usual = self._before[thread]
            for number in self._numbers():
                number.write(1)
            self._depth[thread] += 1
        try:
            yield
        finally:
            with self._lock:
                self._leave(thread)

    def _leave(self, thread: int) -> None:
        self._depth[thread] -= 1
        if self._depth[thread]:
            return
        del self._depth[thread]
        for number, count in zip(self._numbers(), self._before.pop(thread), strict=True):
            if number.per_thread or not self._depth:
                number.write(count)

    def _unlimited(self) -> list[int]:
        """The numbers that this thread would have without the limits that others hold."""
        counts = [number.read() for number in self._numbers()]
        if not self._depth:
            return counts
        return [
            count if number.per_thread and count != 1 else usual
            for number, count, usual in zip(self._numbers(), counts, self._usual, strict=True)
        ]

    def _in_child(self) -> None:
        """Forget the threads that a fork did not take along: they will never leave."""
        thread = get_ident()
        if self._depth and thread not in self._depth:
            for number, count in zip(self._numbers(), self._unlimited(), strict=True):
                number.write(count)
        self._depth = Counter({thread: depth} if (depth := self._depth[thread]) else {})
        self._before = {key: counts for key, counts in self._before.items() if key == thread}
        self._lock.release()


@dataclass(frozen=True, slots=True)
class _BlasLibrary:
    """Threads of one BLAS library."""

    controller: Any

    @property
    def per_thread(self) -> bool:
        layer = getattr(self.controller, "threading_layer", None)
        return layer == "openmp" or "MKL_Set_Num_Threads_Local" in self.controller.check_symbols

    def read(self) -> int:
        return self.controller.num_threads

    def write(self, count: int) -> None:
        # From 3.8 on threadpoolctl lets only the first thread of Python set a number of the process.
        release = getattr(self.controller, "clear_controlling_thread", lambda _: None)
        release(True)
        self.controller.set_num_threads(count)
        release(True)


class _TorchNumber:
    """Threads of torch, which is imported only where somebody asks for its limit."""

    per_thread = True

    def read(self) -> int:
        import torch

        return torch.get_num_threads()

    def write(self, count: int) -> None:
        import torch

        torch.set_num_threads(count)


@cache
def _blas_libraries() -> list[_BlasLibrary]:
    # Finding the libraries takes a millisecond. They must be loaded by then; these two calls make sure that they are.
    np.linalg.qr(np.eye(2))
    scipy.linalg.qr(np.eye(2))
    return [_BlasLibrary(found) for found in ThreadpoolController().select(user_api="blas").lib_controllers]


_BLAS = _CountedLimit(_blas_libraries)
_TORCH = _CountedLimit(lambda: [_TorchNumber()])
