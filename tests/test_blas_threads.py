"""BLAS keeps to one thread while a solver works, whoever else does, and is then as it was before."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from netpurify import lad
from netpurify.threads import one_blas_thread
from tests.lad.problems import planted


@pytest.fixture
def threads():
    """Reads the threads of BLAS, which are two before and after each test, on machines with one core too."""
    np.linalg.qr(np.eye(2))
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [library.num_threads for library in libraries]
    for library in libraries:
        library.set_num_threads(2)

    def read() -> set[int]:
        return {library.num_threads for library in libraries}

    assert read() == {2}
    yield read
    found = read()
    for library, count in zip(libraries, before, strict=True):
        library.set_num_threads(count)
    assert found == {2}, "the process is left as it was found"


def overlap(first: Event, second: Event, leave: Event):
    """Enter, say so, and stay until told to leave, or until another has entered."""
    first.wait(10)
    with one_blas_thread():
        second.set()
        leave.wait(10)


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_limit_holds_until_the_last_has_left(threads, first_to_leave):
    start, inside, leave = Event(), [Event(), Event()], [Event(), Event()]
    start.set()
    workers = [
        Thread(target=overlap, args=(start, inside[0], leave[0])),
        Thread(target=overlap, args=(inside[0], inside[1], leave[1])),
    ]
    for worker in workers:
        worker.start()
    assert inside[1].wait(10)
    assert threads() == {1}
    leave[first_to_leave].set()
    workers[first_to_leave].join()
    assert threads() == {1}, "the other is still inside"
    leave[1 - first_to_leave].set()
    workers[1 - first_to_leave].join()
    assert threads() == {2}


def test_nested_and_failing_contexts_leave_what_they_found(threads):
    with one_blas_thread():
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError(*threads())
        assert threads() == {1}
    assert threads() == {2}


@pytest.mark.slow
def test_generator_that_is_dropped_lifts_its_limit(threads):
    def hold():
        with one_blas_thread():
            yield

    held = hold()
    next(held)
    assert threads() == {1}
    del held
    gc.collect()
    assert threads() == {2}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forks beside threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_child_does_not_wait_for_threads_that_the_fork_left_behind(threads):
    inside, leave, start = Event(), Event(), Event()
    start.set()
    worker = Thread(target=overlap, args=(start, inside, leave))
    worker.start()
    assert inside.wait(10)
    child = os.fork()
    if child == 0:
        right = threads() == {2}
        with one_blas_thread():
            right &= threads() == {1}
        os._exit(0 if right and threads() == {2} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert threads() == {1}, "the parent's own limit stands"
    leave.set()
    worker.join()


def test_calls_from_many_threads_have_the_bits_of_one_call(threads):
    problem = planted(120, 30, 40, 0.3, seed=500)
    problem.A.setflags(write=False)
    expected = lad.solve(problem.A, problem.B, threads=1)
    ready = Barrier(8)

    def call(number: int) -> lad.Solution:
        ready.wait(60)
        return lad.solve(problem.A, problem.B, threads=1 + number % 2)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(call, range(8)))
    assert threads() == {2}
    for answer in answers:
        for name in ("coefficients", "residual", "dual", "status", "noise_floor"):
            assert getattr(answer, name).tobytes() == getattr(expected, name).tobytes(), name


def test_progress_runs_with_the_threads_of_the_caller(threads):
    problem = planted(40, 5, 600, 0.1, seed=501)
    seen = []
    lad.solve(problem.A, problem.B, threads=1, progress=lambda *_: seen.append(threads()))
    assert len(seen) > 1
    assert all(found == {2} for found in seen)


@pytest.mark.parametrize("count", [1, 2])
def test_call_that_ends_in_an_exception_lifts_its_limit(threads, count):
    problem = planted(40, 5, 600, 0.1, seed=502)

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lad.solve(problem.A, problem.B, threads=count, progress=stop)
    assert threads() == {2}


def test_stream_that_is_dropped_leaves_no_limit(threads):
    problem = planted(40, 5, 60, 0.1, seed=503)
    stream = lad.stream(problem.A, iter([problem.B, problem.B]), threads=2)
    next(stream)
    assert threads() == {2}, "between blocks the caller has all threads"
    stream.close()
    assert threads() == {2}
