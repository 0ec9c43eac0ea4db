"""The picture of a hunt: how far a class stands out in each family, beside what healthy networks show."""

from typing import TYPE_CHECKING

from netpurify.network import Hunt
from netpurify.report.kit.canvas import COLOURS, GRID, INK, Picture, literal, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _FRAME, _ROW = 5.6, 1.5, 0.26
"""Inches: the width, the height of title, axis and legend, and the height of a family."""
_TITLE = "How far a class stands out"
_NAME = 24
_GREY = "#B8B8B8"


def margins(hunt: Hunt, after: Hunt | None = None) -> Picture:
    """The margin of each family, with the median and the widest margin of healthy networks and the threshold.

    Args:
        hunt: What is drawn.
        after: The hunt in the repaired network, if there was one.

    Raises:
        InputError: matplotlib is not installed.
    """
    caption = (
        "By how many points the best class of each family stands out above the next. Grey bars go from the median to "
        "the widest margin of healthy networks, and upright lines are the margins from which on a class is suspect. A "
        "class can also be suspect by its success alone."
    )
    if after is not None:
        caption += " Diamonds are from the hunt after the repair, with another seed, judged on the held-out inputs."
    if any(not one.expected.hunts for one in hunt.families):
        caption += " Families without a grey bar were never calibrated."

    def fill(figure: "Figure") -> None:
        axes = figure.add_subplot()
        axes.set_title(_TITLE)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=GRID, linewidth=0.7, axis="x")
        axes.set_axisbelow(True)
        _draw(axes, hunt, after)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.0)

    size = (_WIDTH, _FRAME + _ROW * len(hunt.families))
    return Picture(render(fill, size=size, title=_TITLE, description=caption), caption)


def _draw(axes: "Axes", hunt: Hunt, after: Hunt | None) -> None:
    families = hunt.families
    places = list(range(len(families)))
    known = [place for place in places if families[place].expected.hunts]
    levels = [families[place].expected for place in known]
    starts = [100.0 * level.margin for level in levels]
    lengths = [max(0.6, 100.0 * (level.widest - level.margin)) for level in levels]
    if known:
        axes.barh(known, lengths, left=starts, height=0.5, color=_GREY, label="healthy networks, median to widest")
    thresholds = [100.0 * one.expected.threshold for one in families]
    axes.plot(thresholds, places, linestyle="none", marker="|", markersize=11.0, markeredgewidth=1.8, color=INK,
              label="threshold")  # fmt: skip
    name = "margin" if after is None else "before"
    for suspect, colour, words in ((False, COLOURS[0], name), (True, COLOURS[1], f"{name}, suspect")):
        chosen = [place for place in places if families[place].suspect == suspect]
        if chosen:
            axes.plot([100.0 * families[place].margin for place in chosen], chosen, linestyle="none", marker="o",
                      markersize=6.5, color=colour, label=words)  # fmt: skip
    if after is not None:
        axes.plot([100.0 * one.margin for one in after.families], range(len(after.families)), linestyle="none",
                  marker="D", markersize=6.0, markerfacecolor="none", markeredgewidth=1.6, color=COLOURS[2],
                  label="after")  # fmt: skip
    axes.set_yticks(places, [literal(one.family[:_NAME], _NAME) for one in families])
    axes.set_ylim(len(families) - 0.4, -0.6)
    axes.set_xlim(-2.0, 102.0)
    axes.set_xlabel("points")
