"""Numbers of a table in words, and the verdict of a rule about them."""

from collections.abc import Iterable
from typing import Any

from netpurify.findings import TableRow, TrialSummary, Verdict, select, summarise


def level(rows: Iterable[TableRow], y: str, **wanted: Any) -> TrialSummary:
    """The column ``y`` over all rows that have the wanted values."""
    return summarise(select(rows, **wanted), [], y).get((), TrialSummary(0, *[float("nan")] * 5))


def graded(needed: Iterable[TrialSummary], *, holds: bool, limits: bool, trials: int = 1) -> Verdict:
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


def values(rows: Iterable[TableRow], column: str) -> list[Any]:
    """The different values of a column, in order."""
    return sorted({row[column] for row in rows if row.get(column) is not None})


def show(found: TrialSummary, digits: int = 3) -> str:
    """A mean with its spread, such as ``.945 ± .012 (10)``."""
    if not found.count:
        return "-"
    spread = f" ± {_short(found.deviation, digits)}" if found.count > 1 else ""
    return f"{_short(found.mean, digits)}{spread} ({found.count})"


def listed(pairs: Iterable[tuple[Any, str]]) -> str:
    """Labels and texts as ``a: x, b: y``."""
    return ", ".join(f"{label}: {text}" for label, text in pairs)


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}" if 0.5 * 10**-digits <= abs(value) < 100.0 or not value else f"{value:.1e}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
