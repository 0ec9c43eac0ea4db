"""Engines: every result once, on one thread, errors that say what to do, and nobody left behind."""

import os
import sys
from contextlib import closing

import pytest
import torch

from netpurify import engine
from netpurify.errors import EngineError, InputError
from tests.toys.work import fatal, fussy, square, threads


def gone(pid: int) -> bool:
    """Whether there is no such process, not even one that nobody has waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def two_threads():
    """More than one thread, so that giving back what was there before is another thing than leaving one."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("name", "jobs"), [("inline", None), ("processes", 1)])
@pytest.mark.usefixtures("two_threads")
def test_one_worker_runs_here_on_one_thread_and_gives_the_threads_back(name, jobs):
    assert list(engine.run(threads, [0, 1], engine=name, jobs=jobs)) == [(0, (1, os.getpid())), (1, (1, os.getpid()))]
    assert torch.get_num_threads() == 2
    assert engine.workers(name, jobs=jobs) == 1


@pytest.mark.slow
def test_processes_give_every_result_once_on_one_thread_and_end():
    results = dict(engine.run(threads, range(7), jobs=2))
    assert sorted(results) == list(range(7))
    assert {count for count, _ in results.values()} == {1}
    pids = {pid for _, pid in results.values()}
    assert os.getpid() not in pids
    assert all(gone(pid) for pid in pids)


@pytest.mark.slow
def test_stopping_early_ends_the_processes():
    with closing(engine.run(square, range(10_000), jobs=2)) as results:
        position, (value, pid) = next(results)
    assert value == position**2
    assert gone(pid)


@pytest.mark.usefixtures("two_threads")
def test_what_work_raises_reaches_the_caller():
    with pytest.raises(LookupError, match="not three"):
        list(engine.run(fussy, range(5), engine="inline"))
    assert torch.get_num_threads() == 2


def test_without_semaphores_work_runs_here(monkeypatch):
    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("netpurify.engine.processes.ProcessPoolExecutor", refuse)
    assert list(engine.run(threads, [0, 1], jobs=2)) == [(0, (1, os.getpid())), (1, (1, os.getpid()))]
    assert engine.workers(jobs=2) == 1


@pytest.mark.slow
def test_what_work_raises_in_a_process_says_where():
    with pytest.raises(LookupError, match="not three") as caught:
        list(engine.run(fussy, range(5), jobs=2))
    assert 'raise LookupError("not three")' in caught.value.__notes__[0]


@pytest.mark.slow
def test_a_dead_process_is_an_error_with_a_remedy():
    with pytest.raises(EngineError, match=r"one of them was lost.*fewer jobs"):
        list(engine.run(fatal, range(5), jobs=2))


def test_all_cores_are_those_that_this_process_may_use():
    assert engine.workers() == len(os.sched_getaffinity(0))
    assert engine.workers(jobs=3) == 3


@pytest.mark.parametrize("name", ["", "threads", "dask://", "dask://host", "dask://:8786", "ray://", "ssh://host:22"])
def test_unknown_engines_are_refused_at_once(name):
    with pytest.raises(InputError, match="engine must be"):
        engine.run(square, [1], engine=name)


def test_jobs_below_one_are_refused():
    with pytest.raises(InputError, match="jobs must be at least 1"):
        engine.run(square, [1], jobs=0)


@pytest.mark.parametrize(("name", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_package_names_its_extra(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"pip install 'netpurify\[{name}\]'"):
        list(engine.run(square, [1], engine=f"{name}://127.0.0.1:8786"))


@pytest.mark.slow
def test_dask_alone_is_a_cluster_of_this_machine(monkeypatch):
    pytest.importorskip("distributed", reason="the extra netpurify[dask] is not installed")
    distributed = sys.modules["distributed"]
    opened = []

    class Watched(distributed.LocalCluster):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            opened.append(self)

    monkeypatch.setattr(distributed, "LocalCluster", Watched)
    found = dict(engine.run(threads, [0, 1], engine="dask", jobs=1))
    assert found[0] == found[1]
    threads_there, process = found[0]
    assert threads_there == 1
    assert process != os.getpid()
    (cluster,) = opened
    assert cluster.status.name == "closed"
    assert engine.workers("dask", jobs=1) == 1
    assert len(opened) == 1, "to be counted, no cluster is started"


def test_nothing_to_do_needs_no_cluster():
    assert list(engine.run(square, [], engine="dask://127.0.0.1:1")) == []


@pytest.mark.slow
def test_an_unreachable_scheduler_is_an_error_with_a_remedy(monkeypatch):
    monkeypatch.setattr("netpurify.engine.dask_cluster.TIMEOUT", 0.5)
    with pytest.raises(EngineError, match=r"tcp://127.0.0.1:1;.*dask scheduler"):
        list(engine.run(square, [1], engine="dask://127.0.0.1:1"))
