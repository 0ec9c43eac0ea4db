"""How per-column loops are compiled, and where the compiled code is kept.

A first call compiles, which takes some seconds; later processes load the compiled code from disk: from the package's
own folder where that is writable, else from the user's cache folder or ``NUMBA_CACHE_DIR``. Where nothing of this is
writable, the code lives in a private temporary folder, which child processes share and which goes with this process.

To compile fast, these functions are written as plain loops over scalars: sorting, array expressions and the assignment
of whole rows would each bring seconds of numba's own library with them. ``benchmarks/first_call.py`` measures it.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numba
from numba.core import config, event

_compile: Any = numba.njit  # the stubs do not know these options
_settings: Any = config
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Without the interpreter lock, IEEE division, and no entry point for C."""


def kernel(function: Callable) -> Callable:
    """Compile ``function``, which Python code calls; the compiled code is kept on disk where that can be."""
    return _Kernel(function)


class _Kernel:
    """A function that is compiled when it is first called, or loaded from disk."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.dispatcher = self._cached()

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.dispatcher(*arguments)
        except MemoryError:
            raise
        except Exception:
            # Compiled code raises nothing else: it was neither loaded nor made, because its file on disk is cut, or
            # because there is no room for a new one.
            self.dispatcher = _compile(**_OPTIONS)(self.function)
            return self.dispatcher(*arguments)

    def _cached(self) -> Any:
        try:
            return _compile(**_OPTIONS, cache=True)(self.function)
        except RuntimeError:  # numba found no folder in which it may write
            if _use_temporary_folder():
                with suppress(RuntimeError):
                    return _compile(**_OPTIONS, cache=True)(self.function)
            return _compile(**_OPTIONS)(self.function)


def inner(function: Callable | None = None, **options: Any) -> Any:
    """Compile ``function``, which only compiled code calls; it is kept as a part of its callers."""
    compiled = _compile(**_OPTIONS, no_cpython_wrapper=True, **options)
    return compiled if function is None else compiled(function)


def _use_temporary_folder() -> bool:
    """Keep compiled code in a new folder that only this user can enter; whether one could be made."""
    try:
        folder = tempfile.mkdtemp(prefix="netpurify-compiled-")
    except OSError:
        return False
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    os.environ["NUMBA_CACHE_DIR"] = folder  # for child processes
    _settings.CACHE_DIR = folder  # for this one, which has read its environment
    return True


class _Compilation(event.Listener):
    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin, self._end, self._depth = begin, end, 0

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        self._depth += 1
        if self._depth == 1:
            self._begin()

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        self._depth -= 1
        if self._depth == 0:
            self._end()


@contextmanager
def compilation(begin: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Call ``begin`` whenever numba starts to compile, in any thread, and ``end`` when it is done."""
    with event.install_listener("numba:compile", _Compilation(begin, end)):
        yield
