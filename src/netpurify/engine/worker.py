"""What runs in a worker of any engine but ``"inline"``."""

import traceback
from collections.abc import Callable
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from netpurify.engine.pool import WorkOutcome


def call(work: Callable[[Any], Any], task: Any) -> WorkOutcome:
    """Do a piece of work on one thread of BLAS and torch."""
    # For good, not for the time of the call: a worker may run several pieces of work in threads of its own, and the
    # first to finish would give the others their cores back in the middle of a sum.
    threadpool_limits(1)
    torch.set_num_threads(1)
    try:
        return WorkOutcome(work(task))
    except Exception as error:
        error.add_note(f"It was raised in a worker:\n{traceback.format_exc()}")
        return WorkOutcome(error=error)
