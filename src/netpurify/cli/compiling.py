"""The solver is compiled where it was never used before, which takes seconds: the command line says so meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from netpurify.cli.screen import Waiting


@contextmanager
def compiling(*, quiet: bool = False) -> Iterator[None]:
    """Within the block it is said when the solver is compiled; nothing is, if its compiled code is there already."""
    if quiet:
        yield
        return
    from netpurify.lad import compilation

    waiting = _waiting()
    with compilation(waiting.begin, waiting.end):
        yield


@cache
def _waiting() -> Waiting:
    """One for the whole command, which says it once."""
    return Waiting("compiling the solver, which is done once where its code can be kept; this takes some ten seconds")
