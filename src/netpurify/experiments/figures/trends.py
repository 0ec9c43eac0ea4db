"""Comparisons trial by trial: every cell of a grid sees the same seeds, every method the same network."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from netpurify.experiments.figures.verdicts import graded, level, listed, show
from netpurify.findings import Finding, Scalar, TableRow, TrialSummary, group, select, summarise

RECOVERED = 0.5
"""What may be left of the initial weights' error, in the same trial, for a layer to count as recovered.

No fixed error would do: lazy training leaves the initial weights close to the true ones, the closer the larger p is.
"""
FEATURES = {"l1": "features of the purified W", "l1, initial features": "features of the initial W"}
"""What beta is fitted on, by method; the paper leaves it open, so a claim about beta should hold with both."""
LAYERS = ("W", "beta")
SHIFT = (
    "With features of the initial W the limit nears .6 as p grows, however small the rank: features are never negative "
    "and N(1, 1) is positive in 84 % of its draws, so once .84 eps is above one half, a shift of all entries explains "
    "more of beta than the truth does."
)
"""What sets the limit of beta itself; noise without a sign, N(0, 1), leaves it far higher."""
STEP = 0.05
"""Finest step of eps in the grids; limits that differ by less do not differ."""
JUDGED = (
    "Comparisons are made within trials, whose seeds are the same everywhere. A difference counts if its mean over "
    f"trials is beyond twice its standard error, which takes at least two trials; one of a limit must be at least "
    f"{STEP:g} besides, the finest step of eps."
)
_RESULTS = {"method", "certified", "W_error", "W_exact", "beta_error", "beta_exact"}
"""Columns in which the rows of one purified network differ."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A number over the steps of a grid, such as growing p.

    Attributes:
        labels: What to call the steps.
        levels: The number at each step, over trials.
        change: From the first step to the last, in each trial.
        least: Size from which on a change counts.
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
        steps = listed((label, show(found)) for label, found in zip(self.labels, self.levels, strict=True))
        return f"{steps} (from first to last {show(self.change)})"

    @property
    def ends(self) -> str:
        """The first and the last step, and the change."""
        return f"{show(self.levels[0])} -> {show(self.levels[-1])} (change {show(self.change)})"


def relative(rows: Iterable[TableRow]) -> list[TableRow]:
    """The rows with ``W_ratio`` and ``beta_ratio``, errors as shares of those of the initial weights in the trial."""
    rows = list(rows)
    starts = {_place(row): row for row in rows if row.get("method") == "initial weights"}
    return [
        row | {f"{layer}_ratio": _ratio(row, starts.get(_place(row), {}), f"{layer}_error") for layer in LAYERS}
        for row in rows
    ]


def of_regime(rows: Iterable[TableRow], regime: str) -> list[TableRow]:
    """The rows of one regime, and failed trials, which have none: their settings were to be measured too."""
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
    """For every trial, as ``limit``, the largest eps up to which a column stays at least or at most a value, or 0.

    With several cells in the rows, ``each`` names the settings in which they differ, and each cell has its own limit.
    """
    measured = [row for row in select(rows, **wanted) if row.get(column) is not None]

    def kept(value: float) -> bool:
        return (least is None or value >= least) and (most is None or value <= most)

    return [
        {"trial": cell[0], "limit": _reach(own, column, kept)}
        for cell, own in group(measured, ["trial", *each]).items()
    ]


def trend(steps: Iterable[tuple[str, Sequence[TableRow]]], column: str, *, least: float = 0.0) -> Trend:
    """A column from step to step; a step is a label and its rows."""
    labels, rows = zip(*steps, strict=True)
    # One step alone shows nothing, not even that there is no change.
    whole = change(rows[0], rows[-1] if len(rows) > 1 else [], column)
    return Trend(labels, [level(own, column) for own in rows], whole, least)


def limit_trend(steps: Iterable[tuple[str, Sequence[TableRow]]], column: str, **bounds: Any) -> Trend:
    """The limit of eps from step to step; see ``limits`` for the bounds."""
    return trend(((label, limits(rows, column, **bounds)) for label, rows in steps), "limit", least=STEP)


def change(before: Iterable[TableRow], after: Iterable[TableRow], column: str) -> TrialSummary:
    """The differences of a column, after less before, over the trials that both have."""
    first, last = _by_trial(before, column), _by_trial(after, column)
    return level([{"trial": trial, column: last[trial] - first[trial]} for trial in first if trial in last], column)


def above(found: TrialSummary, value: float = 0.0) -> bool:
    """Whether a mean is above a value by more than twice its standard error, which a single trial does not have."""
    return found.count > 1 and found.mean - value > 2.0 * found.deviation / math.sqrt(found.count)


def below(found: TrialSummary, value: float = 0.0) -> bool:
    """Whether a mean is below a value by more than twice its standard error."""
    return found.count > 1 and value - found.mean > 2.0 * found.deviation / math.sqrt(found.count)


def beta_recovered(
    claim: str, steps: Iterable[tuple[str, Sequence[TableRow]]], *, each: Sequence[str] = (), why: str, note: str = ""
) -> Finding:
    """How far beta is recovered from step to step, a step being a label and its rows with ``beta_ratio``.

    The claim holds if the limit clearly rises with both choices of features, and with limits if it does with one.
    """
    steps = list(steps)
    found = {method: limit_trend(steps, "beta_ratio", most=RECOVERED, each=each, method=method) for method in FEATURES}
    rising = [trend.rises for trend in found.values()]
    pooled = f", mean over {' and '.join(each)}" if each else ""
    return Finding(
        claim,
        f"largest eps up to which beta is recovered (its error is at most half that of the initial weights in the same "
        f"trial){pooled}: " + "; ".join(f"with {name}: {found[method]}" for method, name in FEATURES.items()) + note,
        graded(
            [number for trend in found.values() for number in trend.needed],
            holds=all(rising),
            limits=any(rising),
            trials=2,
        ),
        why,
    )


def trained(rows: Iterable[TableRow]) -> str:
    """How many of the trained networks reached the goal of training before the last step, in words."""
    networks = {
        (row.get("trial"), *(row.get(name) for name in ("training", "m", "p"))): row["converged"]
        for row in rows
        if row.get("converged") is not None
    }
    if not networks:
        return "whether training converged was not recorded"
    reached, total = sum(bool(value) for value in networks.values()), len(networks)
    share = f"{100 * reached / total:.0f} %"
    return f"networks whose training converged: {reached} of {total} ({share}); the others stopped at the last step"


def _by_trial(rows: Iterable[TableRow], column: str) -> dict[Scalar, float]:
    found = summarise(rows, ["trial"], column)
    return {trial: value.mean for (trial,), value in found.items() if value.count}


def _reach(rows: Iterable[TableRow], column: str, kept: Callable[[float], bool]) -> float:
    reached = 0.0
    points = {float(eps or 0.0): own for (eps,), own in group(rows, ["eps"]).items()}
    for eps, own in sorted(points.items()):
        if not kept(fmean(float(row[column] or 0.0) for row in own)):
            break
        reached = eps
    return reached


def _place(row: TableRow) -> frozenset[tuple[str, Scalar]]:
    return frozenset((name, value) for name, value in row.items() if name not in _RESULTS)


def _ratio(row: TableRow, start: TableRow, column: str) -> float | None:
    error, initial = row.get(column), start.get(column)
    return float(error) / float(initial) if error is not None and initial else None
