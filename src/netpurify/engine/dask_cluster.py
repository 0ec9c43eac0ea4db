"""The engine ``"dask://host:port"``: a Dask cluster that is already there."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from netpurify.engine.pool import AHEAD, TIMEOUT, Pool, explain_for, extra, first_line
from netpurify.engine.worker import call
from netpurify.errors import EngineError


@contextmanager
def open_pool(engine: str, jobs: int | None) -> Iterator[Pool]:
    """The workers of the scheduler at an address; at the end, what has not begun is withdrawn.

    Raises:
        InputError: Dask is not installed.
        EngineError: No scheduler answers, or it has no workers.
    """
    distributed = extra("distributed", "dask")
    address = engine.replace("dask://", "tcp://", 1)
    try:
        client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except OSError as problem:  # time-outs included
        raise EngineError(
            f"a Dask scheduler must answer at {address}; none did within {TIMEOUT} s ({first_line(problem)}); start "
            "one with `dask scheduler` and its workers with `dask worker`, or correct the address"
        ) from problem
    with client:
        cores = _cores(client)
        executor = client.get_executor()
        try:
            # The scheduler takes all that it is given: only what is handed out at a time bounds the jobs.
            yield Pool(
                partial(executor.submit, call),
                workers=min(jobs or cores, cores),
                ahead=jobs or AHEAD * cores,
                explain=explain_for("Dask"),
            )
        finally:
            executor.shutdown(wait=False)


def _cores(client: Any) -> int:
    """Threads of all workers; waits for the first worker."""
    with suppress(TimeoutError):
        client.wait_for_workers(1, timeout=TIMEOUT)
    cores = sum(client.ncores().values())
    if not cores:
        raise EngineError(
            f"the Dask cluster must have workers; {client.scheduler.address} has none after {TIMEOUT} s; start some "
            "with `dask worker`"
        )
    return cores
