"""The pictures of docs/evidence.md, as functions of its tables; ``python tools/evidence`` writes them."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from netpurify import lad

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
_TRUE, _FALSE, _GREY = "#1b6ca8", "#c4462f", "#6b6b6b"
_LOOKS: Any = {"svg.hashsalt": "netpurify", "svg.fonttype": "path", "font.size": 9}


def as_svg(figure: Figure, title: str) -> str:
    """A figure as SVG that is the same in every run, on a white ground, with a title for screen readers."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", facecolor="white", metadata={"Date": None, "Title": title})
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def idea(_: Tables) -> str:
    """Any two points lie on a line; many on one line are no accident, unless alterations agree."""
    rng = np.random.default_rng(8)
    x = np.sort(rng.uniform(0.0, 1.0, 24))
    design = np.column_stack([np.ones(24), x])
    hit = rng.permutation(24) < 9
    free = np.where(hit, rng.normal(0.4, 0.5, 24), 0.0)
    agreeing = np.where(hit, 0.9 - 1.2 * x, 0.0)
    with mpl.rc_context(_LOOKS):
        figure = Figure(figsize=(7.6, 2.9), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for axis, amount, title in zip(
            axes, (free, agreeing), ("alterations without a rule", "alterations that agree"), strict=True
        ):
            b = design @ [0.2, 0.8] + amount
            fit = design @ np.asarray(lad.solve(design, b).coefficients)
            axis.plot(x, fit, color=_TRUE, linewidth=1, label="L1 fit")
            pair = np.flatnonzero(hit)[[2, 4]]
            line = np.polyfit(x[pair], b[pair], 1)
            axis.plot(x, np.polyval(line, x), "--", color=_GREY, linewidth=1, label="through two altered points")
            axis.plot(x[~hit], b[~hit], "o", color=_TRUE, markersize=4, label="unaltered")
            axis.plot(x[hit], b[hit], "s", color=_FALSE, markersize=4, label="altered")
            axis.set_title(title, fontsize=9)
            axis.set_xticks([])
            axis.set_yticks([])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        return as_svg(figure, "Points and lines: many points on one line are evidence unless alterations agree")


def adversary(tables: Tables) -> str:
    """Recovered, truly and falsely, over the share of altered rows, for generic and for agreeing alterations."""
    rows = tables["adversary"]
    share = [row["share"] for row in rows]
    with mpl.rc_context(_LOOKS):
        figure = Figure(figsize=(7.6, 2.6), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for axis, kind in zip(axes, ("generic", "agreeing"), strict=True):
            axis.plot(share, [row[f"{kind}, true"] for row in rows], "o-", color=_TRUE, markersize=3, label="the truth")
            axis.plot(
                share, [row[f"{kind}, false"] for row in rows], "s-", color=_FALSE, markersize=3, label="not the truth"
            )
            axis.set_title(f"{kind} alterations", fontsize=9)
            axis.set_xlabel("share of altered rows")
        axes[0].set_ylabel("share of columns\ncalled RECOVERED")
        axes[0].legend(frameon=False)
        return as_svg(figure, "Columns called RECOVERED, by whether the fit is the truth")  # fmt: skip


def floor(tables: Tables) -> str:
    """Accidental zeros over the noise floor: measured, expected, and what the verifier subtracts."""
    rows = tables["accidental-zeros"]
    floors = [row["floor"] for row in rows]
    with mpl.rc_context(_LOOKS):
        figure = Figure(figsize=(4.6, 2.8), layout="constrained")
        axis = figure.subplots()
        axis.loglog(
            floors, [row["subtracted by rule 5"] for row in rows], "--", color=_GREY, label="subtracted by rule 5"
        )
        axis.loglog(floors, [row["proposition"] for row in rows], "-", color=_TRUE, label="expected, proposition 3")
        axis.loglog(floors, [row["measured"] for row in rows], "o", color=_FALSE, markersize=4, label="measured")
        axis.axhline(1.0, color=_GREY, linewidth=0.6)
        axis.set_xlabel("noise floor, in standard deviations of the noise")
        axis.set_ylabel("residuals below it\nfor each column")
        axis.legend(frameon=False)
        return as_svg(figure, "Residuals that a noise floor catches by chance")


PICTURES: dict[str, Callable[[Tables], str]] = {"idea": idea, "adversary": adversary, "floor": floor}
