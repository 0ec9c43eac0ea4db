"""Figure 17 (ours): overlapping patches, stride and padding; and single patches beside Gao and Lafferty's numbers."""

import math
from itertools import pairwise

from netpurify.experiments.figures.claims.own_statements import half_limit, number, setting, statement
from netpurify.experiments.figures.claims.verdicts import level
from netpurify.experiments.figures.panels import line, rate_panel
from netpurify.experiments.figures.trials.overlapping import convolution
from netpurify.experiments.figures.trials.three_classes import mnist
from netpurify.findings import (
    Evidence,
    Experiment,
    Figure,
    Finding,
    Line,
    Mode,
    PlotPanel,
    Rule,
    TableRow,
    group,
    select,
    summarise,
)

SHARES = tuple(round(0.05 * step, 2) for step in range(1, 19))
PUBLISHED = {2.46: 0.25, 4.1: 0.40, 8.0: 0.55, 22.0: 0.725, 50.0: 0.825, 200.0: 0.90}
"""Share of altered weights at which half of the models are repaired, by fan-in over rank: read off the curves of Gao
and Lafferty, "Model Repair" (2020), to about 0.025."""
SPANNING = 10
"""At this stride the patches of signals span everything."""
SINGLE = (81, 49, 25, 9, 4)
"""Inputs of the networks with a single patch of 200 entries: the first five ratios of ``PUBLISHED``."""


def grid(mode: Mode) -> list[TableRow]:
    """Signals and digits under several kernels, strides and paddings; single patches with several n."""
    quick = mode == "quick"
    size: TableRow = {"padding": 0, "p": 15 if quick else 50, "steps": 100 if quick else 300}
    signal: TableRow = {"inputs": "normal", "n": 5, "length": 600, "rows": 1, "columns": 200} | size
    digit: TableRow = {"inputs": mnist(mode), "n": 21, "length": 784, "rows": 14, "columns": 28} | size
    square: TableRow = {"rows": 20, "columns": 20}
    strides = (200, 50, SPANNING) if quick else (200, 100, 50, 25, SPANNING)
    signals = [signal | {"stride": stride} for stride in strides]
    digits = [digit | {"stride": stride} for stride in ((14, 7) if quick else (14, 7, 2))]
    single = [signal | {"length": 200, "stride": 200, "n": n} for n in ((49, 9) if quick else SINGLE)]
    others = [
        signal | {"stride": 100, "padding": 100},
        digit | square | {"stride": 8},
        digit | square | {"stride": 4},
        digit | square | {"stride": 8, "padding": 4},
        digit | {"rows": 7, "columns": 7, "stride": 7},
    ]
    return [*signals, *digits, *single, *([] if quick else others)]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Every share of altered weights."""
    return convolution(settings, seed, shares=SHARES)


def cost(settings: TableRow) -> float:
    """Fits beyond the limit, which take longest where the rank is large."""
    return 0.05 + (0.01 if settings["inputs"] == "normal" else 0.05) * float(settings["p"] or 0)


def _cases(rows: list[TableRow]) -> list[tuple[str, list[TableRow]]]:
    """The rows of each cell, with its name."""
    keys = ["inputs", "n", "length", "rows", "columns", "stride", "padding"]
    found = []
    for (inputs, n, length, height, width, stride, padding), own in group(rows, keys).items():
        if inputs == "normal":
            name = f"n = {n}" if length == width else f"stride {stride}"
        else:
            name = f"{height} x {width}, stride {stride}"
        found.append((name + (f", padding {padding}" if padding else ""), own))
    return found


def _kind(rows: list[TableRow]) -> str:
    first = rows[0]
    if first["inputs"] != "normal":
        return "digits"
    return "single" if first["length"] == first["columns"] else "signals"


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Exact filters by stride, for signals and digits of one kernel; limits by fan-in over rank, for all cells."""
    drawn = []
    for kind, title in (("signals", "normal signals"), ("digits", "digits, 14 x 28")):
        # Where patches span everything no filter is exact: the table says so, and there is nothing to draw.
        own = [row for row in rows if row["rows"] in (1, 14) and not row["padding"] and row["stride"] != SPANNING]
        own = [row for row in own if _kind([row]) == kind]
        cells = group(own, ["stride"]).items()
        lines = [line(members, f"stride {stride}", x="eps", y="exact") for (stride,), members in cells]
        formulas = [_formula(members, "eps", "predicted") for _, members in cells]
        drawn.append(rate_panel(title, "share of exact filters", [*lines, *formulas], x="share of altered weights"))
    names = {"signals": "normal signals", "single": "single patches", "digits": "digits"}
    limits = [line(_points(rows, "exact", kind), name, x="ratio", y="limit") for kind, name in names.items()]
    table: list[TableRow] = [{"ratio": math.log2(ratio), "limit": limit} for ratio, limit in PUBLISHED.items()]
    published = line(table, "Gao and Lafferty", x="ratio", y="limit", baseline=True)
    formula = _formula(_points(rows, "predicted"), "ratio", "limit")
    title, y = "half of the filters exact", "share of altered weights"
    return [*drawn, rate_panel(title, y, [*limits, formula, published], x="log2 of fan-in over rank")]


def _formula(rows: list[TableRow], x: str, y: str) -> Line:
    return line(rows, "formula, random design", x=x, y=y, baseline=True, thing="generic")


def _points(rows: list[TableRow], column: str = "exact", kind: str | None = None) -> list[TableRow]:
    """For each cell whose patches do not span everything: where half of the filters are exact, and fan-in over rank."""
    return [
        {"ratio": math.log2(_size(own, "live") / _size(own, "rank")), "limit": half_limit(own, column)}
        for _, own in _cases(rows)
        if kind in (None, _kind(own)) and _size(own, "rank") < _size(own, "live")
    ]


def _size(rows: list[TableRow], column: str) -> float:
    return level(rows, column).mean


SPAN = Rule(
    claim="Overlap, stride and padding leave the argument as it is: training moves each filter within the span of all "
    "its patches.",
    where="ours; the paper asks for patches that do not overlap",
    measure="The part of training's change of W outside the span is at most 1e-10 of it in every network: holds; at "
    "most 1e-6: holds with limits.",
    reason="The gradient of a filter is a sum of patches, whichever entries they share.",
)
GENERIC = Rule(
    claim="For normal signals the limit is that of a generic design with the rank of all patches, overlapping or not.",
    where="ours",
    measure="The share of exact filters lies within 0.1 of the formula at every eps, stride and padding, and of single "
    "patches: holds; within 0.2: holds with limits.",
    reason="Only fan-in and rank enter the formula; overlapping patches are not independent, so it need not hold.",
)
DIGITS = Rule(
    claim="For digits a smaller stride lowers the limit too, and it lies below that of a generic design everywhere.",
    where="ours",
    measure="The eps at which half of the filters are exact falls with every smaller stride of the same kernel, and is "
    "at least 0.03 below the formula's wherever the patches do not span everything: holds; falls from the first to the "
    "last: holds with limits.",
    reason="Pixels are never negative, and N(1, 1) leans to one side.",
)
SINGLES = Rule(
    claim="With a single patch (m = 1) the limits are those that Gao and Lafferty published for fully connected "
    "networks.",
    where="ours; the paper says that m = 1 is their case",
    measure="The eps at which half of the filters are exact lies within 0.05 of the published value at every ratio: "
    "holds; within 0.1: holds with limits.",
    reason="Their values are read off curves, to about 0.025.",
)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The span, normal signals, digits, single patches."""
    rows = select(rows, failure=None) if any("failure" in row for row in rows) else rows
    cases = _cases(rows)
    return [_span(rows, cases), _generic(cases), _digits(cases), _singles(cases)]


def _span(rows: list[TableRow], cases: list[tuple[str, list[TableRow]]]) -> Finding:
    worst = max(float(row["outside"] or 0.0) for row in rows)
    table = [
        [_kind(own), name, *(number(_size(own, column), 0) for column in ("m", "fan_in", "live", "rank"))]
        for name, own in cases
    ]
    return statement(
        SPAN,
        f"largest part outside the span, over all networks: {worst:.0e} of the change",
        needed=[level(rows, "outside")],
        holds=worst <= 1e-10,
        limits=worst <= 1e-6,
        evidence=[Evidence("Patches, fan-in and rank", ["inputs", "patches", "m", "fan-in", "live", "rank"], table)],
        why="More patches mean more rank, up to min(n m, fan-in): a stride of 10, or kernels of 7 x 7, span "
        "everything, and then nothing can be told apart.",
    )


def _generic(cases: list[tuple[str, list[TableRow]]]) -> Finding:
    table, off, needed = [], [], []
    for name, own in cases:
        if _kind(own) == "digits":
            continue
        measured, expected = (summarise(own, ["eps"], column) for column in ("exact", "predicted"))
        off.append(max(abs(measured[eps].mean - expected[eps].mean) for eps in measured))
        needed += measured.values()
        limits = (_limit(own, "exact"), _limit(own, "predicted"))
        table.append([name, number(_size(own, "rank"), 0), *limits, number(off[-1])])
    return statement(
        GENERIC,
        f"largest difference from the formula: {max(off):.3f}",
        needed=needed,
        holds=max(off) <= 0.1,
        limits=max(off) <= 0.2,
        evidence=[Evidence("Share at which half of the filters are exact, and largest difference of the curves",
                           ["patches", "rank", "measured", "formula", "difference"], table)],
        why="Patches that share entries are as good as others of the same number: what counts is the rank, n m here.",
    )  # fmt: skip


def _limit(rows: list[TableRow], column: str) -> str:
    """Where half of the filters are exact; none if the patches span everything."""
    return number(half_limit(rows, column)) if _size(rows, "rank") < _size(rows, "live") else "none"


def _digits(cases: list[tuple[str, list[TableRow]]]) -> Finding:
    own = [(name, rows) for name, rows in cases if _kind(rows) == "digits"]
    found = {name: (half_limit(rows), half_limit(rows, "predicted")) for name, rows in own}
    told = {name: _size(rows, "rank") < _size(rows, "live") for name, rows in own}
    ladders = [
        [found[name][0] for name, rows in own if rows[0]["rows"] == height and not rows[0]["padding"]]
        for height in (14, 20)
    ]
    falling = all(first > last for limits in ladders for first, last in pairwise(limits))
    below = all(formula - limit >= 0.03 for name, (limit, formula) in found.items() if told[name])
    table = [
        [name, *(number(_size(rows, column), 0) for column in ("rank", "live")), _limit(rows, "exact"),
         _limit(rows, "predicted")]
        for name, rows in own
    ]  # fmt: skip
    return statement(
        DIGITS,
        "half of the filters are exact up to: "
        + ", ".join(f"{name} {number(limit)}" for name, (limit, _) in list(found.items())[:3]),
        needed=[level(rows, "exact") for _, rows in own],
        holds=falling and below,
        limits=all(limits[-1] < limits[0] for limits in ladders if len(limits) > 1),
        evidence=[Evidence("Share at which half of the filters are exact",
                           ["kernel and stride", "rank", "live", "measured", "formula"], table)],
        why="The odds on the design at hand are lower than on a generic one; Figure 14 has them.",
    )  # fmt: skip


def _singles(cases: list[tuple[str, list[TableRow]]]) -> Finding:
    table, off, needed = [], [], []
    for name, own in cases:
        if _kind(own) != "single":
            continue
        ratio = _size(own, "live") / _size(own, "rank")
        close = min(PUBLISHED, key=lambda value: abs(math.log(value / ratio)))
        limit = half_limit(own)
        off.append(abs(limit - PUBLISHED[close]))
        needed.append(level(own, "exact"))
        formula = half_limit(own, "predicted")
        table.append([name, number(ratio, 2), number(limit), number(formula), number(PUBLISHED[close])])
    return statement(
        SINGLES,
        f"largest difference from the published values, over {len(table)} ratios: {max(off):.3f}",
        needed=needed,
        holds=max(off) <= 0.05,
        limits=max(off) <= 0.1,
        evidence=[Evidence("Share at which half of the filters are exact",
                           ["inputs", "fan-in / rank", "measured", "formula", "published"], table)],
        why="One formula, of fan-in and rank alone, covers the paper's network and theirs on normal inputs.",
    )  # fmt: skip


EXPERIMENT = Experiment(
    name="overlapping-patches",
    title="Overlapping, strided and padded patches, and single patches: share of exact filters",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
FIGURE = Figure(
    number=17,
    title="Overlapping patches, stride and padding",
    settings=(
        setting("network", "convolution, ReLU, sum over places, output layer; p = 50 (quick: 15)",
                "any patches"),
        setting("training", "Algorithm 1, joint, gamma = min(1, 5 / m^2), 300 steps", "as in Figure 4"),
        setting("normal signals", "n = 5 of length 600, kernel 200, stride 200 to 10, padding 0 or 100"),
        setting("digits", "n = 21, raw pixels, kernels 14 x 28, 20 x 20, 7 x 7", "14 x 28 with stride 14: m = 2"),
        setting("single patches", f"k = 200, n = {', '.join(map(str, SINGLE))}", "ratios of Gao and Lafferty"),
        setting("noise", "N(1, 1) on W", "as in the paper"),
        setting("share eps", "0.05 to 0.9 in steps of 0.05"),
        setting("trials", "10"),
    ),
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
    remarks=("A weight is live if some patch is not 0 there; the limit counts live weights.",),
    ours=True,
)  # fmt: skip
