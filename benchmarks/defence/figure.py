"""The figure of the defences' table: who is where, in accuracy lost and attack success."""

from collections.abc import Iterator
from statistics import fmean

from matplotlib.figure import Figure

import means
from netpurify.findings import TableRow

COLOURS = {"defend": "#d55e00", "fine-tuning": "#0072b2", "fine-pruning": "#56b4e9", "CLP": "#009e73", "ANP": "#cc79a7",
           "Algorithm 2": "#e69f00", "least squares": "#999999"}  # fmt: skip
EDGE = 6.0
"""Where the figure ends, in points of accuracy; what lost more stands there with its number."""
MARKERS = {"patch": "s", "blended": "o", "sig": "^", "wanet": "D"}


def draw(rows: list[TableRow]) -> Figure:
    """Points of accuracy lost against attack success, a panel for each network; the lower left corner is the aim."""
    networks = list(dict.fromkeys(str(row["network"]) for row in rows))
    figure = Figure(figsize=(3.9 * len(networks) + 1.8, 4.8), layout="constrained")
    panels = figure.subplots(1, len(networks), sharex=True, sharey=True, squeeze=False)[0]
    for panel, network in zip(panels, networks, strict=True):
        own = [row for row in rows if row["network"] == network]
        for defence, attack, lost, asr, held_out in _points(own):
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


def _points(rows: list[TableRow]) -> Iterator[tuple[str, str, float, float, bool]]:
    for held_out in (False, True):
        for attack in MARKERS:
            own = [row for row in rows if row["attack"] == attack and row["held_out"] == held_out]
            for defence in COLOURS:
                found = means.of(own, defence)
                if found:
                    lost = 100 * (means.before(own, attack)[0] - fmean(means.number(row, "accuracy") for row in found))
                    yield defence, attack, lost, fmean(means.number(row, "asr") for row in found), held_out
