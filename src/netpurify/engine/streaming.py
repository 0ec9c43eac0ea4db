"""One loop for all engines: hand out work, and give each result as it comes."""

import importlib
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from itertools import islice
from typing import TypeVar

from netpurify.engine.names import check_engine
from netpurify.engine.pool import Pool, WorkOutcome, local_cores

Task = TypeVar("Task")
Result = TypeVar("Result")
Results = Generator[tuple[int, Result], None, None]

_MODULES = {"inline": "inline", "processes": "processes", "dask": "dask_cluster", "ray": "ray_cluster"}
"""The module of each engine, by the scheme of its address."""


def run(
    work: Callable[[Task], Result], tasks: Sequence[Task], *, engine: str = "processes", jobs: int | None = None
) -> Results[Result]:
    """Gives ``(position, work(tasks[position]))`` for every task, as results come, in any order.

    Stopping early, by closing the iterator or by an interrupt, ends local workers at once and withdraws what a cluster
    has not begun. If a worker of a cluster dies, the others do its work again; if a local one dies, the run ends.

    Args:
        work: A function of a module that every worker can import.
        tasks: Small, picklable arguments.
        engine: ``"inline"``: here, one after the other. ``"processes"``: on local processes. ``"dask"``: on a
            Dask cluster of this machine, which ends with the work. ``"dask://host:port"``: on the Dask cluster of that
            scheduler. ``"ray"`` or ``"ray://host:port"``: on the Ray cluster of this machine (or of RAY_ADDRESS, or
            a new one if there is none), or of that address.
        jobs: Most pieces of work at the same time; ``None`` for all cores that this process may use, or that the
            cluster has.

    Raises:
        InputError: There is no such engine, or its package is not installed.
        EngineError: The cluster cannot be reached or has no workers, or a worker died or could not run the work.
    """
    check_engine(engine, jobs)
    if engine == "processes":
        jobs = min(jobs or local_cores(), len(tasks))
        engine = "processes" if jobs > 1 else "inline"
    return _stream(work, tasks, engine, jobs)


def workers(engine: str = "processes", *, jobs: int | None = None) -> int:
    """How many pieces of work ``run`` would work on at the same time; asks the cluster, if it is one.

    Raises:
        InputError: There is no such engine, or its package is not installed.
        EngineError: The cluster cannot be reached or has no workers.
    """
    check_engine(engine, jobs)
    if engine == "dask":  # no cluster is started only to be counted
        return min(jobs or local_cores(), local_cores())
    with _open_pool(engine, jobs) as pool:
        return pool.workers


def _stream(work: Callable[[Task], Result], tasks: Sequence[Task], engine: str, jobs: int | None) -> Results[Result]:
    if not tasks:
        return
    with _open_pool(engine, jobs) as pool:
        tasks_left = iter(enumerate(tasks))
        positions: dict[Future[WorkOutcome], int] = {}
        while True:
            for position, task in islice(tasks_left, pool.ahead - len(positions)):
                positions[pool.submit(work, task)] = position
            if not positions:
                return
            for future in wait(positions, return_when=FIRST_COMPLETED).done:
                yield positions.pop(future), _outcome(future, pool).unwrap()


def _outcome(future: Future[WorkOutcome], pool: Pool) -> WorkOutcome:
    try:
        return future.result()
    except Exception as problem:
        raise pool.explain(problem) from problem


def _open_pool(engine: str, jobs: int | None) -> AbstractContextManager[Pool]:
    module = _MODULES[engine.partition("://")[0]]
    return importlib.import_module(f"netpurify.engine.{module}").open_pool(engine, jobs)
