"""Comparisons within trials: every cell of a grid has the same seeds, and every method gets the same network."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from netpurify.experiments.figures.claims.rules import STEP
from netpurify.experiments.figures.claims.verdicts import level, listed, show
from netpurify.findings import Scalar, TableRow, TrialSummary, group, select, summarise

FEATURES = {"l1": "features of the purified W", "l1, initial features": "features of the initial W"}
"""The features on which beta is fitted, by method. The paper leaves them open, so a claim should hold with both."""
LAYERS = ("W", "beta")
_RESULTS = {"method", "certified", "W_error", "W_exact", "beta_error", "beta_exact"}
"""Columns in which the rows of one purified network differ."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A number over the steps of a grid, such as growing p.

    Attributes:
        labels: Names of the steps.
        levels: Statistics of the number over trials, at each step.
        change: Statistics of the difference between the last step and the first, within each trial.
        least: Smallest change that counts.
    """

    labels: Sequence[str]
    levels: Sequence[TrialSummary]
    change: TrialSummary
    least: float = 0.0

    @property
    def rises(self) -> bool:
        """Whether the last step is clearly above the first."""
        return above(self.change) and self.change.mean >= self.least

    @property
    def falls(self) -> bool:
        """Whether the last step is clearly below the first."""
        return below(self.change) and self.change.mean <= -self.least

    @property
    def needed(self) -> list[TrialSummary]:
        """The numbers without which there is no verdict."""
        return [*self.levels, self.change]

    def __str__(self) -> str:
        """Every step, and the change over all of them."""
        steps = listed((label, show(number)) for label, number in zip(self.labels, self.levels, strict=True))
        return f"{steps} (from first to last {show(self.change)})"

    @property
    def ends(self) -> str:
        """The first and the last step, and the change."""
        return f"{show(self.levels[0])} -> {show(self.levels[-1])} (change {show(self.change)})"


def relative(rows: Iterable[TableRow]) -> list[TableRow]:
    """The rows with errors as shares of others in the same trial.

    ``W_ratio`` and ``beta_ratio`` are shares of the errors of the initial weights, ``W_left`` and ``beta_left`` of
    those of the contaminated weights.
    """
    rows = list(rows)
    found = rows
    for method, suffix in (("initial weights", "ratio"), ("contaminated", "left")):
        others = {_network(row): row for row in rows if row.get("method") == method}
        found = [
            row | _shares(own, others.get(_network(own), {}), suffix) for row, own in zip(found, rows, strict=True)
        ]
    return found


def of_regime(rows: Iterable[TableRow], regime: str) -> list[TableRow]:
    """The rows of one regime, and those of failed trials, which name no regime but make their settings unmeasured."""
    return [row for row in rows if row.get("regime") in (regime, None)]


def limits(
    rows: Iterable[TableRow],
    column: str,
    *,
    least: float | None = None,
    most: float | None = None,
    each: Sequence[str] = (),
    **wanted: Any,
) -> list[TableRow]:
    """For every trial, as ``limit``, the largest eps up to which a column stays within the bounds; 0 if it never does.

    With several cells in the rows, ``each`` names the settings in which they differ, and each cell has its own limit.
    """
    measured = [row for row in select(rows, **wanted) if row.get(column) is not None]

    def kept(value: float) -> bool:
        return (least is None or value >= least) and (most is None or value <= most)

    return [
        {"trial": cell[0], "limit": _reach(members, column, kept)}
        for cell, members in group(measured, ["trial", *each]).items()
    ]


def trend(steps: Iterable[tuple[str, Sequence[TableRow]]], column: str, *, least: float = 0.0) -> Trend:
    """A column from step to step; a step is a label and its rows."""
    labels, rows = zip(*steps, strict=True)
    # With a single step there is no change to measure, not even one of zero.
    whole = change(rows[0], rows[-1] if len(rows) > 1 else [], column)
    return Trend(labels, [level(step, column) for step in rows], whole, least)


def limit_trend(steps: Iterable[tuple[str, Sequence[TableRow]]], column: str, **bounds: Any) -> Trend:
    """The limit of eps from step to step; see ``limits`` for the bounds."""
    return trend(((label, limits(rows, column, **bounds)) for label, rows in steps), "limit", least=STEP)


def change(before: Iterable[TableRow], after: Iterable[TableRow], column: str) -> TrialSummary:
    """Statistics of the differences of a column, ``after`` minus ``before``, over the trials that both have."""
    first, last = _by_trial(before, column), _by_trial(after, column)
    return level([{"trial": trial, column: last[trial] - first[trial]} for trial in first if trial in last], column)


def above(summary: TrialSummary, value: float = 0.0) -> bool:
    """Whether a mean is above a value by more than twice its standard error, which a single trial does not have."""
    return summary.count > 1 and summary.mean - value > 2.0 * summary.deviation / math.sqrt(summary.count)


def below(summary: TrialSummary, value: float = 0.0) -> bool:
    """Whether a mean is below a value by more than twice its standard error."""
    return summary.count > 1 and value - summary.mean > 2.0 * summary.deviation / math.sqrt(summary.count)


def _by_trial(rows: Iterable[TableRow], column: str) -> dict[Scalar, float]:
    summaries = summarise(rows, ["trial"], column)
    return {trial: summary.mean for (trial,), summary in summaries.items() if summary.count}


def _reach(rows: Iterable[TableRow], column: str, kept: Callable[[float], bool]) -> float:
    reached = 0.0
    points = {float(eps or 0.0): members for (eps,), members in group(rows, ["eps"]).items()}
    for eps, members in sorted(points.items()):
        if not kept(fmean(float(row[column] or 0.0) for row in members)):
            break
        reached = eps
    return reached


def _network(row: TableRow) -> frozenset[tuple[str, Scalar]]:
    return frozenset((name, value) for name, value in row.items() if name not in _RESULTS)


def _shares(row: TableRow, other: TableRow, suffix: str) -> TableRow:
    return {f"{layer}_{suffix}": _ratio(row, other, f"{layer}_error") for layer in LAYERS}


def _ratio(row: TableRow, start: TableRow, column: str) -> float | None:
    error, initial = row.get(column), start.get(column)
    return float(error) / float(initial) if error is not None and initial else None
