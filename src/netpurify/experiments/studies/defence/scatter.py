"""The drawing of the table of defences: accuracy lost against attack success."""

from collections.abc import Iterator, Mapping
from io import StringIO
from statistics import fmean
from typing import TYPE_CHECKING

from netpurify.experiments.studies.defence import means
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.study import Tables
from netpurify.findings import TableRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"defend": "#d55e00", "fine-tuning": "#0072b2", "fine-pruning": "#56b4e9", "CLP": "#009e73", "ANP": "#cc79a7",
           "Algorithm 2": "#e69f00", "least squares": "#999999"}  # fmt: skip
EDGE = 6.0
"""Right end of the drawing, in points of accuracy; a defence that lost more is drawn there, with its number."""
MARKERS = {"patch": "s", "blended": "o", "sig": "^", "wanet": "D"}


def pictures(tables: Tables) -> Mapping[str, str]:
    """The drawing as SVG, by its path beside the page; the same bytes on every call."""
    import matplotlib as mpl

    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": "defences"}):
        draw(tables["defences"]).savefig(text, format="svg", metadata={"Date": None})
    return {"figures/defences.svg": text.getvalue()}


def draw(rows: list[TableRow]) -> "Figure":
    """Points of accuracy lost against attack success, a panel for each network; the best place is the lower left."""
    from matplotlib.figure import Figure

    networks = list(dict.fromkeys(str(row["network"]) for row in rows))
    figure = Figure(figsize=(3.9 * len(networks) + 1.8, 4.8), layout="constrained")
    panels = figure.subplots(1, len(networks), sharex=True, sharey=True, squeeze=False)[0]
    for panel, network in zip(panels, networks, strict=True):
        own = [row for row in rows if row["network"] == network]
        for defence, attack, lost, asr, held_out in points(own):
            fill = COLOURS[defence] if held_out else "none"
            size, order = (9, 4) if defence == "defend" else (7, 3)
            panel.plot(min(lost, EDGE), 100 * asr, MARKERS[attack], color=COLOURS[defence], markerfacecolor=fill,
                       markersize=size, markeredgewidth=1.6, clip_on=False, zorder=order)  # fmt: skip
            if lost > EDGE:
                panel.annotate(f"{lost:.0f} \N{RIGHTWARDS ARROW}", (EDGE, 100 * asr), xytext=(-7, 0), fontsize=9,
                               textcoords="offset points", ha="right", va="center")  # fmt: skip
        panel.axvspan(-1, 2, ymax=0.05, color="#009e73", alpha=0.25, linewidth=0)
        panel.set(title=means.TITLES[network], xlabel="accuracy lost, points", xlim=(-1, EDGE), ylim=(0, 100))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("attack success, %")
    for name, colour in COLOURS.items():
        panels[-1].plot([], [], "o", color=colour, label=name)
    for name, marker in MARKERS.items():
        panels[-1].plot([], [], marker, color="black", markerfacecolor="none", label=name)
    panels[-1].plot([], [], "o", color="black", label="set aside (hollow: development)")
    panels[-1].plot([], [], "s", color="#009e73", alpha=0.25, label="the aim")
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def points(rows: list[TableRow]) -> Iterator[tuple[str, str, float, float, bool]]:
    """Defence, attack, points of accuracy lost, attack success, and whether the networks were set aside."""
    for held_out in (False, True):
        for attack in MARKERS:
            own = [row for row in rows if row["attack"] == attack and row["held_out"] == held_out]
            for defence in COLOURS:
                chosen = means.main_rows(own, defence)
                if chosen:
                    lost = 100 * (means.before(own, attack)[0] - fmean(number(row["accuracy"]) for row in chosen))
                    yield defence, attack, lost, fmean(number(row["asr"]) for row in chosen), held_out
