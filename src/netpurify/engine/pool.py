"""What every engine offers, an open pool of workers, and the errors that the engines share."""

import importlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from netpurify.errors import EngineError, InputError

AHEAD = 2
"""Pieces of work handed out for each worker: one to run and one in reserve; the rest of the list stays here."""
TIMEOUT = 10
"""Seconds to wait for a cluster to answer, and for its first worker."""


@dataclass(frozen=True, slots=True)
class WorkOutcome:
    """What a piece of work returned, or the exception that it raised.

    Exceptions of the work travel as values, so that an exception of a future is always one of the engine itself.
    """

    result: Any = None
    error: Exception | None = None

    def unwrap(self) -> Any:
        """The result; raises what the work raised."""
        if self.error is not None:
            raise self.error
        return self.result


@dataclass(frozen=True, slots=True)
class Pool:
    """An open engine.

    Attributes:
        submit: ``submit(work, task)`` hands out a piece of work and gives a future of its ``WorkOutcome``.
        workers: How many pieces of work run at the same time.
        ahead: How many pieces of work may be handed out and not finished.
        explain: Turns an exception of a future into the error that the user sees.
    """

    submit: Callable[[Callable[[Any], Any], Any], Future[WorkOutcome]]
    workers: int
    ahead: int
    explain: Callable[[Exception], Exception]


def local_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def extra(package: str, name: str) -> Any:
    """The package that the extra ``netpurify[name]`` installs.

    Raises:
        InputError: It is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as problem:
        raise InputError(
            f"the engine {name} needs the package {package}, which {sys.executable} does not have; "
            f"pip install 'netpurify[{name}]'"
        ) from problem


def explain_for(cluster: str) -> Callable[[Exception], EngineError]:
    """``Pool.explain`` of a cluster: its workers did not finish a piece of work."""

    def explain(problem: Exception) -> EngineError:
        reason = problem.__cause__ or problem
        return EngineError(
            f"{cluster}'s workers were to run the work to its end; they did not ({type(reason).__name__}: "
            f"{first_line(reason)}); results that came before are kept; see that every worker has netpurify and memory "
            "enough, and run again"
        )

    return explain


def first_line(problem: BaseException) -> str:
    """The first line of an error's message, or else the name of its class."""
    return next(iter(str(problem).splitlines()), "") or type(problem).__name__
