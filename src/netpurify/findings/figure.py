"""A figure: its experiment, its settings, and how to read the experiment's table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from netpurify.findings.experiment import Experiment
from netpurify.findings.finding import Finding
from netpurify.findings.panel import PlotPanel
from netpurify.findings.table import TableRow


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting of a figure: what the paper says beside what is done here.

    Attributes:
        name: What is set.
        paper: The paper's value, or "not said".
        here: The value here, read from the code that runs.
        why: The reason for a choice that the paper leaves open, or for a departure from it.
    """

    name: str
    paper: str
    here: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its experiment, and how to read the experiment's table.

    Attributes:
        number: Number of the figure in the paper; figures that the paper does not have are numbered from 14 on.
        title: What the figure shows.
        settings: Every setting, the paper's value beside the value here.
        experiment: The experiment whose table the figure reads; figures may share one.
        panels: Makes the plot from the rows of the table.
        findings: Compares claims with the rows of the table.
        remarks: Further notes for the reader.
        ours: Whether the paper has no such figure: it is listed apart, and its findings never count as the paper's.
        units: How many units the row of a purification counts in its column ``certified``; None if that is not known.
    """

    number: int
    title: str
    settings: Sequence[SettingRow]
    experiment: Experiment
    panels: Callable[[list[TableRow]], list[PlotPanel]]
    findings: Callable[[list[TableRow]], list[Finding]]
    remarks: Sequence[str] = field(default=())
    ours: bool = False
    units: Callable[[TableRow], int] | None = None
