"""What a figure says, as plain data: panels of lines for the plot, findings for the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from netpurify.experiments.experiment import Experiment, Row


class Verdict(StrEnum):
    """How a claim of the paper compares with what was measured."""

    HOLDS = "holds"
    LIMITS = "holds with limits"
    FAILS = "does not hold"
    UNSEEN = "not measured"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot: the mean over trials, and the quartiles as its band.

    Attributes:
        label: In the legend; lines with the same label in different panels look the same.
        x: Positions.
        mean: Means over trials.
        low: First quartiles.
        high: Third quartiles.
        baseline: Whether it is something to compare with (drawn thin and dashed), not the method itself.
    """

    label: str
    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: What is varied or fixed here.
        x: Label of the horizontal axis.
        y: Label of the vertical axis.
        lines: What is drawn.
        log: Whether the vertical axis is logarithmic; values at or below ``floor`` are drawn at ``floor``.
        floor: Least value that a logarithmic axis shows.
        limits: Ends of the vertical axis, if they are fixed.
    """

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log: bool = False
    floor: float = 1e-16
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of the paper beside what was measured.

    Attributes:
        claim: The paper's words, or close to them.
        measured: What was seen, with means, spread and number of trials.
        verdict: How they compare.
        why: The reason, or the limits.
    """

    claim: str
    measured: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the paper: its experiment, and how to read the experiment's table.

    Attributes:
        number: Its number in the paper.
        title: What it shows.
        setting: The settings in one sentence, with what the paper leaves open.
        experiment: What is run; figures may share one.
        panels: The plot, from the rows of the table.
        findings: The claims, from the rows of the table.
        remarks: What a reader should know besides.
    """

    number: int
    title: str
    setting: str
    experiment: Experiment
    panels: Callable[[list[Row]], list[Panel]]
    findings: Callable[[list[Row]], list[Finding]]
    remarks: Sequence[str] = field(default=())
