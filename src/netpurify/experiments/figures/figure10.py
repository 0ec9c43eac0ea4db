"""Figure 10: several hidden layers on MNIST, purified with training images."""

from typing import Any

from netpurify.experiments.figures import backdoors
from netpurify.experiments.figures.panels import ALIKE, baselines, chance, coincidence, line, main_line, rate_panel
from netpurify.experiments.figures.settings import settings_of, units_of
from netpurify.experiments.figures.three_classes import mnist
from netpurify.experiments.figures.verdicts import graded, level, listed, show, simple, values
from netpurify.findings import Experiment, Figure, Finding, Line, Mode, PlotPanel, TableRow

CLEAN = 36


def grid(mode: Mode) -> list[TableRow]:
    """Two and three hidden layers, shares of poisoned images."""
    ratios = (0.0, 0.3) if mode == "quick" else (0.0, 0.1, 0.2, 0.3, 0.4)
    width, steps = (100, 500) if mode == "quick" else (300, 1000)
    return [
        {"data": mnist(mode), "training": 99, "poison": "all", "ratio": ratio, "m": 2, "k": 392, "p": width,
         "layers": layers, "rate": 0.5, "steps": steps}
        for layers in (1, 2, 3)
        for ratio in ratios
    ]  # fmt: skip


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Clean images from both places."""
    return backdoors.backdoor(settings, seed, counts=(CLEAN,), pixels=range(5))


def cost(settings: TableRow) -> float:
    """Every further layer has its own training and its own fits."""
    return float(settings["p"] or 0) * {1: 0.018, 2: 0.025, 3: 0.06}[int(settings["layers"] or 1)]


def panels(rows: list[TableRow], origin: str = "training") -> list[PlotPanel]:
    """Attack success above, accuracy below; one column per number of hidden layers."""
    rows = main_line(rows)
    return [_panel(rows, origin, y, depth) for y in ("asr_all", "accuracy") for depth in values(rows, "layers")]


def _panel(rows: list[TableRow], origin: str, y: str, depth: int) -> PlotPanel:
    fixed: dict[str, Any] = {"x": "ratio", "y": y, "layers": depth}
    after = line(rows, f"after, l = {depth}", thing=f"l = {depth}", method="l1", origin=origin, **fixed)
    squares = baselines(rows, ("l2",), origin=origin, **fixed)
    lines: list[Line] = [after, *baselines(rows, ("before",), **fixed), *squares]
    if y == "accuracy":
        return PlotPanel(f"accuracy, l = {depth}", "share of poisoned images", "accuracy", lines)
    lines.append(chance(values(rows, "ratio")))
    note = coincidence([after, *squares], "l1 and l2", floor=0.0, most=ALIKE)
    return rate_panel(f"attack success, l = {depth}", "attack success rate", lines, note=note)


def findings(rows: list[TableRow], origin: str = "training", goal: float = 0.05) -> list[Finding]:
    """Before and after at three poisoned images in ten, by number of layers."""
    depths = values(rows, "layers")
    at: dict[str, Any] = {"ratio": 0.3}
    before = {(d, y): level(rows, y, method="before", layers=d, **at) for d in depths for y in ("asr_all", "accuracy")}
    after = {
        (d, y): level(rows, y, method="l1", layers=d, origin=origin, **at)
        for d in depths
        for y in ("asr_all", "accuracy")
    }
    base = {d: level(rows, "asr_all", method="before", layers=d, ratio=0.0) for d in depths}
    drops = {d: before[d, "asr_all"].mean - after[d, "asr_all"].mean for d in depths}
    lost = {d: before[d, "accuracy"].mean - after[d, "accuracy"].mean for d in depths}
    needed = [*before.values(), *after.values(), *base.values()]
    attacked = all(before[d, "asr_all"].mean >= base[d].mean + 0.3 for d in depths)
    return [
        simple(
            "A notable reduction of the attack success rate with several hidden layers, for poisoned ratios up to 30 "
            "%.",
            "asr_all before and after: "
            + listed((f"l = {d}", f"{show(before[d, 'asr_all'])} -> {show(after[d, 'asr_all'])}") for d in depths),
            graded(
                needed,
                holds=attacked and all(after[d, "asr_all"].mean <= base[d].mean + goal for d in depths),
                limits=attacked and all(drop > 0.05 for drop in drops.values()),
            ),
            f"Points taken off: {listed((f'l = {d}', f'{100 * drops[d]:.0f}') for d in depths)}; without poisoned "
            f"images: " + listed((f"l = {d}", show(base[d])) for d in depths),
        ),
        simple(
            "The decline in accuracy is relatively minor.",
            "accuracy before and after: "
            + listed((f"l = {d}", f"{show(before[d, 'accuracy'])} -> {show(after[d, 'accuracy'])}") for d in depths),
            graded(needed, holds=max(lost.values()) < 0.03, limits=max(lost.values()) < 0.06),
        ),
    ]


EXPERIMENT = Experiment(
    name="mnist-layers",
    title="MNIST, 99 training images, some poisoned: number of hidden layers",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
FIGURE = Figure(
    number=10,
    title="Several hidden layers on MNIST, purified with training images",
    settings=settings_of(10, EXPERIMENT, counts=(CLEAN,), pixels=range(5)),
    experiment=EXPERIMENT,
    units=units_of,
    panels=panels,
    findings=findings,
)
