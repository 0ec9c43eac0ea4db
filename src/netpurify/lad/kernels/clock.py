"""Where the processor's time goes."""

from time import thread_time

STEPS: tuple[str, ...] = ("least squares", "identify", "polish", "simplex", "prove")
"""Names of what is timed."""


class Clock:
    """Processor seconds of this thread, by step."""

    def __init__(self) -> None:
        """Start now."""
        self.spent = dict.fromkeys(STEPS, 0.0)
        self._last = thread_time()

    def book(self, step: str) -> None:
        """Book the time since the last call on ``step``."""
        now = thread_time()
        self.spent[step] += now - self._last
        self._last = now
