"""What a page shows of one figure: the figure with the rows of its table, and what can be read from them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from netpurify.errors import InputError
from netpurify.findings import CLAIM_VERDICTS, Figure, Finding, Mode, PlotPanel, Scalar, TableRow, Verdict
from netpurify.report.kit.numbers import duration, plural

_MOST_NAMED = 6
"""Failed trials with one reason that are named; further ones are counted."""
Place = tuple[tuple[str, Scalar], ...]
"""Which trial: its settings and its number, by name."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Trials that failed for one reason.

    Attributes:
        reason: What they raised.
        count: How many they are.
        trials: The first few of them, by settings and number.
    """

    reason: str
    count: int
    trials: str


@dataclass(frozen=True)
class FigureResult:
    """One figure of the paper and what was measured for it.

    Attributes:
        figure: The figure.
        rows: The table of its experiment, failed trials included.
        mode: The grid that was run.
    """

    figure: Figure
    rows: list[TableRow]
    mode: Mode = "default"

    @property
    def name(self) -> str:
        """Its heading."""
        return f"Figure {self.figure.number}: {self.figure.title}"

    @cached_property
    def panels(self) -> list[PlotPanel]:
        """The plot; empty if no trial succeeded, as there is nothing that a figure could read then."""
        return self.figure.panels(self.rows) if self._measured else []

    @cached_property
    def findings(self) -> list[Finding]:
        """The claims beside what was measured; empty if no trial succeeded."""
        return self.figure.findings(self.rows) if self._measured else []

    @property
    def failures(self) -> list[Failure]:
        """The failed trials by their reasons, the most frequent first."""
        reasons: dict[str, list[str]] = {}
        for place, row in self._trials().items():
            if row.get("failure") is not None:
                reasons.setdefault(str(row["failure"]), []).append(_spell(place))
        ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
        return [Failure(reason, len(trials), _some(trials)) for reason, trials in ordered]

    @property
    def effort(self) -> str:
        """How much was run, in one sentence."""
        trials = self._trials()
        if not trials:
            return "No trial has been recorded."
        each = Counter(place[:-1] for place in trials)
        fewest, most = min(each.values()), max(each.values())
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        seconds = sum(_seconds(row) for row in trials.values())
        failed = sum(failure.count for failure in self.failures)
        settings = "one setting" if len(each) == 1 else f"each of {len(each)} settings"
        return (
            f"{plural(len(trials), 'trial')}: {count} for {settings}, mode {self.mode}; "
            f"{duration(seconds)} on one core; {failed or 'none'} failed."
        )

    @property
    def trials(self) -> int:
        """How many trials the table holds, failed ones included."""
        return len(self._trials())

    @property
    def _measured(self) -> bool:
        return any(row.get("failure") is None for row in self.rows)

    def _trials(self) -> dict[Place, TableRow]:
        """The first row of every trial; a trial may have many, one for each value that it goes through."""
        cells = self.figure.experiment.grid(self.mode)
        names = [*dict.fromkeys(name for cell in cells for name in cell), "trial"]
        found: dict[Place, TableRow] = {}
        for row in self.rows:
            found.setdefault(tuple((name, row.get(name)) for name in names), row)
        return found


def tally(findings: Sequence[Finding]) -> dict[Verdict, int]:
    """How many claims of the paper have each verdict by its own measure; every verdict is there."""
    judged = [finding.by_measure for finding in findings if not finding.ours]
    return {verdict: judged.count(verdict) for verdict in CLAIM_VERDICTS}


def require_distinct(results: Sequence[FigureResult]) -> None:
    """Refuses two results for one figure.

    Raises:
        InputError: A number comes twice, so that links and file names would mean two figures.
    """
    for number, count in Counter(result.figure.number for result in results).items():
        if count > 1:
            raise InputError(f"every figure must come once; got figure {number} {count} times; give one result for it")


def _spell(place: Place) -> str:
    return ", ".join(f"{name} {value}" for name, value in place if value is not None)


def _some(trials: list[str]) -> str:
    named = "; ".join(trials[:_MOST_NAMED])
    return named if len(trials) <= _MOST_NAMED else f"{named}; and {len(trials) - _MOST_NAMED} more"


def _seconds(row: TableRow) -> float:
    seconds = row.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) and math.isfinite(seconds) else 0.0
