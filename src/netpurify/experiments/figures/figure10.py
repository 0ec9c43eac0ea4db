"""Figure 10: several hidden layers on MNIST, purified with training images."""

from typing import Any

from netpurify.experiments.figures.claims import attack, attack_additions, deep
from netpurify.experiments.figures.claims.verdicts import values
from netpurify.experiments.figures.panels import ALIKE, baselines, chance, coincidence, line, main_line, rate_panel
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.experiments.figures.trials import backdoors
from netpurify.experiments.figures.trials.three_classes import mnist
from netpurify.findings import Experiment, Figure, Finding, Line, Mode, PlotPanel, TableRow

CLEAN = 36


def grid(mode: Mode) -> list[TableRow]:
    """One to three hidden layers and shares of poisoned images; at one share also one step size for all layers."""
    changed: TableRow = {"variant": "one step size", "gamma": 0.5, "hidden": 0.5, "steps": 1000}
    return depths(mode, mnist(mode), changed)


def depths(mode: Mode, data_set: str, changed: TableRow) -> list[TableRow]:
    """The paper's settings for every depth and share, and a variant at one share; quick runs leave it out."""
    quick = mode == "quick"
    ratios = (0.0, 0.3) if quick else (0.0, 0.1, 0.2, 0.3)
    width, steps = (100, 500) if quick else (300, 1500)
    main: TableRow = backdoors.paper_settings(data_set, p=width, steps=steps)
    layers: list[TableRow] = [{"layers": depth} for depth in (1, 2, 3)]
    return [
        *(main | depth | {"ratio": ratio} for depth in layers for ratio in ratios),
        *(main | depth | changed for depth in ([] if quick else layers)),
    ]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Clean images from all places."""
    return backdoors.backdoor(settings, seed, counts=(CLEAN,))


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


def findings(rows: list[TableRow], origin: str = "training", clean: int = CLEAN) -> list[Finding]:
    """The paper's claims about depth, and what we add; the figure with images from outside also compares the places."""
    own = main_line(rows)
    claims = [
        deep.attack_reduced(own, origin),
        deep.accuracy_kept(own, origin),
        deep.accuracy_by_depth(own, origin),
    ]
    if origin == "other":
        return [*claims, attack.outside_similar(own, "layers")]
    added = [
        attack_additions.as_trained(rows, clean, ("layers",)),
        attack_additions.other_settings(rows, {"layers": values(own, "layers")[-1]}),
        attack_additions.least_squares(rows, "layers"),
    ]
    return [*claims, *(finding for finding in added if finding is not None)]


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
