"""Peak memory of a block of code, as the system counts it."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class MemoryMeter:
    """Megabytes that a block took at most, above those of the process when the block began."""

    def __init__(self) -> None:
        """Begin to count."""
        # Memory that was freed earlier goes back to the system first: otherwise the block would use it again and seem
        # to need nothing.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
        self._start = kilobytes("VmRSS")
        self.megabytes = 0.0
        if _RESET.exists():  # elsewhere the peak is that of the whole process so far
            _RESET.write_text("5")

    def stop(self) -> None:
        """Set ``megabytes``; NaN where the system does not count."""
        self.megabytes = max(0.0, kilobytes("VmHWM") - self._start) / 1024


@contextmanager
def measured_memory() -> Iterator[MemoryMeter]:
    """Measure a block of code: after it, ``megabytes`` of the meter is the peak."""
    meter = MemoryMeter()
    yield meter
    meter.stop()


def kilobytes(field: str) -> float:
    """Kilobytes of this process, by the system's name for them; NaN where the system does not count."""
    lines = _STATUS.read_text().splitlines() if _STATUS.exists() else []
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{field}:")), float("nan"))
