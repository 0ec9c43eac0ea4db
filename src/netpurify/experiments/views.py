"""Lines, panels and numbers that several figures take from their tables in the same way."""

from collections.abc import Iterable, Sequence
from typing import Any

from netpurify.experiments.experiment import Row
from netpurify.experiments.figure import Line, Panel, Verdict
from netpurify.experiments.table import Summary, select, summary

CHANCE = 1.0 / 3.0


def line(rows: Iterable[Row], label: str, *, x: str, y: str, baseline: bool = False, **wanted: Any) -> Line:
    """The column ``y`` over ``x``, in the rows that have the wanted values."""
    found = summary(select(rows, **wanted), [x], y)
    ordered: list[tuple[Any, Summary]] = sorted(((key[0], value) for key, value in found.items()), key=lambda it: it[0])
    return Line(
        label,
        [key for key, _ in ordered],
        [value.mean for _, value in ordered],
        [value.low for _, value in ordered],
        [value.high for _, value in ordered],
        baseline,
    )


def level(rows: Iterable[Row], y: str, **wanted: Any) -> Summary:
    """The column ``y`` over all rows that have the wanted values."""
    return summary(select(rows, **wanted), [], y).get((), Summary(0, *[float("nan")] * 5))


def graded(needed: Iterable[Summary], *, holds: bool, limits: bool, trials: int = 1) -> Verdict:
    """The verdict of a rule, or that it was not measured where any of the numbers it needs is over too few trials.

    Args:
        needed: The numbers that the rule needs.
        holds: Whether the claim holds by the rule.
        limits: Whether it holds with limits.
        trials: Over how many trials each number must be; 2 where the rule asks for the noise between trials.
    """
    if any(found.count < trials for found in needed):
        return Verdict.UNSEEN
    return Verdict.HOLDS if holds else Verdict.LIMITS if limits else Verdict.FAILS


def values(rows: Iterable[Row], column: str) -> list[Any]:
    """The different values of a column, in order."""
    return sorted({row[column] for row in rows if row.get(column) is not None})


def show(found: Summary, digits: int = 3) -> str:
    """A mean with its spread, such as ``.945 ± .012 (10)``."""
    if not found.count:
        return "-"
    spread = f" ± {_short(found.deviation, digits)}" if found.count > 1 else ""
    return f"{_short(found.mean, digits)}{spread} ({found.count})"


def listed(pairs: Iterable[tuple[Any, str]]) -> str:
    """Labels and texts as ``a: x, b: y``."""
    return ", ".join(f"{label}: {text}" for label, text in pairs)


def error_panel(title: str, y: str, lines: Sequence[Line], floor: float = 1e-16) -> Panel:
    """An error against the share of altered weights, on a logarithmic axis from ``floor`` on."""
    return Panel(title, "share of altered weights", y, lines, log=True, floor=floor)


def rate_panel(title: str, y: str, lines: Sequence[Line], x: str = "share of poisoned images") -> Panel:
    """A rate between 0 and 1."""
    return Panel(title, x, y, lines, limits=(0.0, 1.02))


def chance(at: Sequence[float]) -> Line:
    """The line of guessing among three classes."""
    flat = [CHANCE] * len(at)
    return Line("chance", at, flat, flat, flat, baseline=True)


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}" if 0.5 * 10**-digits <= abs(value) < 100.0 or not value else f"{value:.1e}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
