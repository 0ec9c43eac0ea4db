"""Figure 6: few clean images are enough on MNIST, in or outside the training set."""

from typing import Any

from netpurify.experiments.figures import altered_weights
from netpurify.experiments.figures.altered_weights import ORIGINS
from netpurify.experiments.figures.panels import error_panel, line
from netpurify.experiments.figures.settings import settings_of
from netpurify.experiments.figures.three_classes import mnist
from netpurify.experiments.figures.trends import (
    JUDGED,
    LAYERS,
    RECOVERED,
    Trend,
    below,
    limit_trend,
    relative,
    trained,
    trend,
)
from netpurify.experiments.figures.verdicts import graded, level, listed, show, simple, values
from netpurify.findings import Experiment, Figure, Finding, Line, Mode, PlotPanel, TableRow, TrialSummary, select

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
    """W and beta, by where the clean images come from."""
    return [_panel(rows, origin, layer) for origin in ORIGINS for layer in ("W", "beta")]


def _panel(rows: list[TableRow], origin: str, layer: str) -> PlotPanel:
    column = f"{layer}_error"
    fixed: dict[str, Any] = {"x": "eps", "y": column, "origin": origin}
    lines: list[Line] = [line(rows, f"n = {n}", method="l1", clean=n, **fixed) for n in values(rows, "clean")]
    lines.append(line(rows, "initial weights", baseline=True, method="initial weights", clean=COUNTS[0], **fixed))
    lines.append(line(rows, "l2, n = 36", baseline=True, method="l2", clean=36, **fixed))
    # What is exact lies far below all else, and would press it together.
    return error_panel(f"{layer}: {NAMES[origin]}", f"error of {layer}", lines, floor=1e-4)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The caption: few images, from anywhere, and the order in n; and what that order is below the limit."""
    rows = relative(rows)
    return [_few(rows), _breakdown(rows), _floor(rows)]


def _few(rows: list[TableRow]) -> Finding:
    """Both layers with few images from both places, against the initial weights."""
    at = select(rows, method="l1", eps=0.1)
    ratios = {
        (layer, origin, n): level(at, f"{layer}_ratio", clean=n, origin=origin)
        for layer in LAYERS
        for origin in ORIGINS
        for n in FEW
    }
    better = [
        n for n in FEW if all(below(ratios[layer, origin, n], 1.0) for layer in LAYERS for origin in ORIGINS)
    ]  # fmt: skip
    starts = listed(
        (layer, show(level(rows, f"{layer}_error", method="initial weights", eps=0.1))) for layer in LAYERS
    )  # fmt: skip
    return simple(
        "Good performance even with a limited number of clean images, not necessarily from the training set.",
        "eps = 0.1, errors as shares of those of the initial weights in the same trial: "
        + "; ".join(
            f"{layer}, {NAMES[origin]}: " + listed((f"n = {n}", show(ratios[layer, origin, n])) for n in FEW)
            for layer in LAYERS
            for origin in ORIGINS
        )
        + f"; errors of the initial weights: {starts}; {trained(rows)}",
        graded(
            ratios.values(),
            holds=all(found.mean <= RECOVERED for found in ratios.values()),
            limits=bool(better),
            trials=2,
        ),
        "It holds if all of these are at most half, with limits if some n is clearly better than the initial weights "
        f"for both layers and both places: {', '.join(f'n = {n}' for n in better) or 'no n is'}. Lazy training leaves "
        "the initial weights close to the true ones, which makes them the yardstick.",
    )


def _breakdown(rows: list[TableRow]) -> Finding:
    """How far weights are recovered, and how far they are better than the initial ones; n falls from step to step."""
    half, better = (
        {
            (layer, origin): limit_trend(
                ((f"n = {n}", select(rows, clean=n, origin=origin)) for n in reversed(COUNTS)),
                f"{layer}_ratio",
                most=most,
                method="l1",
            )
            for layer in LAYERS
            for origin in ORIGINS
        }
        for most in (RECOVERED, 1.0)
    )
    return simple(
        "When n decreases, the limit of eps for successful recovery of W and beta increases.",
        "largest eps up to which the error is at most that of the initial weights in the same trial: "
        f"{_spoken(better)}; at most half of it, from n = {COUNTS[-1]} to {COUNTS[0]}: "
        + listed((f"{layer}, {NAMES[origin]}", found.ends) for (layer, origin), found in half.items()),
        graded(
            [*_needed(half), *_needed(better)],
            holds=all(found.rises for found in half.values()),
            limits=any(all(better[layer, origin].rises for origin in ORIGINS) for layer in LAYERS),
            trials=2,
        ),
        "It holds if the limit rises by the stricter rule for both layers and both places, with limits if it does by "
        "the other rule for one layer. The rank of the design grows with n and leaves less room for L1 to tell "
        "alterations apart.",
    )


def _floor(rows: list[TableRow]) -> Finding:
    """What the fit loses when nothing was altered; n falls from step to step."""
    at = select(rows, method="l1", eps=0.0)
    found = {
        (layer, origin): trend(
            ((f"n = {n}", select(at, clean=n, origin=origin)) for n in reversed(COUNTS)),
            f"{layer}_ratio",
        )
        for layer in LAYERS
        for origin in ORIGINS
    }
    exact = level(at, "W_exact", clean=TRAINING, origin="training")
    return simple(
        "Below the limit the order is the other way round: when n decreases, the error increases.",
        f"nothing altered, errors as shares of those of the initial weights in the same trial: {_spoken(found)}; share "
        f"of filters exact with all {TRAINING} training images: {show(exact)}",
        graded(
            [exact, *_needed(found)],
            holds=all(one.rises for one in found.values()),
            limits=any(all(found[layer, origin].rises for origin in ORIGINS) for layer in LAYERS),
            trials=2,
        ),
        "Asked of both layers and both places, with limits if of one layer. Fewer clean images span less of what "
        "training changed; exactness needs the span of the whole training set.",
        ours=True,
    )


def _spoken(found: dict[tuple[str, str], Trend]) -> str:
    return "; ".join(f"{layer}, {NAMES[origin]}: {one}" for (layer, origin), one in found.items())


def _needed(found: dict[tuple[str, str], Trend]) -> list[TrialSummary]:
    return [number for one in found.values() for number in one.needed]


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
    panels=panels,
    findings=findings,
    remarks=(JUDGED,),
)
