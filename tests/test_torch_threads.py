"""torch keeps to one thread while a network of the paper is worked on, and is then as it was before."""

import os
from threading import Event, Thread

import pytest
import torch

from netpurify.threads import one_torch_thread


def in_a_new_thread() -> int:
    """The number of threads that torch hands to a thread that never met it."""
    found = []
    worker = Thread(target=lambda: found.append(torch.get_num_threads()))
    worker.start()
    worker.join()
    return found[0]


@pytest.fixture
def three():
    """Three threads for torch, on machines with one core too."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    assert in_a_new_thread() == 3
    yield
    found = torch.get_num_threads(), in_a_new_thread()
    torch.set_num_threads(before)
    assert found == (3, 3), "the process is left as it was found"


class Inside(Thread):
    """A thread that stays limited until told to leave, and then says what it has."""

    def __init__(self):
        super().__init__()
        self.inside, self.leave, self.within, self.after = Event(), Event(), 0, 0

    def run(self):
        with one_torch_thread():
            self.inside.set()
            self.leave.wait(10)
            self.within = torch.get_num_threads()
        self.after = torch.get_num_threads()

    def enter(self) -> "Inside":
        self.start()
        assert self.inside.wait(10)
        return self

    def end(self) -> None:
        self.leave.set()
        self.join()
        assert (self.within, self.after) == (1, 3)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_threads_that_overlap_leave_what_the_first_of_them_found(order):
    workers = [Inside().enter() for _ in range(3)]
    for place in order:
        workers[place].end()
    assert in_a_new_thread() == 3


@pytest.mark.usefixtures("three")
def test_nested_and_failing_contexts_leave_what_they_found():
    with one_torch_thread():
        with pytest.raises(KeyError), one_torch_thread():
            raise KeyError
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forks beside threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_child_does_not_inherit_the_limit_of_threads_that_the_fork_left_behind():
    worker = Inside().enter()
    child = os.fork()
    if child == 0:
        os._exit(0 if (torch.get_num_threads(), in_a_new_thread()) == (3, 3) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    worker.end()
