"""A figure of the paper: its experiment, and how to read the experiment's table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from netpurify.findings.experiment import Experiment
from netpurify.findings.finding import Finding
from netpurify.findings.panel import PlotPanel
from netpurify.findings.table import TableRow


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the paper: its experiment, and how to read the experiment's table.

    Attributes:
        number: Number of the figure in the paper.
        title: What the figure shows.
        setting: The settings in one sentence, including those that the paper leaves open.
        experiment: The experiment whose table the figure reads; figures may share one.
        panels: Makes the plot from the rows of the table.
        findings: Compares the paper's claims with the rows of the table.
        remarks: Further notes for the reader.
    """

    number: int
    title: str
    setting: str
    experiment: Experiment
    panels: Callable[[list[TableRow]], list[PlotPanel]]
    findings: Callable[[list[TableRow]], list[Finding]]
    remarks: Sequence[str] = field(default=())
