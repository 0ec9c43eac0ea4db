"""How much memory this process may still use."""

import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux writes how much a container may have, in its newer and its older form."""
_PLENTY = 1 << 62


def free_memory() -> int:
    """Bytes that this process may still take, as far as the system tells."""
    return min(_available(), *map(_number, _LIMITS))


def _available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        [kibibytes] = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        return 1024 * int(kibibytes)
    except (OSError, ValueError, IndexError):
        return _installed()


def _installed() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return _PLENTY


def _number(path: str) -> int:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # no such file, or no limit: "max"
        return _PLENTY
