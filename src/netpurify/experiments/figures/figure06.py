"""Figure 6: few clean images are enough on MNIST, in or outside the training set."""

from typing import Any

from netpurify.experiments.figures.claims.images import (
    few_images,
    limit_by_images,
    order_without_alterations,
    outside_weights,
)
from netpurify.experiments.figures.claims.trends import relative
from netpurify.experiments.figures.claims.verdicts import values
from netpurify.experiments.figures.panels import PLACES, baselines, error_panel, line, main_line
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.experiments.figures.trials import altered_weights
from netpurify.experiments.figures.trials.altered_weights import ORIGINS
from netpurify.experiments.figures.trials.three_classes import mnist
from netpurify.findings import Experiment, Figure, Finding, Line, Mode, PlotPanel, TableRow

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
COUNTS = (9, 21, 36, 69, 99)
FEW = (9, 21, 36)
TRAINING = 99
NAMES = {"training": "clean images of the training set", "other": "clean images outside the training set"}


def grid(mode: Mode) -> list[TableRow]:
    """One cell: what is varied is how the trained network is purified."""
    width = 100 if mode == "quick" else 300
    return [{"data": mnist(mode), "training": TRAINING, "m": 2, "k": 392, "p": width, "gamma": 1.0, "steps": 3000}]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """All numbers of clean images, from both places."""
    return altered_weights.on_images(settings, seed, shares=SHARES, counts=COUNTS, origins=ORIGINS)


def cost(settings: TableRow) -> float:
    """Mostly fits at rank 198 of 392 (MNIST) or 512 (CIFAR-10)."""
    return 0.35 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """W above, beta below, by where the clean images come from."""
    return [_panel(main_line(rows), origin, layer) for layer in ("W", "beta") for origin in ORIGINS]


def _panel(rows: list[TableRow], origin: str, layer: str) -> PlotPanel:
    fixed: dict[str, Any] = {"x": "eps", "y": f"{layer}_error", "origin": origin}
    lines: list[Line] = [line(rows, f"n = {n}", method="l1", clean=n, **fixed) for n in values(rows, "clean")]
    lines += baselines(rows, ("contaminated", "initial weights"), clean=COUNTS[0], **fixed)
    lines += baselines(rows, ("l2",), "n = 36", clean=36, **fixed)
    # What is exact lies far below all else, and would press it together.
    return error_panel(f"{layer}: {PLACES[origin]}", f"error of {layer}", lines, floor=1e-4)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The caption: few images, from anywhere, and the order in n; and what that order is below the limit."""
    rows = relative(rows)
    return [
        few_images(rows, FEW),
        limit_by_images(rows, COUNTS),
        outside_weights(rows, COUNTS, FEW),
        order_without_alterations(rows, COUNTS),
    ]


EXPERIMENT = Experiment(
    name="mnist-n",
    title="MNIST, 99 training images: number and origin of clean images",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
FIGURE = Figure(
    number=6,
    title="Few clean images are enough on MNIST, in or outside the training set",
    settings=settings_of(6, EXPERIMENT, shares=SHARES, counts=COUNTS),
    experiment=EXPERIMENT,
    units=units_of,
    panels=panels,
    findings=findings,
)
