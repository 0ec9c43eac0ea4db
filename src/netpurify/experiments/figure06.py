"""Figure 6: few clean images are enough on MNIST, in or outside the training set."""

from typing import Any

from netpurify.experiments import noise
from netpurify.experiments.experiment import Experiment, Mode, Row
from netpurify.experiments.figure import Figure, Finding, Line, Panel, Verdict
from netpurify.experiments.pictures import mnist
from netpurify.experiments.views import error_panel, level, limit, line, listed, number, show, values

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
COUNTS = (9, 21, 36, 69, 99)
TRAINING = 99
NAMES = {"training": "clean images of the training set", "other": "clean images outside the training set"}


def grid(mode: Mode) -> list[Row]:
    """One cell: what is varied is how the trained network is purified."""
    width = 100 if mode == "quick" else 300
    return [{"data": mnist(mode), "training": TRAINING, "m": 2, "k": 392, "p": width, "gamma": 1.0, "steps": 3000}]


def trial(settings: Row, seed: int) -> list[Row]:
    """All numbers of clean images, from both places."""
    return noise.pictures(settings, seed, shares=SHARES, counts=COUNTS, places=noise.PLACES)


def cost(settings: Row) -> float:
    """Mostly fits at rank 198 of 392 (MNIST) or 512 (CIFAR-10)."""
    return 0.35 * float(settings["p"] or 0)


def panels(rows: list[Row]) -> list[Panel]:
    """W and beta, by where the clean images come from."""
    return [_panel(rows, place, layer) for place in noise.PLACES for layer in ("W", "beta")]


def _panel(rows: list[Row], place: str, layer: str) -> Panel:
    column = f"{layer}_error"
    fixed: dict[str, Any] = {"x": "eps", "y": column, "origin": place}
    lines: list[Line] = [line(rows, f"n = {n}", method="l1", clean=n, **fixed) for n in values(rows, "clean")]
    lines.append(line(rows, "initial weights", baseline=True, method="initial weights", clean=COUNTS[0], **fixed))
    lines.append(line(rows, "l2, n = 36", baseline=True, method="l2", clean=36, **fixed))
    # What is exact lies far below all else, and would press it together.
    return error_panel(f"{layer}: {NAMES[place]}", f"error of {layer}", lines, floor=1e-4)


def findings(rows: list[Row]) -> list[Finding]:
    """The caption: few images, from anywhere, and the order in n."""
    counts = values(rows, "clean")
    inside: dict[str, Any] = {"method": "l1", "origin": "training"}
    outside = inside | {"origin": "other"}
    start = level(rows, "W_error", method="initial weights", eps=0.1)
    at = [(n, level(rows, "W_error", clean=n, eps=0.1, **inside)) for n in counts]
    other = [(n, level(rows, "W_error", clean=n, eps=0.1, **outside)) for n in counts]
    beyond = [limit(rows, "W_error", most=start.mean, clean=n, **inside) for n in counts]
    exact = level(rows, "W_exact", clean=counts[-1], eps=0.05, **inside)
    ratio = max(o.mean / max(i.mean, 1e-12) for (_, i), (_, o) in zip(at[:3], other[:3], strict=True))
    best = min(at, key=lambda pair: pair[1].mean)
    return [
        Finding(
            "Good performance even with a limited number of clean images, not necessarily from the training set.",
            "error of W at eps = .1, training images: "
            + listed((f"n = {n}", show(found)) for n, found in at)
            + "; others: "
            + listed((f"n = {n}", show(found)) for n, found in other)
            + f"; initial weights: {show(start)}",
            Verdict.HOLDS if ratio < 2.0 and best[1].mean < start.mean else Verdict.LIMITS,
            "Images from outside do nearly as well as long as n is small. The yardstick is the initial weights: lazy "
            "training leaves them close to the true ones.",
        ),
        Finding(
            "When n decreases, the limit of eps for successful recovery of W and beta increases.",
            "largest eps with an error of W below that of the initial weights: "
            + listed((f"n = {n}", number(found)) for n, found in zip(counts, beyond, strict=True))
            + f"; smallest error at eps = .1: n = {best[0]}; units exact at eps = .05 with n = {counts[-1]}: "
            + show(exact),
            Verdict.LIMITS,
            "True of the breakdown point. Below it the order is the other way round: fewer clean images span less of "
            "what training changed, and leave a larger error; exactness needs the whole training set.",
        ),
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
    setting="99 training images of digits 0, 1, 2 with y = digit - 1, raw pixels, m = 2, k = 392, p = 300 (quick: "
    "100), gamma 1, at most 3,000 steps.",
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
)
