"""Figure 8: a few clean images take the backdoor out of a network trained on poisoned MNIST."""

from typing import Any

from netpurify.experiments.figures import backdoors
from netpurify.experiments.figures.altered_weights import ORIGINS
from netpurify.experiments.figures.panels import (
    ALIKE,
    CHANCE,
    PLACES,
    baselines,
    chance,
    coincidence,
    line,
    main_line,
    rate_panel,
)
from netpurify.experiments.figures.settings import settings_of, units_of
from netpurify.experiments.figures.three_classes import mnist
from netpurify.experiments.figures.verdicts import graded, level, listed, show, simple, values
from netpurify.findings import Experiment, Figure, Finding, Line, Mode, PlotPanel, TableRow

COUNTS = (9, 21, 36, 69, 99)
TRIGGERS = {"first five pixels": range(5), "middle": range(14 * 28 + 12, 14 * 28 + 17)}
"""The paper's trigger, and one of the same size in row 14, columns 12 to 16, where clean digits ink the pixels too."""
SQUARES = 36
"""Number of clean images for which least squares is drawn too."""
NAMES = {"training": "training images", "other": "images outside the training set"}


def grid(mode: Mode) -> list[TableRow]:
    """Shares of poisoned images, for both triggers."""
    ratios = (0.0, 0.1, 0.3) if mode == "quick" else (0.0, 0.1, 0.2, 0.3, 0.4)
    width, steps = (100, 500) if mode == "quick" else (500, 1000)
    return [
        {"data": mnist(mode), "trigger": trigger, "training": 99, "poison": "all", "ratio": ratio, "m": 2, "k": 392,
         "p": width, "layers": 1, "rate": 1.0, "steps": steps}
        for trigger in TRIGGERS
        for ratio in ratios
    ]  # fmt: skip


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """All numbers of clean images, from both places."""
    return backdoors.backdoor(settings, seed, counts=COUNTS, pixels=TRIGGERS[str(settings["trigger"])])


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


def spoken(rows: list[TableRow], y: str, *, ratio: float = 0.3) -> str:
    """A rate after purification, for every number and origin of clean images."""
    texts = [
        f"{NAMES[origin]}: "
        + listed(
            (f"n = {n}", show(level(rows, y, method="l1", clean=n, origin=origin, ratio=ratio)))
            for n in values(rows, "clean")
        )
        for origin in ORIGINS
    ]
    return "; ".join(texts)


def reached(rows: list[TableRow], claim: str, why: str) -> Finding:
    """Whether the attack works as well as the paper says, before purification."""
    start, other = (level(rows, y, method="before", ratio=0.3) for y in ("asr_all", "asr"))
    base = level(rows, "asr_all", method="before", ratio=0.0)
    verdict = graded([start], holds=start.mean >= 0.95, limits=start.mean >= 0.8)
    measured = f"asr_all {show(start)}, asr {show(other)}; without poisoned images asr_all {show(base)}"
    return simple(claim, measured, verdict, why)


def accuracy_kept(rows: list[TableRow], claim: str, drop: float) -> Finding:
    """Accuracy with all training images, and with a tenth of them, where the paper allows ``drop``."""
    before = level(rows, "accuracy", method="before", ratio=0.3)
    everything, few = (
        level(rows, "accuracy", method="l1", clean=n, origin="training", ratio=0.3) for n in (99, COUNTS[0])
    )
    kept = abs(before.mean - everything.mean) <= 0.02
    verdict = graded(
        [before, everything, few],
        holds=kept and before.mean - few.mean <= drop + 0.01,
        limits=before.mean - everything.mean <= 0.05,
    )
    return simple(claim, f"before {show(before)}; after, {spoken(rows, 'accuracy')}", verdict)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The paper's claims one by one, and where the trigger must be for them to hold."""
    own = [row for row in rows if row["trigger"] == "first five pixels"]
    middle = [row for row in rows if row["trigger"] == "middle"]
    start, base = (level(own, "asr_all", method="before", ratio=ratio) for ratio in (0.3, 0.0))
    few = [level(own, "asr_all", method="l1", clean=COUNTS[0], origin=origin, ratio=0.3) for origin in ORIGINS]
    squares = [level(own, "asr_all", method="l2", clean=COUNTS[0], origin=origin, ratio=0.3) for origin in ORIGINS]
    worst = max(found.mean for found in few)
    moved, still = (level(middle, "asr_all", method="before", ratio=ratio) for ratio in (0.3, 0.0))
    fits = {
        (method, origin, n): level(middle, "asr_all", method=method, clean=n, origin=origin, ratio=0.3)
        for method in ("l1", "l2")
        for origin in ORIGINS
        for n in (36, 99)
    }
    return [
        reached(own, "The attack success rate reaches 100 % at 30 % poisoned images.", ""),
        simple(
            "After purification it is at the level of random guessing, even with 9 clean images.",
            f"asr_all after, {spoken(own, 'asr_all')}",
            graded(
                [start, base, *few],
                holds=worst <= base.mean + 0.03,
                limits=worst - base.mean < 0.5 * (start.mean - base.mean),
            ),
            f"The yardstick is the network without poisoned images, {show(base)}; guessing gives {CHANCE:.3f}. The "
            "trigger's pixels are blank in every clean digit, so the fit sends their weights back to the initial ones. "
            f"So does least squares: with n = {COUNTS[0]} it gives {' and '.join(show(found) for found in squares)} "
            "(training images, others).",
        ),
        accuracy_kept(
            own,
            "Accuracy stays stable with all 99 training images and drops by about 5 points with 10 % of them.",
            0.05,
        ),
        simple(
            "The same trigger in the middle of the image, where clean digits ink the pixels.",
            f"asr_all before {show(moved)}, without poisoned images {show(still)}; after: "
            + listed(
                (f"{method}, {NAMES[origin]}, n = {n}", show(found)) for (method, origin, n), found in fits.items()
            ),
            graded(
                [moved, still, *fits.values()],
                holds=all(found.mean <= still.mean + 0.03 for (method, *_), found in fits.items() if method == "l1"),
                limits=all(found.mean < moved.mean - 0.1 for (method, *_), found in fits.items() if method == "l1"),
            ),
            "Here clean images have a say about the trigger's pixels, and removal is not a matter of course: it is L1 "
            "that tells the attack from what clean images need; more images from outside the training set help less.",
            ours=True,
        ),
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
