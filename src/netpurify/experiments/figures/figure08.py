"""Figure 8: a few clean images take the backdoor out of a network trained on poisoned MNIST."""

from typing import Any

from netpurify.experiments.figures.claims import attack, attack_additions
from netpurify.experiments.figures.claims.verdicts import cell, level, values
from netpurify.experiments.figures.panels import (
    ALIKE,
    PLACES,
    baselines,
    chance,
    coincidence,
    line,
    main_line,
    rate_panel,
)
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.experiments.figures.trials import backdoors
from netpurify.experiments.figures.trials.backdoors import ORIGINS
from netpurify.experiments.figures.trials.three_classes import mnist
from netpurify.findings import Experiment, Figure, Finding, Line, Mode, PlotPanel, TableRow

COUNTS = (9, 21, 36, 69, 99)
SQUARES = 36
"""Number of clean images for which least squares is drawn too."""


def grid(mode: Mode) -> list[TableRow]:
    """The paper's settings over shares of poisoned images, and at one share what each variant changes."""
    quick = mode == "quick"
    ratios = (0.0, 0.1, 0.3) if quick else (0.0, 0.1, 0.2, 0.3)
    width, steps = (100, 500) if quick else (500, 1500)
    main: TableRow = backdoors.paper_settings(mnist(mode), p=width, steps=steps)
    changed: list[TableRow] = [
        {"variant": "one step size", "gamma": 1.0, "hidden": 1.0, "steps": min(steps, 1000)},
        {"variant": "trigger in the middle", "trigger": "middle"},
        {"variant": "trigger in the middle", "trigger": "middle", "ratio": 0.0},
        {"variant": "black trigger", "colour": "black"},
    ]
    return [*(main | {"ratio": ratio} for ratio in ratios), *(main | change for change in ([] if quick else changed))]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """All numbers of clean images, from all places."""
    return backdoors.backdoor(settings, seed, counts=COUNTS)


def cost(settings: TableRow) -> float:
    """Training and fits both grow with p."""
    return 0.04 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Attack success above, accuracy below, by where the clean images come from."""
    rows = main_line(rows)
    return [attack_panel(rows, origin, y) for y in ("asr_all", "accuracy") for origin in ORIGINS]


def attack_panel(rows: list[TableRow], origin: str, y: str) -> PlotPanel:
    """Accuracy or attack success over the share of poisoned images, before and after."""
    fixed: dict[str, Any] = {"x": "ratio", "y": y}
    lines: list[Line] = [
        line(rows, f"after, n = {n}", thing=f"n = {n}", method="l1", clean=n, origin=origin, **fixed)
        for n in values(rows, "clean")
    ]
    squares = baselines(rows, ("l2",), f"n = {SQUARES}", clean=SQUARES, origin=origin, **fixed)
    same = [one for one in lines if one.thing == f"n = {SQUARES}"]
    note = coincidence([*same, *squares], f"l1 and l2, n = {SQUARES},", floor=0.0, most=ALIKE)
    lines += [*baselines(rows, ("before",), **fixed), *squares]
    if y == "accuracy":
        return PlotPanel(f"accuracy: {PLACES[origin]}", "share of poisoned images", "accuracy", lines)
    lines.append(chance(values(rows, "ratio")))
    return rate_panel(f"attack success: {PLACES[origin]}", "attack success rate", lines, note=note)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The paper's claims one by one, and what we add: where the trigger must be, and which images are clean."""
    own = main_line(rows)
    squares = level(own, "asr_all", method="l2", clean=COUNTS[0], origin="training", ratio=0.3)
    added = [
        attack_additions.as_trained(rows, COUNTS[-1]),
        attack_additions.other_settings(rows, {"clean": 36}),
        attack_additions.least_squares(rows, "clean"),
        attack_additions.middle(rows),
        attack_additions.black(rows),
    ]
    return [
        attack.without_poison(own),
        attack.attack_rises(own),
        attack.attack_gone(
            own,
            COUNTS[0],
            "The trigger's pixels are blank in every clean digit, so that the fit returns their weights to the initial "
            f"ones. So does least squares: with {COUNTS[0]} training images it leaves {cell(squares)}.",
        ),
        attack.accuracy_kept(own, COUNTS[0], COUNTS[-1], 5.0),
        attack.outside_similar(own, "clean"),
        *(finding for finding in added if finding is not None),
    ]


EXPERIMENT = Experiment(
    name="mnist-backdoor",
    title="MNIST, 99 training images, some poisoned: number and origin of clean images",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
FIGURE = Figure(
    number=8,
    title="A few clean images take the backdoor out (MNIST)",
    settings=settings_of(8, EXPERIMENT, counts=COUNTS, pixels=range(5)),
    experiment=EXPERIMENT,
    units=units_of,
    panels=panels,
    findings=findings,
    remarks=(
        "asr_all counts all triggered test images, as the paper does (chance: 1/3); asr only those of other classes.",
    ),
)
