"""The drawing of the hunts: false alarms and backdoors found, against how high thresholds are."""

from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING

from netpurify.experiments.studies.defence.means import TITLES
from netpurify.experiments.studies.defence.scenarios import ATTACKS
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.study import Tables
from netpurify.experiments.studies.unlearn.alarms import calibration, kind_of
from netpurify.experiments.studies.unlearn.opinions_page import opinions_picture
from netpurify.findings import TableRow, group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = {"healthy": ("#0072b2", "-"), "poisoned": ("#d55e00", "--")}
ACROSS = 3
"""Panels beside one another."""
END = 2.0
"""Right end of the drawing, in thresholds."""


def pictures(tables: Tables) -> Mapping[str, str]:
    """The drawings as SVG, by their paths beside the page; the same bytes on every call."""
    import matplotlib as mpl

    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": "hunts"}):
        draw(tables["hunts"]).savefig(text, format="svg", metadata={"Date": None})
    return {"figures/hunts.svg": text.getvalue(), "figures/opinions.svg": opinions_picture(tables["opinions"])}


def highest_alarms(rows: list[TableRow]) -> list[tuple[str, str, float]]:
    """Network, healthy or poisoned, and the highest alarm of any family, for each hunt; attacks with a family only."""
    expected = calibration(rows)
    found = []
    for some in group(
        [row for row in rows if row["attack"] in ATTACKS], ["network", "attack", "seed", "hunt"]
    ).values():
        levels = expected.get(kind_of(some[0]), next(iter(expected.values())))
        alarms = [
            levels.of(str(row["family"])).alarm(number(row["success"]), number(row["margin"]))
            for row in some
            if row["attack"] == "none" or row["class"] == row["target"]
        ]
        kind = "healthy" if some[0]["attack"] == "none" else "poisoned"
        found.append((str(some[0]["network"]), kind, max(alarms, default=0.0)))
    return found


def draw(rows: list[TableRow]) -> "Figure":
    """Share of hunts whose highest alarm reaches a level, a panel for each network."""
    from matplotlib.figure import Figure

    hunts = highest_alarms(rows)
    networks = list(dict.fromkeys(network for network, _, _ in hunts))
    across = min(ACROSS, len(networks))
    down = -(-len(networks) // across)
    figure = Figure(figsize=(4.0 * across + 0.6, 3.6 * down), layout="constrained")
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flatten()
    for panel in panels[len(networks) :]:
        panel.set_axis_off()
    for panel, network in zip(panels, networks, strict=False):
        for kind, (colour, dashes) in LOOKS.items():
            alarms = sorted(alarm for name, one, alarm in hunts if (name, one) == (network, kind))
            if alarms:
                shares = [100 * (1 - place / len(alarms)) for place in range(len(alarms))]
                panel.step([0.0, *alarms, END], [100.0, *shares, 0.0], where="pre", color=colour, linestyle=dashes,
                           linewidth=2.0, label=f"{kind} ({len(alarms)} hunts)")  # fmt: skip
        panel.axvline(1.0, color="black", linewidth=1.0, linestyle=":")
        panel.set(
            title=TITLES[network],
            xlabel="level, as a share of what is suspect",
            xlim=(0, 1.02 * END),
            ylim=(0, 103),
            xticks=[0.0, 0.5, 1.0, 1.5, 2.0],
        )
        panel.grid(alpha=0.3)
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False, fontsize=9)
    for panel in panels[::across]:
        panel.set_ylabel("hunts that reach the level, %")
    return figure
