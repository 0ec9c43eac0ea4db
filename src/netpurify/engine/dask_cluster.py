"""The engines ``"dask"``, a cluster of this machine alone, and ``"dask://host:port"``, one that is already there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from netpurify.engine.pool import AHEAD, TIMEOUT, Pool, explain_for, extra, first_line, local_cores
from netpurify.engine.worker import call
from netpurify.errors import EngineError


@contextmanager
def open_pool(engine: str, jobs: int | None) -> Iterator[Pool]:
    """The workers of a new cluster, or of the scheduler at an address; at the end, what has not begun is withdrawn.

    Raises:
        InputError: Dask is not installed.
        EngineError: No scheduler answers, or it has no workers.
    """
    distributed = extra("distributed", "dask")
    with _local(distributed, jobs) if engine == "dask" else _connected(distributed, engine) as client:
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


@contextmanager
def _local(distributed: Any, jobs: int | None) -> Iterator[Any]:
    """A cluster of processes of this machine, one thread each, which ends with the work."""
    options = {"n_workers": min(jobs or local_cores(), local_cores()), "threads_per_worker": 1}
    quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(host="127.0.0.1", **options, **quiet) as cluster,
        distributed.Client(cluster, timeout=TIMEOUT, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _connected(distributed: Any, engine: str) -> Iterator[Any]:
    address = engine.replace("dask://", "tcp://", 1)
    try:
        client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except OSError as problem:  # time-outs included
        raise EngineError(
            f"a Dask scheduler must answer at {address}; none did within {TIMEOUT} s ({first_line(problem)}); start "
            "one with `dask scheduler` and its workers with `dask worker`, or correct the address"
        ) from problem
    with client:
        yield client


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
