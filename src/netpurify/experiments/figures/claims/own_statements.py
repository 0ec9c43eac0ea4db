"""Findings and settings of the figures that the paper does not have: the statements are ours."""

from collections.abc import Iterable, Sequence
from typing import Any

from netpurify.experiments.figures.claims.verdicts import graded
from netpurify.findings import Evidence, Finding, Rule, SettingRow, TableRow, TrialSummary, summarise

NOT_IN_THE_PAPER = "not in the paper"


def setting(name: str, here: object, why: str = "") -> SettingRow:
    """A setting that the paper does not have."""
    return SettingRow(name, NOT_IN_THE_PAPER, str(here), why)


def statement(
    rule: Rule,
    measured: str,
    *,
    needed: Iterable[TrialSummary],
    holds: bool,
    limits: bool,
    evidence: Sequence[Evidence] = (),
    why: str = "",
) -> Finding:
    """A statement of ours with one verdict, by the rule's own measure."""
    verdict = graded(needed, holds=holds, limits=limits)
    return Finding(rule, verdict, None, measured, evidence, why, ours=True)


def number(value: Any, digits: int = 3) -> str:
    """A number in few characters; ``-`` for none."""
    if value is None or value != value:
        return "-"
    return f"{value:.{digits}f}" if not value or 10**-digits <= abs(value) < 1e4 else f"{value:.1e}"


def cell(summary: TrialSummary, digits: int = 3) -> str:
    """The mean over trials, in few characters."""
    return number(summary.mean, digits) if summary.count else "-"


def half_limit(rows: Iterable[TableRow], column: str = "exact") -> float:
    """The eps at which a share falls below one half, between points of the grid; 1 if it does not."""
    curve = sorted((float(eps or 0.0), found.mean) for (eps,), found in summarise(rows, ["eps"], column).items())
    before, share = 0.0, 1.0
    for eps, found in curve:
        if found < 0.5:
            return before + (eps - before) * (share - 0.5) / (share - found)
        before, share = eps, found
    return 1.0
