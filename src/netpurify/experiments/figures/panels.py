"""Panels and lines that several figures take from their tables in the same way."""

from collections.abc import Iterable, Sequence
from typing import Any

from netpurify.findings import Line, PlotPanel, TableRow, TrialSummary, select, summarise

CHANCE = 1.0 / 3.0
"""Accuracy of guessing among three classes."""


def line(rows: Iterable[TableRow], label: str, *, x: str, y: str, baseline: bool = False, **wanted: Any) -> Line:
    """The column ``y`` over ``x``, in the rows that have the wanted values."""
    summaries = summarise(select(rows, **wanted), [x], y)
    ordered: list[tuple[Any, TrialSummary]] = sorted(
        ((key[0], value) for key, value in summaries.items()), key=lambda it: it[0]
    )
    return Line(
        label,
        [key for key, _ in ordered],
        [value.median for _, value in ordered],
        [value.low for _, value in ordered],
        [value.high for _, value in ordered],
        baseline,
    )


def error_panel(title: str, y: str, lines: Sequence[Line], floor: float = 1e-16) -> PlotPanel:
    """An error against the share of altered weights, on a logarithmic axis from ``floor`` on."""
    return PlotPanel(title, "share of altered weights", y, lines, log=True, floor=floor)


def rate_panel(title: str, y: str, lines: Sequence[Line], x: str = "share of poisoned images") -> PlotPanel:
    """A rate between 0 and 1."""
    return PlotPanel(title, x, y, lines, limits=(0.0, 1.02))


def chance(at: Sequence[float]) -> Line:
    """The line of guessing among three classes."""
    flat = [CHANCE] * len(at)
    return Line("chance", at, flat, flat, flat, baseline=True)
