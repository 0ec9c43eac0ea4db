"""A plot as plain data: panels of lines, drawn by ``netpurify.report``."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot: the median over trials, with the quartiles as its band.

    Attributes:
        label: Text in the legend; lines of a figure with the same label have one entry there.
        x: Positions.
        median: Medians over trials.
        low: First quartiles.
        high: Third quartiles.
        baseline: Whether the line is a comparison (drawn thin and dashed) and not the method itself.
        thing: What the line is about; it decides the line's colour, marker and dashes, which are the same in all
            figures. The label if it is empty.
    """

    label: str
    x: Sequence[float]
    median: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    baseline: bool = False
    thing: str = ""


@dataclass(frozen=True, slots=True)
class PlotPanel:
    """One pair of axes.

    Attributes:
        title: The setting that is fixed or varied in this panel.
        x: Label of the horizontal axis.
        y: Label of the vertical axis.
        lines: The lines to draw.
        log: Whether the vertical axis is logarithmic; values at or below ``floor`` are drawn at ``floor``.
        floor: Smallest value that a logarithmic axis shows.
        limits: Ends of the vertical axis, if they are fixed.
        note: A short remark inside the axes, such as that lines coincide.
    """

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log: bool = False
    floor: float = 1e-16
    limits: tuple[float, float] | None = None
    note: str = ""
