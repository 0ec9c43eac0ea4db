"""One torch thread while trials, not products, are the parallel work."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, local

import torch

_lock = RLock()
_here = local()
_inside = 0
_usual = 1
"""How many threads of Python are limited now, and what torch's number was when the first of them was."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread, so that bits do not depend on the number of cores; trials are the parallel work.

    At the paper's sizes a step takes a fraction of a millisecond, which threads would spend on waiting for each other.

    torch keeps one number for each thread of Python, and hands the number that was set last to new ones. So a thread
    that first meets torch while another is limited finds a 1 that it must not leave behind.
    """
    global _inside, _usual
    if getattr(_here, "limited", False):
        yield
        return
    with _lock:
        before = torch.get_num_threads()
        if not _inside:
            _usual = before
        elif before == 1:
            before = _usual
        torch.set_num_threads(1)
        _inside += 1
        _here.limited = True
    try:
        yield
    finally:
        with _lock:
            _here.limited = False
            _inside -= 1
            torch.set_num_threads(before)


def _in_child() -> None:
    """Forget the threads that a fork did not take along: they will never leave, and the number they set is theirs."""
    global _inside
    if _inside and not getattr(_here, "limited", False):
        torch.set_num_threads(torch.get_num_threads())
    _inside = int(getattr(_here, "limited", False))
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)
