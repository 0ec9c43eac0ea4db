"""Where work runs: in this process, on local processes, or on a Dask or Ray cluster that is already there.

    for position, result in engine.run(work, tasks, engine="dask://host:8786"):
        ...

Every engine gives the same results, to the bit, on the same kind of processor: a piece of work has one thread of BLAS
and torch wherever it runs, because a sum that is split over threads is added in another order.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from warnings import catch_warnings, filterwarnings

import torch
from joblib import Parallel, delayed, parallel_config, register_parallel_backend
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from netpurify import clusters
from netpurify.errors import EngineError
from netpurify.lad.blas import one_thread as one_blas_thread
from netpurify.threads import one_thread

Task = TypeVar("Task")
Result = TypeVar("Result")
Results = Generator[tuple[int, Result], None, None]

AHEAD = 2
"""Pieces of work handed out per worker: one to run and one in reserve; a long list stays here."""


def run(
    work: Callable[[Task], Result], tasks: Sequence[Task], *, engine: str = "processes", jobs: int | None = None
) -> Results[Result]:
    """Gives ``(position, work(tasks[position]))`` for every task, as results come, in any order.

    Stopping early, by closing the iterator or by an interrupt, ends local workers at once and withdraws what a cluster
    has not begun. A Dask worker that dies is made good by the others; a local one ends the run.

    Args:
        work: A function of a module that every worker can import.
        tasks: Small, picklable arguments.
        engine: ``"inline"``: here, one after the other. ``"processes"``: on local processes. ``"dask://host:port"``:
            on the Dask cluster of that scheduler. ``"ray"`` or ``"ray://host:port"``: on the Ray cluster of this
            machine (or of RAY_ADDRESS, or a new one if there is none), or of that address; results come in waves,
            since Ray's backend of joblib cannot stream.
        jobs: Most pieces of work at the same time; ``None`` for all cores that this process may use, or that the
            cluster has.

    Raises:
        InputError: There is no such engine, or its package is not installed.
        EngineError: The cluster cannot be reached or has no workers, or a worker died or could not run the work.
    """
    clusters.check_engine(engine, jobs)
    return _start(work, tasks, engine, jobs)


def workers(engine: str = "processes", *, jobs: int | None = None) -> int:
    """How many pieces of work ``run`` would work on at the same time; asks the cluster, if it is one.

    Raises:
        InputError: There is no such engine, or its package is not installed.
        EngineError: The cluster cannot be reached or has no workers.
    """
    clusters.check_engine(engine, jobs)
    if engine == "inline":
        return 1
    if engine == "processes":
        return jobs or _cores()
    if engine.startswith("dask://"):
        with clusters.dask_client(engine) as client:
            return _at_most(jobs, clusters.dask_cores(client))
    with clusters.ray_cluster(engine) as cores:
        return _at_most(jobs, cores)


def _start(work: Callable[[Task], Result], tasks: Sequence[Task], engine: str, jobs: int | None) -> Results[Result]:
    if engine == "inline" or not tasks:
        return _inline(work, tasks)
    if engine.startswith("dask://"):
        return _on_dask(work, tasks, engine, jobs)
    if engine.startswith("ray"):
        return _on_ray(work, tasks, engine, jobs)
    count = min(jobs or _cores(), len(tasks))
    return _on_processes(work, tasks, count) if count > 1 else _inline(work, tasks)


def _inline(work: Callable[[Task], Result], tasks: Iterable[Task]) -> Results[Result]:
    for position, task in enumerate(tasks):
        with one_blas_thread(), one_thread():
            result = work(task)
        yield position, result


def _on_processes(work: Callable[[Task], Result], tasks: Sequence[Task], count: int) -> Results[Result]:
    with parallel_config("loky", inner_max_num_threads=1, initializer=_follow, initargs=(os.getpid(),)):
        parallel = _parallel(count, AHEAD * count)
    try:
        yield from _stream(parallel, work, tasks)
    except BrokenProcessPool as problem:
        raise EngineError(
            f"{count} worker processes were to run to the end; one of them was lost, most often for want of memory "
            f"({clusters.first_line(problem)}); results that came before are kept; run again, with fewer jobs"
        ) from problem
    finally:
        # loky would keep its idle workers for five minutes, in case that there is more to do.
        get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _on_dask(work: Callable[[Task], Result], tasks: Sequence[Task], engine: str, jobs: int | None) -> Results[Result]:
    with clusters.dask_client(engine) as client:
        # The backend gives the scheduler all that it gets: what is handed out at a time is what bounds the jobs.
        ahead = jobs or AHEAD * clusters.dask_cores(client)
        register_parallel_backend("netpurify-dask", clusters.dask_backend())
        with parallel_config("netpurify-dask", client=client):
            parallel = _parallel(-1, ahead)
        yield from _stream(parallel, work, tasks)


def _on_ray(work: Callable[[Task], Result], tasks: Sequence[Task], engine: str, jobs: int | None) -> Results[Result]:
    with clusters.ray_cluster(engine) as cores:
        count = _at_most(jobs, cores)
        if count == 1:  # joblib would run it here as well, but on all threads
            yield from _inline(work, tasks)
            return
        wave = AHEAD * count
        with parallel_config("ray"), _parallel(count, wave, stream=False) as parallel:
            for start in range(0, len(tasks), wave):
                calls = _calls(work, tasks[start : start + wave], start)
                yield from _ray_wave(parallel, calls)


def _ray_wave(parallel: Parallel, calls: Iterable) -> list:
    from ray.exceptions import RayError  # pyright: ignore[reportMissingImports]  # an extra

    try:
        return list(parallel(calls))
    except RayError as problem:
        raise clusters.lost("Ray", problem) from problem


def _parallel(jobs: int, ahead: int, *, stream: bool = True) -> Parallel:
    # batch_size 1: a result that is ready does not wait for others. Any: joblib's types know no numbers here.
    options: Any = {"batch_size": 1, "pre_dispatch": ahead}
    return Parallel(n_jobs=jobs, return_as="generator_unordered" if stream else "list", **options)


def _calls(work: Callable, tasks: Iterable, start: int = 0) -> Iterator:
    call = delayed(_in_worker)
    return (call(work, position, task) for position, task in enumerate(tasks, start))


def _stream(parallel: Parallel, work: Callable, tasks: Sequence) -> Results[Any]:
    results: Any = parallel(_calls(work, tasks))  # a generator, by return_as
    try:
        for result in results:  # noqa: UP028  # "yield from" would close it before the filter below
            yield result
    finally:
        with catch_warnings():
            # A caller who stops early means it; that work in flight is dropped is said in run's docstring.
            filterwarnings("ignore", message=".*tasks", category=UserWarning)
            results.close()


def _in_worker(work: Callable[[Task], Result], position: int, task: Task) -> tuple[int, Result]:
    # For good, not for the time of the call: a worker may have several threads, and the first to finish would give the
    # others their cores back in mid-sum.
    threadpool_limits(1)
    torch.set_num_threads(1)
    return position, work(task)


def _follow(parent: int) -> None:
    """Ties a local worker to its parent: deaf to Ctrl-C, which the parent answers, and gone when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    # After kill -9 nobody would tell the worker to stop; Windows keeps a dead parent's number, so there it idles out.
    threading.Thread(target=watch, daemon=True).start()


def _at_most(jobs: int | None, cores: int) -> int:
    return min(jobs or cores, cores)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
