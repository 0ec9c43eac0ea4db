"""From panels to a drawing: SVG as text, the same bytes on every call, readable on paper, desktop and phone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from netpurify.errors import InputError
from netpurify.findings import Line, PlotPanel
from netpurify.report.kit.canvas import COLOURS, GRID, literal, render
from netpurify.report.kit.scales import AxisScale, heights, scales_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "^", "D", "v", "<", ">", "P")
_DASHES = ((4.0, 2.0), (1.2, 1.6), (6.0, 2.0, 1.2, 2.0), (2.5, 1.2))
_PANEL = (3.3, 2.7)
"""Width and height of a panel in inches: at 10 points, text stays above 9 pixels where three share a tablet's width."""
_MOST_ROWS_ABOVE = 3
"""Rows of panels that have their legend below them."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """How one label looks in every panel of a figure."""

    colour: str
    marker: str
    dashes: tuple[float, ...] | None
    baseline: bool


def draw(panels: Sequence[PlotPanel], *, title: str = "", columns: int | None = None) -> str:
    """Draws panels side by side with one legend for all.

    Lines are medians, bands go from the first to the third quartile, baselines are thin and dashed. Values that are not
    finite leave a gap; values at or below the floor of a logarithmic axis stand on it. Panels with the same vertical
    label share one scale.

    Args:
        panels: What to draw, in reading order.
        title: What screen readers call the drawing; the panels' own titles if it is empty.
        columns: Panels in a row; ``None`` for two or three, and 1 for a phone.

    Returns:
        One ``<svg>`` element, to be saved as a file or put into a page: it brings its own namespace, loads nothing, and
        its ids are its own.

    Raises:
        InputError: There is nothing to draw, a line's lists differ in length, a logarithmic axis does not start above
            zero, or matplotlib is not installed.
    """
    _require(panels, columns)
    columns = min(columns or columns_of(panels), len(panels))
    rows = -(-len(panels) // columns)
    return render(
        lambda figure: _fill(figure, panels, rows=rows, columns=columns),
        size=(columns * _PANEL[0], rows * _PANEL[1]),
        title=title or "; ".join(panel.title for panel in panels),
        description=describe(panels),
    )


def columns_of(panels: Sequence[PlotPanel]) -> int:
    """How many panels stand in a row: three, and two where that leaves no gap."""
    return 2 if len(panels) in (2, 4) else min(len(panels), 3)


def strokes_of(panels: Sequence[PlotPanel]) -> dict[str, Stroke]:
    """One look for each label, by the order in which labels come, baselines after all others."""
    lines: dict[str, Line] = {}
    for panel in panels:
        for line in panel.lines:
            lines.setdefault(line.label, line)
    strokes = {}
    baselines = 0
    for place, line in enumerate(sorted(lines.values(), key=lambda line: line.baseline)):
        # 7 colours and 8 markers: no pair comes again before the 57th label.
        dashes = _DASHES[baselines % len(_DASHES)] if line.baseline else None
        colour, marker = COLOURS[place % len(COLOURS)], _MARKERS[place % len(_MARKERS)]
        strokes[line.label] = Stroke(colour, marker, dashes, line.baseline)
        baselines += line.baseline
    return strokes


def describe(panels: Sequence[PlotPanel]) -> str:
    """What panels show, in words, for those who do not see them."""
    sentences = []
    for panel in panels:
        names = ", ".join(line.label for line in panel.lines) or "nothing measured"
        sentences.append(f"{panel.title}: {panel.y} against {panel.x}, for {names}.")
    return " ".join(sentences)


def _require(panels: Sequence[PlotPanel], columns: int | None) -> None:
    if not panels:
        raise InputError("a drawing needs at least one panel; got none")
    if columns is not None and columns < 1:
        raise InputError(f"columns must be at least 1; got {columns}")
    for panel in panels:
        starts = [panel.floor, *(panel.limits or ())[:1]]
        if panel.log and not all(start > 0.0 for start in starts):
            raise InputError(
                f"{panel.title}: a logarithmic axis must start above zero; got a floor of {panel.floor} and the limits "
                f"{panel.limits}; raise them or use a linear axis"
            )
        for line in panel.lines:
            lengths = [len(values) for values in (line.x, line.median, line.low, line.high)]
            if len(set(lengths)) > 1:
                raise InputError(
                    f"{panel.title}, {line.label}: x, median, low and high must be of one length; got {lengths}"
                )


def _fill(figure: "Figure", panels: Sequence[PlotPanel], *, rows: int, columns: int) -> None:
    strokes, scales = strokes_of(panels), scales_of(panels)
    for place, (panel, scale) in enumerate(zip(panels, scales, strict=True)):
        axes = figure.add_subplot(rows, columns, place + 1)
        _panel(axes, panel, scale, strokes)
        if place % columns and scales[place - 1] is scale:
            # The same axis as its neighbour's: said once, read along the grid, and the room goes to the lines.
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)
    _legend(figure, strokes, rows=rows, columns=columns)


def _panel(axes: "Axes", panel: PlotPanel, scale: AxisScale, strokes: dict[str, Stroke]) -> None:
    if panel.log:
        axes.set_yscale("log")
        axes.set_yticks(scale.ticks, scale.labels)
        axes.set_yticks([], minor=True)
    axes.set_ylim(scale.low, scale.high)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(literal(panel.title, 30))
    axes.set_xlabel(literal(panel.x, 36))
    axes.set_ylabel(literal(panel.y, 30))
    axes.locator_params(axis="x", nbins=6)
    # Baselines first, so that the method lies on top where both meet.
    for line in sorted(panel.lines, key=lambda line: not line.baseline):
        _line(axes, line, scale, strokes[line.label])
    if not any(np.isfinite(heights(line.median, scale)).any() for line in panel.lines):
        axes.set_xticks([])
        axes.text(0.5, 0.5, "nothing measured", transform=axes.transAxes, ha="center", va="center")


def _line(axes: "Axes", line: Line, scale: AxisScale, stroke: Stroke) -> None:
    x = np.asarray(line.x, np.float64)
    low, high = heights(line.low, scale), heights(line.high, scale)
    opacity = 0.10 if stroke.baseline else 0.18
    axes.fill_between(x, low, high, color=stroke.colour, alpha=opacity, linewidth=0.0)
    axes.plot(x, heights(line.median, scale), **_look(stroke))


def _look(stroke: Stroke) -> dict[str, Any]:
    look: dict[str, Any] = {"color": stroke.colour, "marker": stroke.marker}
    if not stroke.baseline:
        return {**look, "linewidth": 1.9, "markersize": 5.0, "markeredgecolor": "white", "markeredgewidth": 0.6}
    hollow = {"markersize": 4.5, "markerfacecolor": "white", "markeredgewidth": 0.9}
    return {**look, **hollow, "linewidth": 1.1, "linestyle": (0.0, stroke.dashes)}


def _legend(figure: "Figure", strokes: dict[str, Stroke], *, rows: int, columns: int) -> None:
    """Every label once, in as few lines of about equal length as the width allows."""
    from matplotlib.lines import Line2D

    if not strokes:
        return
    handles = [Line2D([], [], label=literal(label, 36), **_look(stroke)) for label, stroke in strokes.items()]
    # In a long column of panels the foot is far from the first of them.
    where = "outside lower center" if rows <= _MOST_ROWS_ABOVE else "outside upper center"
    for lines in range(-(-len(handles) // (2 * columns)), len(handles) + 1):
        legend = figure.legend(
            handles=handles, loc=where, ncols=-(-len(handles) // lines), frameon=False, handlelength=3.0
        )
        extent = legend.get_window_extent()
        if extent.width <= figure.bbox.width or lines == len(handles):
            # The legend takes its own height, not that of the panels.
            figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)
            return
        legend.remove()
