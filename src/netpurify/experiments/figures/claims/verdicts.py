"""Numbers of a table in words, and the verdict of a rule about them."""

from collections.abc import Iterable
from typing import Any

from netpurify.findings import TableRow, TrialSummary, Verdict, select, summarise


def level(rows: Iterable[TableRow], y: str, **wanted: Any) -> TrialSummary:
    """Statistics of the column ``y`` over all rows that have the wanted values."""
    return summarise(select(rows, **wanted), [], y).get((), TrialSummary(0, *[float("nan")] * 5))


def graded(needed: Iterable[TrialSummary], *, holds: bool, limits: bool, trials: int = 1) -> Verdict:
    """The verdict of a rule; ``UNSEEN`` if one of the numbers that the rule needs is from too few trials.

    Args:
        needed: The numbers that the rule needs.
        holds: Whether the claim holds by the rule.
        limits: Whether the claim holds with limits.
        trials: Smallest number of trials of each number; 2 if the rule compares with the noise between trials.
    """
    if any(summary.count < trials for summary in needed):
        return Verdict.UNSEEN
    return Verdict.HOLDS if holds else Verdict.LIMITS if limits else Verdict.FAILS


def values(rows: Iterable[TableRow], column: str) -> list[Any]:
    """The different values of a column, in order."""
    return sorted({row[column] for row in rows if row.get(column) is not None})


def show(summary: TrialSummary, digits: int = 3) -> str:
    """A mean with its spread, such as ``0.945 ± 0.012 (10)``, with the number of trials in brackets."""
    if not summary.count:
        return "-"
    # Trials that all give the same number differ by rounding alone, and a spread of 5.6e-17 would say otherwise.
    deviation = summary.deviation if summary.deviation > 1e-12 * abs(summary.mean) else 0.0
    spread = f" ± {short(deviation, digits)}" if summary.count > 1 else ""
    return f"{short(summary.mean, digits)}{spread} ({summary.count})"


def cell(summary: TrialSummary, digits: int = 3) -> str:
    """A mean with its spread for a cell of a table, such as ``0.945 ± 0.012``; the title says how many trials."""
    return show(summary, digits).rsplit(" (", 1)[0]


def trials_of(numbers: Iterable[TrialSummary]) -> str:
    """From how many trials numbers are, in words for the title of a table."""
    counts = {number.count for number in numbers}
    if not any(counts):
        return "no trial"
    fewest, most = min(counts), max(counts)
    many = f"{most}" if fewest == most else f"{fewest} to {most}"
    return f"mean ± standard deviation over {many} trials" if most > 1 else "one trial"


def short(value: float, digits: int = 3) -> str:
    """A number with so many digits after the point, or with an exponent where those would show nothing."""
    return f"{value:.{digits}f}" if 0.5 * 10**-digits <= abs(value) < 100.0 or not value else f"{value:.1e}"


def listed(pairs: Iterable[tuple[Any, str]]) -> str:
    """Labels and texts as ``a: x, b: y``."""
    return ", ".join(f"{label}: {text}" for label, text in pairs)
