"""What a page shows of one figure: the figure with the rows of its table, and what can be read from them."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from netpurify.errors import InputError
from netpurify.findings import CLAIM_VERDICTS, Figure, Finding, Mode, PlotPanel, Scalar, TableRow, Verdict
from netpurify.report.kit.numbers import count as count_of
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
    def claims(self) -> list[Finding]:
        """The findings on claims of the paper."""
        return [] if self.figure.ours else [finding for finding in self.findings if not finding.ours]

    @property
    def additions(self) -> list[Finding]:
        """The findings on statements of ours, which are never counted as the paper's."""
        return [finding for finding in self.findings if self.figure.ours or finding.ours]

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
        failed = sum(failure.count for failure in self.failures)
        settings = "one setting" if len(each) == 1 else f"each of {len(each)} settings"
        return (
            f"{plural(len(trials), 'trial')}: {count} for {settings}, mode {self.mode}; "
            f"{duration(self.seconds)} on one core; {failed or 'none'} failed."
        )

    @property
    def seconds(self) -> float:
        """Time of one core that all trials took."""
        return sum(_seconds(row) for row in self._trials().values())

    @property
    def trained(self) -> str:
        """How many networks reached the goal of training before the last step, in words."""
        reached = [bool(row["converged"]) for row in self._trials().values() if row.get("converged") is not None]
        if not reached:
            return "not recorded"
        return f"{sum(reached)} of {len(reached)}"

    @property
    def certified(self) -> str:
        """How many of the L1 fits are proven to be minima, in words."""
        rows = [row for row in self.rows if row.get("certified") is not None]
        shares = [float(row["certified"] or 0.0) for row in rows]
        if not rows:
            return "not recorded"
        if self.figure.units is None:
            some = sum(share < 1.0 for share in shares)
            return f"all fits in {count_of(len(rows) - some)} of {count_of(len(rows))} purifications"
        units = [self.figure.units(row) for row in rows]
        missing: Counter[Scalar] = Counter()
        for row, share, own in zip(rows, shares, units, strict=True):
            missing[row.get("m")] += round((1.0 - share) * own)
        left = [f"m = {m}: {count_of(number)}" for m, number in missing.items() if number]
        if not left:
            return f"all of {count_of(sum(units))} fits"
        return f"all but {count_of(missing.total())} of {count_of(sum(units))} fits ({', '.join(left)})"

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


def tally(verdicts: Iterable[Verdict | None]) -> dict[Verdict, int]:
    """How many of some verdicts are of each kind; every kind is there, and claims without a verdict do not count."""
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in CLAIM_VERDICTS}


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
