"""Panels and lines that several figures take from their tables in the same way."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from netpurify.findings import Line, PlotPanel, TableRow, TrialSummary, select, summarise

CHANCE = 1.0 / 3.0
"""Accuracy of guessing among three classes."""
FLOOR = 1e-6
"""Errors below it are rounding, from exact weights: the scale is kept for the others."""
COINCIDE = 0.3
"""Medians that differ by less than this share of the larger one cannot be told apart on an axis of several decades."""
ALIKE = 0.03
"""The same for rates, whose axis goes from 0 to 1."""
NAMES = {
    "contaminated": "before purification",
    "initial weights": "initial weights",
    "l2": "least squares (l2)",
    "l1, initial features": "l1, features of initial W",
}
"""Methods to compare with, in legends; the columns' words are the things that decide their looks."""
PLACES = {"training": "training images", "other": "images outside training"}
"""Where clean images come from, in titles."""
MAIN: dict[str, tuple[str | None, ...]] = {
    "variant": (None, "paper"),
    "trigger": (None, "first five pixels"),
    "origin": (None, "training", "other"),
}
"""What figures draw, by column; ``None`` is for rows without clean images, and for tables without the column."""


def main_line(rows: Iterable[TableRow]) -> list[TableRow]:
    """The rows that figures draw: the paper's settings and trigger, and clean images of the paper's two places.

    Rows of other variants, triggers and places are for findings to compare with.
    """
    return [row for row in rows if all(row.get(column) in drawn for column, drawn in MAIN.items())]


def line(
    rows: Iterable[TableRow], label: str, *, x: str, y: str, baseline: bool = False, thing: str = "", **wanted: Any
) -> Line:
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
        thing,
    )


def baselines(rows: Iterable[TableRow], methods: Sequence[str], at: str = "", **wanted: Any) -> list[Line]:
    """What a method is compared with, one line for each, named as in all figures; ``at`` says at which step."""
    lines = []
    rows = list(rows)
    for method in methods:
        thing = "contaminated" if method == "before" else method
        label = f"{NAMES[thing]}, {at}" if at else NAMES[thing]
        # Where nothing is altered, contaminated weights are the trained ones, without an error to draw.
        own = [row for row in rows if row.get("eps") or method != "contaminated"]
        lines.append(line(own, label, baseline=True, thing=thing, method=method, **wanted))
    return lines


def error_panel(title: str, y: str, lines: Sequence[Line], *, floor: float = FLOOR, note: str = "") -> PlotPanel:
    """An error against the share of altered weights, on a logarithmic axis from ``floor`` on."""
    return PlotPanel(title, "share of altered weights", y, lines, log=True, floor=floor, note=note)


def rate_panel(
    title: str, y: str, lines: Sequence[Line], x: str = "share of poisoned images", *, note: str = ""
) -> PlotPanel:
    """A rate between 0 and 1."""
    return PlotPanel(title, x, y, lines, limits=(0.0, 1.02), note=note)


def chance(at: Sequence[float]) -> Line:
    """The line of guessing among three classes."""
    flat = [CHANCE] * len(at)
    return Line("chance", at, flat, flat, flat, baseline=True, thing="chance")


def generic_line(at: Sequence[float], chances: Sequence[float]) -> Line:
    """Shares by the formula for a random design, which has no error bars."""
    return Line("formula, random design", at, chances, chances, chances, True, "generic")


def coincidence(lines: Sequence[Line], names: str, *, floor: float = FLOOR, most: float = COINCIDE) -> str:
    """A note if the medians of all lines coincide, with their largest difference; empty if they do not.

    Lines that part at less than a third of the positions coincide elsewhere, and the note says where they do not.

    Args:
        lines: Lines over the same positions.
        names: What the lines are, such as ``all p``.
        floor: Medians at or below it are equal.
        most: Largest difference at a position, as a share of the larger median.
    """
    if len(lines) < 2 or not lines[0].x or any(list(one.x) != list(lines[0].x) for one in lines):
        return ""
    medians = np.maximum([one.median for one in lines], floor)  # NaN stays, and coincides with nothing
    least, largest = medians.min(axis=0), medians.max(axis=0)
    gaps = np.divide(largest - least, largest, out=largest - least, where=largest > 0.0)
    close = gaps <= most
    if 3 * (~close).sum() >= close.size:
        return ""
    apart = [at for at, near in zip(lines[0].x, close, strict=True) if not near]
    elsewhere = f", not at {', '.join(f'{at:g}' for at in apart)}" if apart else ""
    return f"{names} coincide within {max(1, math.ceil(100.0 * gaps[close].max()))} %{elsewhere}"
