"""Vertical axes: from where to where they go, and what their ticks say. Arithmetic only, nothing is drawn here."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.findings import Line, PlotPanel

_MARGIN = 0.05
"""Share of the axis that stays free beyond the least and the largest value, so that no marker is cut."""
_MOST_TICKS = 6
_LARGEST = 1e250
"""What is larger has diverged and is not drawn, as if it were infinite: the ends of its axis would overflow."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class AxisScale:
    """One vertical axis.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        floor: Where a logarithmic axis draws all values that are not above it; ``None`` if it has none.
        ticks: Where the ticks of a logarithmic axis are; a linear axis chooses its own.
        labels: What they say.
    """

    low: float
    high: float
    floor: float | None = None
    ticks: Sequence[float] = ()
    labels: Sequence[str] = ()


def scales_of(panels: Sequence[PlotPanel]) -> list[AxisScale]:
    """The scale of every panel; panels that measure the same share one, so that heights can be compared by eye."""
    alike: dict[tuple[object, ...], list[PlotPanel]] = {}
    for panel in panels:
        alike.setdefault(_kind(panel), []).append(panel)
    scales = {kind: _scale(members) for kind, members in alike.items()}
    return [scales[_kind(panel)] for panel in panels]


def heights(values: Sequence[float], scale: AxisScale) -> NDArray[np.float64]:
    """Where values are drawn: NaN, a gap, for what is not finite; at the floor for what is not above it."""
    result = np.asarray(values, np.float64)
    result = np.where(np.abs(result) <= _LARGEST, result, np.nan)
    return result if scale.floor is None else np.maximum(result, scale.floor)


def power_of_ten(value: float) -> str:
    """A positive number as a tick says it: 10⁻³, 5·10⁻⁹."""
    mantissa, exponent = f"{value:.0e}".split("e")
    power = {0: "1", 1: "10"}.get(int(exponent), f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}")
    if mantissa == "1":
        return power
    return mantissa if power == "1" else f"{mantissa}·{power}"


def _kind(panel: PlotPanel) -> tuple[object, ...]:
    return panel.y, panel.log, panel.floor if panel.log else None, panel.limits


def _scale(panels: Sequence[PlotPanel]) -> AxisScale:
    lines = [line for panel in panels for line in panel.lines]
    first = panels[0]
    return _logarithmic(first, lines) if first.log else _linear(first, lines)


def _linear(panel: PlotPanel, lines: Iterable[Line]) -> AxisScale:
    if panel.limits is not None:
        low, high = panel.limits
    else:
        values = _finite(lines) or [0.0, 1.0]
        low, high = min(values), max(values)
    # One value alone has no extent; its own size gives one, so that the axis neither collapses nor hides the value.
    extent = high - low or abs(high) or 1.0
    return AxisScale(low - _MARGIN * extent, high + _MARGIN * extent)


def _logarithmic(panel: PlotPanel, lines: Iterable[Line]) -> AxisScale:
    values = _finite(lines)
    if panel.limits is not None:
        bottom, top = panel.limits
        grounded = bottom <= panel.floor and min(values, default=math.inf) <= panel.floor
        bottom = max(bottom, panel.floor) if grounded else bottom
    else:
        grounded = min(values, default=math.inf) <= panel.floor
        above = [value for value in values if value > panel.floor] or [10.0 * panel.floor]
        bottom, top = _with_ticks(panel.floor if grounded else min(above), max(above))
        bottom = max(bottom, panel.floor)
        top = max(top, 10.0 * bottom)
    ticks = _decades(bottom, top)
    if grounded:
        # If the floor is not a power of ten, the next decade may be so close that its label would cover the floor's.
        ticks = [panel.floor, *(tick for tick in ticks if tick > 2.0 * panel.floor)]
    labels = [power_of_ten(tick) for tick in ticks]
    if grounded:
        labels[0] = f"≤{labels[0]}"
    factor = 10.0 ** (_MARGIN * (math.log10(top) - math.log10(bottom)))
    return AxisScale(bottom / factor, top * factor, panel.floor, ticks, labels)


def _with_ticks(bottom: float, top: float) -> tuple[float, float]:
    """The ends of an axis with two powers of ten at least: one from 0.5 to 0.9 would have no tick at all."""
    low, high = math.log10(bottom), math.log10(top)
    while math.floor(high + 1e-9) - math.ceil(low - 1e-9) < 1:
        below, above = math.ceil(low - 1e-9) - 1, math.floor(high + 1e-9) + 1
        if low - below < above - high:
            low = float(below)
        else:
            high = float(above)
    return 10.0**low, 10.0**high


def _decades(bottom: float, top: float) -> list[float]:
    """At most six powers of ten, evenly spaced from the first one on the axis.

    Not matplotlib's ``LogLocator``: it starts at multiples of its step, so that the lower end often has no tick, and
    its choice depends on the version of matplotlib, while the same panels must give the same bytes.
    """
    first = math.ceil(math.log10(bottom) - 1e-9)
    last = math.floor(math.log10(top) + 1e-9)
    step = max(1, math.ceil((last - first) / (_MOST_TICKS - 1)))
    return [10.0**exponent for exponent in range(first, last + 1, step)]


def _finite(lines: Iterable[Line]) -> list[float]:
    values = [value for line in lines for row in (line.median, line.low, line.high) for value in row]
    return [value for value in values if abs(value) <= _LARGEST]
