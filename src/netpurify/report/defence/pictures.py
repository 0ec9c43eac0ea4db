"""Pictures of a defence: what each strength costs, and what layers keep of their directions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from netpurify.network import Defence, DefendedLayer
from netpurify.report.defence.summary import Price
from netpurify.report.kit.canvas import COLOURS, INK, Picture, literal, picture
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import count, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = 6
_POINTS = 300
"""Points of a line, at most."""


def curve(result: Defence) -> Picture:
    """Disagreement on held-out inputs against strength, with its bounds, what was allowed and what was chosen.

    Raises:
        InputError: matplotlib is not installed.
    """
    price, chosen = Price.of(result), result.chosen
    allowed = [price.allowed] if price.automatic else []
    caption = (
        f"Share of {count(chosen.inputs)} held-out clean inputs that are given another class, for each strength tried; "
        f"whiskers go up to the exact bounds, which hold together with 95 % confidence. Chosen: {chosen.strength:g}, "
        f"with {share(chosen.disagreement)}"
    )
    caption += "".join(f"; {share(level)} allowed" for level in allowed) + "."
    strengths = [step.strength for step in result.curve]
    heights = [100.0 * step.disagreement for step in result.curve]
    bounds = [100.0 * step.bound(price.level) for step in result.curve]
    above = [bound - height for bound, height in zip(bounds, heights, strict=True)]

    def fill(axes: "Axes") -> None:
        axes.set_xscale("log")
        axes.errorbar(strengths, heights, yerr=[[0.0] * len(above), above], color=COLOURS[0], ecolor=COLOURS[5],
                      elinewidth=1.6, capsize=4.0, linewidth=1.9, marker="o", markersize=5.0,
                      label="disagreement, 95 % bound")  # fmt: skip
        for level in allowed:
            axes.axhline(100.0 * level, color=INK, linestyle="--", linewidth=1.2, label=f"allowed: {share(level)}")
        axes.plot([chosen.strength], [100.0 * chosen.disagreement], color=COLOURS[1], marker="o", markersize=11.0,
                  markerfacecolor="none", markeredgewidth=2.0, linestyle="none",
                  label=f"chosen: {chosen.strength:g}")  # fmt: skip
        axes.set_xlim(min(strengths) / 1.6, max(strengths) * 1.6)
        axes.set_xticks(strengths, [f"{value:g}" for value in strengths])
        axes.set_ylim(0.0, 1.6 * max([*bounds, *(100.0 * level for level in allowed)]))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        axes.legend(loc="upper left", frameon=False, fontsize=9.0)
        axes.set_xlabel("strength")
        axes.set_ylabel("another class")

    return picture(fill, title="What each strength costs", caption=caption)


def kept(layers: Sequence[DefendedLayer]) -> Picture:
    """What some layers keep of their response, direction by direction.

    Raises:
        InputError: matplotlib is not installed.
    """
    places = np.unique(np.linspace(0, len(layers) - 1, min(_MOST_LINES, len(layers))).round().astype(np.intp))
    shown = [layers[place] for place in places]
    some = "" if len(layers) == len(shown) else f" of {count(len(shown))} of {count(len(layers))} layers"
    caption = (
        f"Share of the response that is kept in each principal direction of the clean inputs, strongest first{some}. "
        "What lies above a line was forgotten; a trigger that uses directions on the left is not."
    )

    def fill(axes: "Axes") -> None:
        for layer, colour in zip(shown, COLOURS, strict=False):
            point = np.unique(np.linspace(0, layer.kept.size - 1, min(_POINTS, layer.kept.size)).astype(np.intp))
            axes.plot(100.0 * (point + 1) / layer.kept.size, 100.0 * layer.kept[point], color=colour, linewidth=1.7,
                      label=literal(module_name(layer.name), 24))  # fmt: skip
        axes.set_xlim(0.0, 100.0)
        axes.set_ylim(0.0, 104.0)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:g} %")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, frameon=False, fontsize=9.0)
        axes.set_xlabel("directions, strongest first")
        axes.set_ylabel("kept")

    return picture(fill, title="What layers keep", caption=caption)
