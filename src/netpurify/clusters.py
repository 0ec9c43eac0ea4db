"""Clusters that are already there: reaching them, counting their cores, and saying what is wrong with them."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from typing import Any

from netpurify.errors import EngineError, InputError

PATIENCE = 10
"""Seconds to wait for a cluster to answer, and for its first worker."""


def check_engine(engine: str, jobs: int | None) -> None:
    """Refuse what names no engine, before any work and without a library of one.

    Raises:
        InputError: There is no such engine, or the number of jobs has no meaning.
    """
    scheme, mark, address = engine.partition("://")
    host, _, port = address.rpartition(":")
    addressed = bool(mark and host and port.isdigit())
    known = engine in ("inline", "processes", "ray") or (scheme in ("dask", "ray") and addressed)
    if not known:
        raise InputError(
            f'engine must be "inline", "processes", "dask://host:port", "ray" or "ray://host:port"; got {engine!r}'
        )
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be at least 1, or left out for all cores; got {jobs}")


@contextmanager
def dask_client(engine: str) -> Iterator[Any]:
    """A client of the scheduler at ``dask://host:port``, closed afterwards, which withdraws what has not begun.

    Raises:
        InputError: Dask is not installed.
        EngineError: No scheduler answers.
    """
    try:
        import distributed  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError as problem:
        raise _missing(engine, "dask") from problem
    address = engine.replace("dask://", "tcp://", 1)
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except OSError as problem:  # time-outs included
        raise EngineError(
            f"a Dask scheduler must answer at {address}; none did within {PATIENCE} s ({first_line(problem)}); start "
            "one with `dask scheduler` and its workers with `dask worker`, or correct the address"
        ) from problem
    with client:
        yield client


def dask_cores(client: Any) -> int:
    """Threads of all workers of a Dask cluster; waits for the first one.

    Raises:
        EngineError: There are no workers.
    """
    with suppress(TimeoutError):
        client.wait_for_workers(1, timeout=PATIENCE)
    cores = sum(client.ncores().values())
    if not cores:
        raise EngineError(
            f"the Dask cluster must have workers; {client.scheduler.address} has none after {PATIENCE} s; start some "
            "with `dask worker`"
        )
    return cores


def dask_backend() -> type:
    """Joblib's backend for Dask, made to stop where it would wait for ever or not use the cluster at all."""
    from joblib._dask import DaskDistributedBackend  # pyright: ignore[reportMissingImports]

    class Backend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, super().effective_n_jobs(n_jobs))  # one core: joblib would run the work here, not there

        def submit(self, func: Callable, callback: Callable | None = None) -> Any:
            def told(done: Future) -> None:
                # joblib calls back for results alone: a task that no worker could finish would never be heard of.
                problem = done.exception()
                if problem is not None and callback is not None:
                    callback(lost("Dask", problem))

            future = super().submit(func, callback)
            future.add_done_callback(told)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, CancelledError):  # the scheduler is gone; what the work itself raised stays as it is
                raise lost("Dask", out)
            return super().retrieve_result_callback(out)

    return Backend


@contextmanager
def ray_cluster(engine: str) -> Iterator[int]:
    """Connects to Ray, unless the caller has, and gives the cores of the cluster; disconnects what it connected.

    Raises:
        InputError: Ray is not installed.
        EngineError: No cluster answers.
    """
    try:
        import ray  # pyright: ignore[reportMissingImports]  # an extra
        from ray.util.joblib import register_ray  # pyright: ignore[reportMissingImports]
    except ImportError as problem:
        raise _missing(engine, "ray") from problem
    register_ray()
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=None if engine == "ray" else engine, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as problem:
            raise EngineError(
                f"a Ray cluster must answer at {engine}; none did ({first_line(problem)}); start one with "
                "`ray start --head`, correct the address, or set RAY_AUTH_MODE=token if the cluster asks for its token"
            ) from problem
    try:
        yield int(ray.cluster_resources().get("CPU", 1))
    finally:
        if ours:
            ray.shutdown()


def _missing(engine: str, extra: str) -> InputError:
    return InputError(
        f"the engine {engine} needs the package {extra}; {sys.executable} has none; pip install 'netpurify[{extra}]'"
    )


def lost(cluster: str, problem: BaseException) -> EngineError:
    """The error that says that a cluster did not finish a piece of work."""
    reason = problem.__cause__ or problem
    return EngineError(
        f"{cluster}'s workers were to run the work to its end; they did not ({type(reason).__name__}: "
        f"{first_line(reason)}); results that came before are kept; see that every worker has netpurify and memory "
        "enough, and run again"
    )


def first_line(problem: BaseException) -> str:
    """The first line of what an error says, or else its class."""
    return next(iter(str(problem).splitlines()), "") or type(problem).__name__
