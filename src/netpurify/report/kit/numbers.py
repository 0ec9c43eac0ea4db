"""Numbers as texts: the same figure looks the same in every table and sentence."""

import math

_NONE = "\N{EN DASH}"


def count(value: int) -> str:
    """A whole number with separators."""
    return f"{value:,}"


def number(value: float, digits: int = 3) -> str:
    """A number to a few digits; a dash where there is none."""
    return _NONE if math.isnan(value) else f"{value:.{digits}g}"


def exact(value: float) -> str:
    """A weight, to the digits that tell one float32 from the next; NaN and infinities by name."""
    return f"{value:.9g}"


def share(value: float) -> str:
    """A share as percent; a dash where there is none, and never "0 %" for what is not zero."""
    if math.isnan(value):
        return _NONE
    if value == 0.0:
        return "0 %"
    if value < 1e-4:
        return f"{100.0 * value:.1g} %"
    return f"{100.0 * value:.2f} %" if value < 0.1 else f"{100.0 * value:.1f} %"


def seconds(value: float) -> str:
    """A duration."""
    if value < 0.1:
        return f"{1000.0 * value:.0f} ms"
    if value < 60.0:
        return f"{value:.2f} s" if value < 10.0 else f"{value:.0f} s"
    minutes = value / 60.0
    return f"{minutes:.1f} min" if minutes < 60.0 else f"{minutes / 60.0:.1f} h"


def size(value: int) -> str:
    """An amount of memory."""
    return f"{value / 2**20:,.0f} MiB" if value < 2**30 else f"{value / 2**30:,.1f} GiB"


def plural(value: int, name: str) -> str:
    """A count with its noun: "1 unit", "2,000 units"."""
    return f"{count(value)} {name}" if value == 1 else f"{count(value)} {name}s"
