"""One BLAS thread while panels, not products, are the parallel work."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock, get_ident
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController

_lock = RLock()
"""Re-entrant: the garbage collector may close a forgotten generator, and so leave, while its thread enters."""
_holders: Counter[int] = Counter()
"""How many contexts each thread of Python is in now."""
_before: list[int] = []
"""The threads of each library when the first of them entered."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS to one thread: a product split over cores would add in another order, and so give other bits.

    The limit is the process's. Contexts may overlap, in any number of threads and in any order: the first sets the
    limit, the last restores what was there before.
    """
    global _before
    thread = get_ident()
    with _lock:
        if not _holders:
            _before = [library.num_threads for library in _libraries()]
        _write([1] * len(_before))
        _holders[thread] += 1
    try:
        yield
    finally:
        with _lock:
            _holders[thread] -= 1
            if not _holders[thread]:
                del _holders[thread]
                _write(_before, own=bool(_holders))


@cache
def _libraries() -> list[Any]:
    # Finding the libraries takes a millisecond; they must be loaded by then, and these two calls see to it.
    np.linalg.qr(np.eye(2))
    scipy.linalg.qr(np.eye(2))
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _write(threads: list[int], *, own: bool = False) -> None:
    """Set the threads of each library, or of those alone that keep a number of their ``own`` for each thread."""
    for library, count in zip(_libraries(), threads, strict=True):
        layer = getattr(library, "threading_layer", None)
        if own and layer != "openmp" and "MKL_Set_Num_Threads_Local" not in library.check_symbols:
            continue
        # From 3.8 on threadpoolctl lets the first thread of Python alone set what is the process's, and ignores others.
        release = getattr(library, "clear_controlling_thread", lambda _: None)
        release(True)
        library.set_num_threads(count)
        release(True)


def _in_child() -> None:
    """Forget the threads that a fork did not take along: they will never leave."""
    here = _holders[get_ident()]
    if _holders.total() and not here:
        _write(_before)
    _holders.clear()
    if here:
        _holders[get_ident()] = here
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)
