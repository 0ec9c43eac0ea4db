"""One torch thread while a network of the paper is trained or purified."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread, so that bits do not depend on the number of cores; trials are the parallel work.

    At the paper's sizes a step takes a fraction of a millisecond, which threads would spend on waiting for each other.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
