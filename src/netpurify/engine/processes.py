"""The engine ``"processes"``: local processes that end with this one."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from loky import BrokenProcessPool, ProcessPoolExecutor

from netpurify.engine import inline
from netpurify.engine.pool import AHEAD, Pool, first_line, local_cores
from netpurify.engine.worker import call
from netpurify.errors import EngineError

_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""Libraries that read these when they are loaded do not start threads that ``call`` would leave idle."""


@contextmanager
def open_pool(engine: str, jobs: int | None) -> Iterator[Pool]:
    """Processes, started with the first piece of work and killed at the end.

    loky's, not those of the standard library: they need no guard in the script that starts them. On a system that
    cannot have them, the work runs in this process.
    """
    count = jobs or local_cores()
    try:
        executor = ProcessPoolExecutor(count, initializer=_follow, initargs=(os.getpid(),), env=_ONE_THREAD)
    except OSError:  # no semaphores, as where shared memory cannot be written
        with inline.open_pool(engine, jobs) as pool:
            yield pool
        return

    def explain(problem: Exception) -> Exception:
        if not isinstance(problem, BrokenProcessPool):
            return problem
        return EngineError(
            f"{count} worker processes were to run to the end; one of them was lost, most often for want of memory "
            f"({first_line(problem)}); results that came before are kept; run again, with fewer jobs"
        )

    try:
        yield Pool(partial(executor.submit, call), workers=count, ahead=AHEAD * count, explain=explain)
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _follow(parent: int) -> None:
    """Ties a worker to its parent: the parent answers Ctrl-C, and the worker ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    # A parent that was killed cannot end its workers. Windows keeps a dead parent's number, so there they stay idle.
    threading.Thread(target=watch, daemon=True).start()
