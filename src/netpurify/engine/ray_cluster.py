"""The engines ``"ray"`` and ``"ray://host:port"``: a Ray cluster, by default that of this machine."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from netpurify.engine.pool import AHEAD, Pool, WorkOutcome, explain_for, extra, first_line
from netpurify.engine.worker import call
from netpurify.errors import EngineError


@contextmanager
def open_pool(engine: str, jobs: int | None) -> Iterator[Pool]:
    """The cluster that the caller is connected to, or else that of the address, left again at the end.

    Raises:
        InputError: Ray is not installed.
        EngineError: No cluster answers.
    """
    ray = extra("ray", "ray")
    connected_before = ray.is_initialized()
    if not connected_before:
        _connect(ray, engine)
    running: dict[Future[WorkOutcome], Any] = {}
    remote_call = ray.remote(call)  # one core each; Ray repeats the work of a worker that died

    def submit(work: Callable[[Any], Any], task: Any) -> Future[WorkOutcome]:
        reference = remote_call.remote(work, task)
        future = reference.future()
        running[future] = reference
        future.add_done_callback(running.pop)
        return future

    try:
        cores = int(ray.cluster_resources().get("CPU", 1))
        count = min(jobs or cores, cores)
        yield Pool(submit, workers=count, ahead=jobs or AHEAD * cores, explain=explain_for("Ray"))
    finally:
        for reference in list(running.values()):
            ray.cancel(reference)
        if not connected_before:
            ray.shutdown()


def _connect(ray: Any, engine: str) -> None:
    try:
        ray.init(address=None if engine == "ray" else engine, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as problem:
        raise EngineError(
            f"a Ray cluster must answer at {engine}; none did ({first_line(problem)}); start one with "
            "`ray start --head`, correct the address, or set RAY_AUTH_MODE=token if the cluster asks for its token"
        ) from problem
