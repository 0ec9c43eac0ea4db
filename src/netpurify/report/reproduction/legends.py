"""The legend of a drawing: every label once, steps in their order, then what to compare with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from netpurify.report.kit.canvas import literal
from netpurify.report.reproduction.looks import Stroke

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

_MARGIN = 0.1
"""Inches between the legend and the panels."""


def look(stroke: Stroke) -> dict[str, Any]:
    """A stroke in matplotlib's words."""
    common: dict[str, Any] = {"color": stroke.colour, "marker": stroke.marker or "None"}
    if not stroke.thin:
        return {
            **common,
            "linewidth": 1.9,
            "markersize": stroke.size,
            "markeredgecolor": "white",
            "markeredgewidth": 0.6,
        }
    hollow = {"markersize": stroke.size, "markerfacecolor": "none", "markeredgewidth": 1.0}
    return {**common, **hollow, "linewidth": 1.3, "linestyle": (0.0, stroke.dashes) if stroke.dashes else "-"}


def legend(figure: "Figure", strokes: dict[str, Stroke], *, above: bool) -> None:
    """Adds the legend and the height that it takes, so that the panels keep theirs.

    Args:
        figure: The drawing, with a layout engine that keeps a rectangle for the panels.
        strokes: What each label looks like, in order.
        above: Whether it stands above the panels: in a long column the foot is far from the first of them.
    """
    from matplotlib.lines import Line2D

    groups = [[item for item in strokes.items() if item[1].thin == thin] for thin in (False, True)]
    blocks = [
        _block(figure, [Line2D([], [], label=literal(label, 36), **look(stroke)) for label, stroke in group])
        for group in groups
        if group
    ]
    if not blocks:
        return
    tall = [block.get_window_extent().height / figure.dpi for block in blocks]
    height = figure.get_figheight() + sum(tall) + _MARGIN
    figure.set_figheight(height)
    top = height - _MARGIN if above else sum(tall) + _MARGIN
    for block, own in zip(blocks, tall, strict=True):
        top -= own
        block.set_bbox_to_anchor((0.5, top / height), figure.transFigure)
    share = (sum(tall) + _MARGIN) / height
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0.0, 0.0 if above else share, 1.0, 1.0 - share))  # pyright: ignore[reportCallIssue]


def _block(figure: "Figure", handles: "Sequence[Line2D]") -> "Legend":
    """Handles in as few lines of about equal length as the width allows, to be read line by line."""
    for lines in range(1, len(handles) + 1):
        columns = -(-len(handles) // lines)
        # matplotlib fills columns; a reader goes along lines.
        ordered = [handle for column in range(columns) for handle in handles[column::columns]]
        block = figure.legend(
            handles=ordered, loc="lower center", ncols=columns, frameon=False, handlelength=3.0, borderpad=0.2,
            borderaxespad=0.0, columnspacing=1.6,
        )  # fmt: skip
        if block.get_window_extent().width <= figure.bbox.width or columns == 1:
            return block
        block.remove()
    raise AssertionError("one handle in a line always ends the loop")
