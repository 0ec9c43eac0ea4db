"""Numbers, counts and durations as texts: the same figure looks the same in every table and sentence."""

import math

_NONE = "\N{EN DASH}"


def count(value: int) -> str:
    """A whole number with separators."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """A count with its noun: "1 unit", "2,000 units"."""
    return f"{count(value)} {noun}" if value == 1 else f"{count(value)} {noun}s"


def number(value: float, digits: int = 3) -> str:
    """A number to a few digits; a dash for NaN."""
    return _NONE if math.isnan(value) else f"{value:.{digits}g}"


def exact(value: float) -> str:
    """A weight, to the digits that tell one float32 from the next; NaN and infinities by name."""
    return f"{value:.9g}"


def share(value: float) -> str:
    """A share as percent; a dash for NaN, and never "0 %" for what is not zero."""
    if math.isnan(value):
        return _NONE
    if value == 0.0:
        return "0 %"
    if value < 1e-4:
        return f"{100.0 * value:.1g} %"
    if value > 1.0:  # what grew a thousandfold has no use for digits
        return f"{100.0 * value:,.0f} %" if value < 1e4 else f"{100.0 * value:.1e} %"
    return f"{100.0 * value:.2f} %" if value < 0.1 else f"{100.0 * value:.1f} %"


def ranged(value: float, low: float, high: float) -> str:
    """A share in percent with its interval: "30.1 % (28.9 to 31.0)"; without it where nothing is open."""
    if low == high:
        return share(value)
    return f"{share(value)} ({100.0 * low:.1f} to {100.0 * high:.1f})"


def duration(seconds: float) -> str:
    """A duration in the unit that suits it: milliseconds, seconds, minutes or hours."""
    if seconds < 0.1:
        return f"{1000.0 * seconds:.0f} ms"
    if seconds < 60.0:
        return f"{seconds:.2f} s" if seconds < 10.0 else f"{seconds:.0f} s"
    minutes = seconds / 60.0
    return f"{round(minutes, 1):g} min" if minutes < 60.0 else f"{round(minutes / 60.0, 1):g} h"


def estimate(seconds: float) -> str:
    """An estimated duration, which is not known to the millisecond: "about 2.40 s", "under 0.1 s"."""
    return "under 0.1 s" if seconds < 0.1 else f"about {duration(seconds)}"


def clock(seconds: float) -> str:
    """A duration as hours, minutes and seconds, for what counts down."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def size(memory: int) -> str:
    """An amount of memory in bytes."""
    return f"{memory / 2**20:,.0f} MiB" if memory < 2**30 else f"{memory / 2**30:,.1f} GiB"
