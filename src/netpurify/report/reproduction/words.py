"""Texts that the page of the reproduction and its Markdown share."""

from netpurify.findings import Verdict
from netpurify.report.reproduction.result import FigureResult, tally

TITLE = "The paper's figures, measured again"
PAPER = (
    "H. Lu, Z. Huang, R. Wang: Purification of Contaminated Convolutional Neural Networks via Robust Recovery: An "
    "Approach with Theoretical Guarantee in One-Hidden-Layer Case. IEEE Journal of Selected Topics in Signal "
    "Processing 19 (3), 2025, arXiv:2407.11031."
)
KEY = (
    "Lines are medians over trials, bands go from the first to the third quartile; solid: after purification, numbered "
    "steps from light to dark; thin and dashed: to compare with. One thing has one look in all figures."
)
NOTHING = "No trial succeeded, so there is nothing to draw and no claim was judged."
CLAIMS = ("The paper's claim", "Measured", "By the paper's measure", "Against doing nothing", "Why")
SETTINGS = ("Setting", "Paper", "Here", "Why")
FAILURES = ("Reason", "Trials", "Which")
_SYMBOLS = {Verdict.HOLDS: "✓", Verdict.LIMITS: "◐", Verdict.FAILS: "✗", Verdict.UNSEEN: "○"}


def verdict_text(verdict: Verdict | None) -> str:
    """A verdict with its symbol; a dash where a rule has no such side."""
    if verdict is None:
        return "-"
    return f"{_SYMBOLS[verdict]} {verdict}"


def counts_of(result: FigureResult) -> list[str]:
    """A figure's row in the summary: its name, how many claims have each verdict, its trials, failed ones."""
    failed = sum(failure.count for failure in result.failures)
    return [result.name, *map(str, tally(result.findings).values()), str(result.trials), str(failed)]


def failures_of(result: FigureResult) -> list[tuple[str, str, str]]:
    """The failed trials of a figure, by their reasons."""
    return [(failure.reason, str(failure.count), failure.trials) for failure in result.failures]
