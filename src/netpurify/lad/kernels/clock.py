"""Where the processor's time goes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import thread_time


class Clock:
    """Processor seconds of this thread in each of the given steps; a step within another interrupts it."""

    def __init__(self, steps: Iterable[str]) -> None:
        """Start with no time in any of ``steps``."""
        self.seconds = dict.fromkeys(steps, 0.0)
        self._running: list[str] = []
        self._last = thread_time()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the time of a block for the step ``name``."""
        self._count()
        self._running.append(name)
        try:
            yield
        finally:
            self._count()
            self._running.pop()

    def _count(self) -> None:
        now = thread_time()
        if self._running:
            self.seconds[self._running[-1]] += now - self._last
        self._last = now
