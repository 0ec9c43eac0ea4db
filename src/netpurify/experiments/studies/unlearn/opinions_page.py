"""The section of the page about second opinions, and its drawing."""

from collections.abc import Sequence
from io import StringIO
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.defence.means import TITLES
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.unlearn.opinions import INDICATORS
from netpurify.findings import TableRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HALF = 0.5
"""The way of repairs that are compared with one another alone."""
LEFT, GONE = 0.1, 0.03
"""A backdoor is left if its success is this far above the floor, and gone if it is at most so far above it."""
SMALL = ("size",)
"""Indicators that are small where a backdoor is."""
DRAWN = ("alarm", "size", "pull")
"""Indicators in the drawing."""
LOOKS = {"mnist_cnn": ("#0072b2", "o"), "fashion_cnn": ("#009e73", "^"), "resnet": ("#d55e00", "s"),
         "sample_cnn": ("#555555", "d")}  # fmt: skip
TEXT = """## Second opinions

Does anything tell how much of a backdoor a repair has left, without the trigger? {repairs} repairs of {networks}
poisoned networks: the weights go 0.25, 0.5, 0.75 and all of the way from the contaminated to the repaired ones, and
one repair is not trained against the family that found the backdoor best. *Rank correlation* is Spearman's, with the
attack success that is left; *half way* only among repairs that go 0.5 of the way, because along the way everything
that changes steadily goes with the attack success, also `change`, which knows nothing of it. *Tells apart*: how often
the indicator is worse for a repair that leaves more than {left:.0f} points above the floor ({many} repairs) than for
one that leaves at most {gone:.0f} ({few}); 0.5 is chance, 1 is perfect. The next column has only repairs after which
the hunt finds nothing ({silent_many} and {silent_few}). The last one is the median of healthy networks.

**What follows.** None of these is a second opinion. Among repairs that go equally far, no indicator goes with what is
left of the attack. Along the way the alarm of the hunt after the repair tells most, before a class is suspect, and
families held back from training, a direction of the activations and the size of a free pattern tell less. Of repairs
that went all the way none left a backdoor here, so these figures say nothing of a repair that is trained to the end
and fails silently, as one on Fashion-MNIST did (see above), and one in an experiment.

![Indicators and what is left of the attack](figures/opinions.svg)

*Each mark is a repair; filled: the hunt afterwards finds nothing.*
"""


def above_floor(row: TableRow) -> float:
    """By how much the attack success exceeds that of a healthy network."""
    return number(row["asr"]) - number(row["floor"])


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: the correlation of ranks."""
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def area(left: Sequence[float], gone: Sequence[float]) -> float | None:
    """How often an indicator is higher where a backdoor is left than where it is gone; ties count half."""
    if not left or not gone:
        return None
    ranks = rankdata([*left, *gone])[: len(left)]
    return float((ranks.sum() - len(left) * (len(left) + 1) / 2) / (len(left) * len(gone)))


def separation(rows: Sequence[TableRow], indicator: str) -> float | None:
    """The area of an indicator over repairs that leave a backdoor and repairs after which it is gone."""
    sign = -1.0 if indicator in SMALL else 1.0
    values = [
        [sign * number(row[indicator]) for row in rows if wanted(above_floor(row))]
        for wanted in (lambda excess: excess > LEFT, lambda excess: excess <= GONE)
    ]
    return area(values[0], values[1])


def opinions_section(rows: list[TableRow]) -> str:
    """What each indicator tells of the success that the real trigger has left."""
    mended = [row for row in rows if row["attack"] != "none" and row["repair"] != "nothing"]
    silent = [row for row in mended if not row["found_after"]]
    if not mended:
        return ""
    lines = []
    for name, words in INDICATORS.items():
        halfway = [row for row in mended if row["way"] == HALF]
        orders = [f"{order:+.2f}" if (order := _order(some, name)) is not None else "" for some in (mended, halfway)]
        healthy = [number(row[name]) for row in rows if row["attack"] == "none"]
        cells = [_two(separation(some, name)) for some in (mended, silent)]
        lines.append([f"`{name}`", words, *orders, *cells, f"{median(healthy):.2f}" if healthy else ""])
    (many, few), (silent_many, silent_few) = (
        (sum(above_floor(row) > LEFT for row in some), sum(above_floor(row) <= GONE for row in some))
        for some in (mended, silent)
    )
    networks = len({(row["network"], row["attack"], row["seed"]) for row in mended})
    text = TEXT.format(
        repairs=len(mended), networks=networks, left=100 * LEFT, gone=100 * GONE, many=many, few=few,
        silent_many=silent_many, silent_few=silent_few,
    )  # fmt: skip
    columns = ["indicator", "what it is", "rank correlation", "half way", "tells apart", "where nothing is found"]
    columns += ["healthy"]
    return "\n".join([text, markdown.table(columns, lines, texts=2), ""])


def _order(rows: Sequence[TableRow], indicator: str) -> float | None:
    """Rank correlation of an indicator with the attack success that is left; none of fewer than four repairs."""
    values, left = ([number(row[name]) for row in rows] for name in (indicator, "asr"))
    return correlation(values, left) if len(rows) > 3 and min(len(set(values)), len(set(left))) > 1 else None


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def opinions_picture(rows: list[TableRow]) -> str:
    """The drawing as SVG; the same bytes on every call."""
    import matplotlib as mpl

    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": "opinions"}):
        draw(rows).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def draw(rows: list[TableRow]) -> "Figure":
    """Attack success that is left against three of the indicators."""
    from matplotlib.figure import Figure

    mended = [row for row in rows if row["attack"] != "none" and row["repair"] != "nothing"]
    figure = Figure(figsize=(11.4, 3.9), layout="constrained")
    panels = figure.subplots(1, len(DRAWN), sharey=True)
    for panel, name in zip(panels, DRAWN, strict=True):
        for network in dict.fromkeys(str(row["network"]) for row in mended):
            colour, marker = LOOKS[network]
            own = [row for row in mended if row["network"] == network]
            values = [number(row[name]) for row in own]
            faces = ["none" if row["found_after"] else colour for row in own]
            panel.scatter(values, [100 * number(row["asr"]) for row in own], s=26, marker=marker, facecolors=faces,
                          edgecolors=colour, linewidths=1.0, label=TITLES[network])  # fmt: skip
        panel.set(xlabel=name, ylim=(-3, 103))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("attack success left, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure
