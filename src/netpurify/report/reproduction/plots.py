"""From panels to a drawing: SVG as text, the same bytes on every call, readable on paper, desktop and phone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.findings import Line, PlotPanel
from netpurify.report.kit.canvas import GRID, literal, render
from netpurify.report.kit.scales import AxisScale, heights, scales_of
from netpurify.report.reproduction.legends import legend, look
from netpurify.report.reproduction.looks import Stroke, strokes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_WIDTHS = {1: 4.375, 2: 8.75}
"""Inches across for one panel in a row, and for two or more: a column of a journal (3.5) and a page of two (7 to 7.16),
where all is printed at four fifths of its size and the smallest text, 9 points, is larger than 7."""
_HEIGHTS = {1: 2.9, 2: 2.8, 3: 2.5}
"""Inches of a row of panels without the legend."""
_MOST_ROWS_ABOVE = 3
"""Rows of panels that have their legend below them."""
_SMALL = 9.0
"""Points of a panel's note."""
_THINNEST = 0.004
"""Share of the axis's height from which a band is one; what is thinner would be a ribbon around its line."""


def draw(panels: Sequence[PlotPanel], *, title: str = "", columns: int | None = None, marked: bool = False) -> str:
    """Draws panels side by side with one legend for all.

    Lines are medians, bands go from the first to the third quartile, baselines are thin and dashed. What a line looks
    like is decided by the thing that it shows, the same in all figures; numbered steps go from light to dark. Values
    that are not finite leave a gap; values at or below the floor of a logarithmic axis stand on it. Panels with the
    same vertical label share one scale. Printed at the width of a journal's page, or of its column if ``columns`` is 1,
    no text is smaller than 7 points.

    Args:
        panels: What to draw, in reading order.
        title: What screen readers call the drawing; the panels' own titles if it is empty.
        columns: Panels in a row; ``None`` for two or three, and 1 for a phone.
        marked: Whether each line says in ``data-rows`` which rows of the table of all numbers it shows: the first one
            and how many.

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
        lambda figure: _fill(figure, panels, rows=rows, columns=columns, marked=marked),
        size=(_WIDTHS[min(columns, 2)], rows * _HEIGHTS[min(columns, 3)]),
        title=title or "; ".join(panel.title for panel in panels),
        description=describe(panels),
    )


def columns_of(panels: Sequence[PlotPanel]) -> int:
    """How many panels stand in a row: three, and two where that leaves no gap."""
    return 2 if len(panels) in (2, 4) else min(len(panels), 3)


def describe(panels: Sequence[PlotPanel]) -> str:
    """What panels show, in words, for those who do not see them."""
    sentences = []
    for panel in panels:
        names = ", ".join(line.label for line in panel.lines) or "nothing measured"
        note = f" {panel.note[:1].upper()}{panel.note[1:]}." if panel.note else ""
        sentences.append(f"{panel.title}: {panel.y} against {panel.x}, for {names}.{note}")
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


def _fill(figure: "Figure", panels: Sequence[PlotPanel], *, rows: int, columns: int, marked: bool) -> None:
    strokes, scales = strokes_of(panels), scales_of(panels)
    marks = _marks(panels) if marked else {}
    for place, (panel, scale) in enumerate(zip(panels, scales, strict=True)):
        axes = figure.add_subplot(rows, columns, place + 1)
        _panel(axes, panel, scale, strokes, marks)
        row = panels[place - place % columns :][:columns]
        _head(axes, panel, width=42 if columns < 3 else 28, room=any(other.note for other in row))
        if place % columns and scales[place - 1] is scale:
            # The same axis as its neighbour's: said once, read along the grid, and the room goes to the lines.
            axes.set_ylabel("")
            axes.tick_params(axis="y", labelleft=False)
    legend(figure, strokes, above=rows > _MOST_ROWS_ABOVE)


def _marks(panels: Sequence[PlotPanel]) -> dict[int, str]:
    """Which rows of the table of all numbers each line has, by the identity of the line."""
    marks, start = {}, 0
    for line in (line for panel in panels for line in panel.lines):
        marks[id(line)] = f"rows-{start}-{len(line.x)}"
        start += len(line.x)
    return marks


def _panel(axes: "Axes", panel: PlotPanel, scale: AxisScale, strokes: dict[str, Stroke], marks: dict[int, str]) -> None:
    if panel.log:
        axes.set_yscale("log")
        axes.set_yticks(scale.ticks, scale.labels)
        axes.set_yticks([], minor=True)
    axes.set_ylim(scale.low, scale.high)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(literal(panel.x, 36))
    axes.set_ylabel(literal(panel.y, 30))
    axes.locator_params(axis="x", nbins=6)
    # Baselines first, so that the method lies on top where both meet, and last of all what it would hide.
    for line in sorted(panel.lines, key=lambda line: (strokes[line.label].top, not line.baseline)):
        # Bands that lie on each other add up to a dark one, which would hide the lines.
        drawn = _line(axes, line, scale, strokes[line.label], opacity=min(0.16, 1.0 / len(panel.lines)))
        drawn.set_gid(marks.get(id(line)))
    if not any(np.isfinite(heights(line.median, scale)).any() for line in panel.lines):
        axes.set_xticks([])
        axes.text(0.5, 0.5, "nothing measured", transform=axes.transAxes, ha="center", va="center")


def _head(axes: "Axes", panel: PlotPanel, *, width: int, room: bool) -> None:
    """The title, and the note below it; ``room`` keeps the titles of a row at one height."""
    axes.set_title(literal(panel.title, width), pad=_SMALL + 9.0 if room else 6.0)
    if panel.note:
        place = {"xy": (0.5, 1.0), "xycoords": "axes fraction", "xytext": (0.0, 4.0), "textcoords": "offset points"}
        note = axes.annotate(literal(panel.note, 60), **place, ha="center", va="bottom", fontsize=_SMALL)
        note.set_in_layout(False)  # it may reach into the gap between panels, which keep their widths


def _line(axes: "Axes", line: Line, scale: AxisScale, stroke: Stroke, *, opacity: float) -> "Line2D":
    x = np.asarray(line.x, np.float64)
    low, high = heights(line.low, scale), heights(line.high, scale)
    wide = _extent(low, high, scale) > _THINNEST
    grounded = np.zeros_like(wide) if scale.floor is None else low <= scale.floor
    shade = {"color": stroke.colour, "alpha": 0.5 * opacity if stroke.thin else opacity}
    # No wedge between points where a quarter of the trials is exact and points where none is, or where trials agree:
    # it would be as tall as the axis, and nothing was measured there.
    for run in (wide & grounded, wide & ~grounded):
        alone = run & ~np.r_[False, run[:-1]] & ~np.r_[run[1:], False]
        if (run & ~alone).any():
            axes.fill_between(x, low, high, where=list(run), linewidth=0.0, **shade)
        if alone.any():
            axes.vlines(x[alone], low[alone], high[alone], linewidth=4.0, **shade)
    return axes.plot(x, heights(line.median, scale), **look(stroke))[0]


def _extent(low: NDArray[np.float64], high: NDArray[np.float64], scale: AxisScale) -> NDArray[np.float64]:
    """How much of the axis lies between two heights; 0 where one of them is missing."""
    if scale.floor is None:
        return np.nan_to_num((high - low) / (scale.high - scale.low))
    return np.nan_to_num(np.log(high / low) / np.log(scale.high / scale.low))
