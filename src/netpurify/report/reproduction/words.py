"""Texts and tables that the page of the reproduction, its Markdown and the terminal share."""

from collections.abc import Sequence
from dataclasses import dataclass

from netpurify.findings import CLAIM_VERDICTS, Rule, Verdict
from netpurify.report.kit.numbers import duration
from netpurify.report.reproduction.result import FigureResult, tally

TITLE = "The paper's figures, measured again"
PAPER = (
    "H. Lu, Z. Huang, R. Wang: Purification of Contaminated Convolutional Neural Networks via Robust Recovery: An "
    "Approach with Theoretical Guarantee in One-Hidden-Layer Case. IEEE Journal of Selected Topics in Signal "
    "Processing 19 (3), 507-519, 2025, doi:10.1109/JSTSP.2025.3549950, arXiv:2407.11031."
)
KEY = (
    "Lines are medians over trials, bands go from the first to the third quartile; solid: after purification, numbered "
    "steps from light to dark; thin and dashed: to compare with. One thing has one look in all figures."
)
POINTING = "Point at a marker to read its numbers; the table below has all of them."
NOTHING = "No trial succeeded, so there is nothing to draw and no claim was judged."
CLAIMS = ("The paper's claim", "Measured", "By the paper's measure", "Against doing nothing", "What to understand")
ADDITIONS = ("Our statement", "Measured", "Verdict", "What to understand")
SETTINGS = ("Setting", "Paper", "Here", "Why")
FAILURES = ("Reason", "Trials", "Which")
RUNS = ("Experiment", "Figures", "Trials", "Failed", "Time of one core", "Training reached its goal", "Proven minima")
YARDSTICKS = ("by the paper's measure", "against doing nothing")
READING = (
    (
        "0.241 ± 0.032 (100)",
        "the mean over trials, its standard deviation over trials, and the number of trials; in tables the number of "
        "trials is in the title",
    ),
    ("clearly", "by more than twice the standard error of the mean of differences within trials, which have the same "
     "seeds in every cell; with one trial such a verdict is not measured"),
    ("l1", "Algorithm 2: every unit is fitted by least absolute deviations, beta on the features of the purified W"),
    ("l1, initial features", "the same, but beta on the features of the initial W; the paper leaves open which"),
    ("l2", "the same fits by least squares, to compare with"),
    ("contaminated, before", "the weights as they were found, without purification"),
    ("initial weights", "the weights before training; to return them is to do nothing about recovery"),
    ("exact", "equal to the trained weights up to rounding"),
    ("proven minima", "L1 fits whose minimum the solver certifies. For the others no proof was found, or the clean "
     "inputs span all that they reach of a unit (as at m = 40), so that any weights fit and there is nothing to prove; "
     "which of the two is not recorded. W, which both regimes share, counts in each"),
    ("✓ ◐ ✗ ○", "holds, holds with limits, does not hold, not measured; - where a rule has no such side"),
)  # fmt: skip
_SYMBOLS = {Verdict.HOLDS: "✓", Verdict.LIMITS: "◐", Verdict.FAILS: "✗", Verdict.UNSEEN: "○"}


@dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule, and where it is used.

    Attributes:
        rule: The rule.
        figures: Numbers of the figures that judge by it.
        ours: Whether it judges a statement of ours.
    """

    rule: Rule
    figures: list[int]
    ours: bool

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What the rule says, name by name; sides that it does not have are left out."""
        facts = [
            ("Where", "" if self.rule.where == "ours" else self.rule.where),
            ("Rule" if self.ours else "By the paper's measure", self.rule.measure),
            ("Against doing nothing", self.rule.nothing),
            ("Why so", self.rule.reason),
            ("Judged in", f"Figure{'s' * (len(self.figures) > 1)} {', '.join(map(str, self.figures))}"),
        ]
        return [(name, text) for name, text in facts if text]


def verdict_text(verdict: Verdict | None) -> str:
    """A verdict with its symbol; a dash where a rule has no such side."""
    return "-" if verdict is None else f"{_SYMBOLS[verdict]} {verdict}"


def summary_columns() -> list[str]:
    """What stands above the summary: every verdict by either yardstick."""
    return ["Figure", *(f"{_SYMBOLS[verdict]} {yardstick}" for yardstick in YARDSTICKS for verdict in CLAIM_VERDICTS)]


def counts_of(result: FigureResult) -> list[str]:
    """A figure's row in the summary: its name, and how many of its claims have each verdict by either yardstick."""
    measure = tally(finding.by_measure for finding in result.claims)
    nothing = tally(finding.against_nothing for finding in result.claims)
    return [result.name, *map(str, measure.values()), *map(str, nothing.values())]


def own_columns() -> list[str]:
    """What stands above the summary of our own statements."""
    return ["Figure", *map(verdict_text, CLAIM_VERDICTS)]


def own_counts_of(result: FigureResult) -> list[str]:
    """A figure's row in the summary of our own statements."""
    return [result.name, *map(str, tally(finding.by_measure for finding in result.additions).values())]


def failures_of(result: FigureResult) -> list[tuple[str, str, str]]:
    """The failed trials of a figure, by their reasons."""
    return [(failure.reason, str(failure.count), failure.trials) for failure in result.failures]


def runs_of(results: Sequence[FigureResult]) -> list[list[str]]:
    """Every experiment once, whichever figures read it, and all of them together."""
    figures: dict[str, list[FigureResult]] = {}
    for result in results:
        figures.setdefault(result.figure.experiment.name, []).append(result)
    firsts = [own[0] for own in figures.values()]
    rows = [
        [
            name,
            ", ".join(str(result.figure.number) for result in own),
            str(own[0].trials),
            str(_failed(own[0])),
            duration(own[0].seconds),
            own[0].trained,
            own[0].certified,
        ]
        for name, own in figures.items()
    ]
    total = ["all", "", str(sum(one.trials for one in firsts)), str(sum(map(_failed, firsts)))]
    return [*rows, [*total, duration(sum(one.seconds for one in firsts)), "", ""]]


def effort_of(result: FigureResult, results: Sequence[FigureResult]) -> str:
    """How much was run for a figure; a run that an earlier figure reads too is not told twice."""
    name = result.figure.experiment.name
    first = next(one for one in results if one.figure.experiment.name == name and one.rows == result.rows)
    return result.effort if first is result else f"The same trials as Figure {first.figure.number}."


def rules_of(results: Sequence[FigureResult]) -> list[RuleUse]:
    """Every rule once, in the order of the page; those of our own statements after the paper's."""
    found: dict[Rule, RuleUse] = {}
    for ours in (False, True):
        for result in results:
            for finding in result.additions if ours else result.claims:
                use = found.setdefault(finding.rule, RuleUse(finding.rule, [], ours))
                if result.figure.number not in use.figures:
                    use.figures.append(result.figure.number)
    return list(found.values())


def _failed(result: FigureResult) -> int:
    return sum(failure.count for failure in result.failures)
