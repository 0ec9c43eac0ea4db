"""Limits of eps at several errors at once, and beside the initial weights: the yardsticks of Figures 2 to 7."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from netpurify.experiments.figures.claims.rules import LADDER, RECOVERED
from netpurify.experiments.figures.claims.trends import Trend, limit_trend
from netpurify.experiments.figures.claims.verdicts import cell, graded, short, trials_of, values
from netpurify.findings import Evidence, Finding, Rule, Scalar, TableRow, TrialSummary, Verdict, select

Steps = Sequence[tuple[str, Sequence[TableRow]]]
"""The steps of a grid, such as growing p: a label and its rows with ``W_ratio`` and ``beta_ratio``."""
_NAMED = 2
"""More limits than this are summed up in a sentence, and stand in tables."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The limits of one layer, from step to step.

    Attributes:
        name: What is fitted, such as "beta, features of the initial W".
        rungs: The limit at each error of ``LADDER``.
        half: The limit up to which the error is at most half of that of the initial weights.
        counting: The errors at which limits are neither all 0 nor all at the end of the grid.
    """

    name: str
    rungs: dict[float, Trend]
    half: Trend
    counting: tuple[float, ...]

    @property
    def rising(self) -> list[float]:
        """The errors at which the limit rises."""
        return [rung for rung in self.counting if self.rungs[rung].rises]

    @property
    def falling(self) -> list[float]:
        """The errors at which the limit falls."""
        return [rung for rung in self.counting if self.rungs[rung].falls]

    @property
    def all_rise(self) -> bool:
        """Whether the limit rises at every error that counts."""
        return bool(self.counting) and len(self.rising) == len(self.counting)

    @property
    def needed(self) -> list[TrialSummary]:
        """The numbers without which there is no verdict."""
        return [number for found in (*self.rungs.values(), self.half) for number in found.needed]

    def evidence(self, pooled: str = "") -> Evidence:
        """Every limit, error by error."""
        rows = [[self._label(rung), *_cells(found)] for rung, found in self.rungs.items()]
        rows.append(["half of the initial weights'", *_cells(self.half)])
        title = f"{self.name}: limit of eps by the error that is allowed{pooled}; {trials_of(self.half.levels)}"
        return Evidence(title, ["Error at most", *self.half.labels, "Change"], rows)

    def _label(self, rung: float) -> str:
        return f"{rung:g}" if rung in self.counting else f"{rung:g} (does not count)"


def ladder(name: str, steps: Steps, layer: str, *, each: Sequence[str] = (), method: str = "l1") -> Ladder:
    """The limits of a layer from step to step; with several cells in a step, ``each`` names what they differ in."""
    steps = _whole(steps, each, method)
    how: dict[str, Any] = {"each": each, "method": method}
    rungs = {rung: limit_trend(steps, f"{layer}_error", most=rung, **how) for rung in LADDER}
    half = limit_trend(steps, f"{layer}_ratio", most=RECOVERED, **how)
    end = max((values(rows, "eps")[-1] for _, rows in steps if values(rows, "eps")), default=0.0)
    counting = [rung for rung, found in rungs.items() if _counts(found.levels, end)]
    return Ladder(name, rungs, half, tuple(counting))


def ladder_verdicts(groups: Iterable[Sequence[Ladder]]) -> tuple[Verdict, Verdict]:
    """By the paper's measure, and against doing nothing.

    Groups are those of which one alone makes a claim hold with limits: choices of features, or layers.
    """
    groups = list(groups)
    ladders = [one for group in groups for one in group]
    needed = [number for one in ladders for number in one.needed]
    counting, rising = (sum(len(part) for part in parts) for parts in _parts(ladders))
    measure = graded(
        needed,
        holds=all(one.all_rise for one in ladders),
        limits=any(all(one.all_rise for one in group) for group in groups)
        or (0 < counting <= 2 * rising and not any(one.falling for one in ladders)),
        trials=2,
    )
    nothing = graded(
        [number for one in ladders for number in one.half.needed],
        holds=all(one.half.rises for one in ladders),
        limits=any(all(one.half.rises for one in group) for group in groups),
        trials=2,
    )
    return measure, nothing


def ladder_finding(rule: Rule, groups: Iterable[Sequence[Ladder]], *, pooled: str = "", why: str = "") -> Finding:
    """A claim about limits, judged at every error of the ladder and beside the initial weights."""
    groups = list(groups)
    ladders = [one for group in groups for one in group]
    evidence = [one.evidence(pooled) for one in ladders]
    return Finding(rule, *ladder_verdicts(groups), _measured(ladders), evidence, why)


def _measured(ladders: Sequence[Ladder]) -> str:
    counting, rising = (sum(len(part) for part in parts) for parts in _parts(ladders))
    falls = [one.name for one in ladders if one.falling]
    said = f"Limits rise at {rising} of {counting} errors that count"
    said += f" and fall for {', '.join(falls)}" if falls else ""
    beside = f"{said}; up to half of the initial weights' error they"
    if len(ladders) > _NAMED:
        changes = [one.half.change.mean for one in ladders]
        return f"{beside} change by {short(min(changes))} to {short(max(changes))}."
    ends = [f"{short(one.half.levels[0].mean)} to {short(one.half.levels[-1].mean)}" for one in ladders]
    if len(ladders) > 1:
        ends = [f"{end} ({one.name.removeprefix('beta, ')})" for end, one in zip(ends, ladders, strict=True)]
    return f"{beside} go from {', '.join(ends)}."


def _whole(steps: Steps, each: Sequence[str], method: str) -> Steps:
    """The steps without trials that lack one of the cells: a mean over the others would be of something else."""
    cells = {tuple(row.get(name) for name in each) for _, rows in steps for row in rows}
    whole = []
    for label, rows in steps:
        own: dict[Scalar, set[tuple[Scalar, ...]]] = {}
        for row in select(rows, method=method):
            own.setdefault(row.get("trial"), set()).add(tuple(row.get(name) for name in each))
        whole.append((label, [row for row in rows if own.get(row.get("trial")) == cells]))
    return whole


def _parts(ladders: Sequence[Ladder]) -> tuple[list[Sequence[float]], list[Sequence[float]]]:
    return [one.counting for one in ladders], [one.rising for one in ladders]


def _counts(levels: Sequence[TrialSummary], end: float) -> bool:
    known = [level for level in levels if level.count]
    return any(level.mean > 0.0 for level in known) and any(level.mean < end for level in known)


def _cells(found: Trend) -> list[str]:
    return [*(cell(number) for number in found.levels), cell(found.change)]
