"""The engine ``"inline"``: this process, one piece of work after the other."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from netpurify.engine.pool import Pool, WorkOutcome
from netpurify.threads import one_blas_thread, one_torch_thread


@contextmanager
def open_pool(engine: str, jobs: int | None) -> Iterator[Pool]:  # noqa: ARG001  # the same for every engine
    """This process as a pool of one worker."""
    yield Pool(_submit, workers=1, ahead=1, explain=lambda problem: problem)


def _submit(work: Callable[[Any], Any], task: Any) -> Future[WorkOutcome]:
    """Does the work at once, and gives a future that is done."""
    future: Future[WorkOutcome] = Future()
    try:
        with one_blas_thread(), one_torch_thread():
            future.set_result(WorkOutcome(work(task)))
    except Exception as error:
        future.set_result(WorkOutcome(error=error))
    return future
