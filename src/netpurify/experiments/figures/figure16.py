"""Figure 16 (ours): clean images from elsewhere: other classes, the other data set, noise."""

from typing import Any

from netpurify.experiments.figures import figure08, figure09
from netpurify.experiments.figures.claims.attack_numbers import points
from netpurify.experiments.figures.claims.own_statements import setting
from netpurify.experiments.figures.claims.trends import change
from netpurify.experiments.figures.claims.verdicts import cell, graded, level, trials_of, values
from netpurify.experiments.figures.panels import chance, line, rate_panel
from netpurify.experiments.figures.trials import backdoors
from netpurify.experiments.figures.trials.backdoors import MAIN
from netpurify.findings import Evidence, Experiment, Figure, Finding, Line, Mode, PlotPanel, Rule, TableRow, select

COUNTS = (9, 36, 99)
ORIGINS = ("training", "other", "other classes", "other data set", "noise")
NAMES = {
    "training": "training images",
    "other": "same classes, outside",
    "other classes": "other classes",
    "other data set": "other data set",
    "noise": "noise",
}
KINDS = {
    "other classes": "Images of three other classes",
    "other data set": "Images of the other data set",
    "noise": "Images of noise",
}
RATIO = 0.3
DATA = {"mnist": "MNIST", "mnist-sample": "MNIST", "cifar10": "CIFAR-10"}


def grid(mode: Mode) -> list[TableRow]:
    """The main line of Figures 8 and 9 at one share of poisoned images; quick runs need no download."""
    figures = (figure08,) if mode == "quick" else (figure08, figure09)
    cells = [cell for figure in figures for cell in figure.grid(mode) if cell["variant"] == MAIN]
    return [cell | {"p": min(int(cell["p"] or 0), 300)} for cell in cells if cell["ratio"] == RATIO]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Every origin with every number of images."""
    attacked = backdoors.victim(settings, seed)
    sample = settings["data"] == "mnist-sample"
    origins = [origin for origin in ORIGINS if not (sample and origin == "other data set")]
    return [*backdoors.untouched(attacked), *backdoors.purifications(attacked, COUNTS, origins, seed)]


def cost(settings: TableRow) -> float:
    """Training and fits both grow with p."""
    return 0.05 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """Attack success and accuracy over the number of clean images, by where these come from."""
    return [_panel(rows, name, y) for name in dict.fromkeys(str(row["data"]) for row in rows) for y in _RATES]


_RATES = {"asr_all": "attack success, all images", "accuracy": "accuracy"}


def _panel(rows: list[TableRow], name: str, y: str) -> PlotPanel:
    own = select(rows, data=name)
    fixed: dict[str, Any] = {"x": "clean", "y": y, "method": "l1"}
    lines: list[Line] = [
        line(own, NAMES[origin], origin=origin, **fixed) for origin in ORIGINS if select(own, origin=origin)
    ]
    before = [row | {"clean": n} for row in select(own, method="before") for n in COUNTS]
    lines.append(line(before, "before purification", baseline=True, thing="contaminated", x="clean", y=y))
    if y == "asr_all":
        lines.append(chance(COUNTS))
    return rate_panel(f"{DATA[name]}: {y.replace('asr_all', 'attack success')}", _RATES[y], lines, "clean images")


def findings(rows: list[TableRow]) -> list[Finding]:
    """Each kind of images beside images of the same classes that training never saw."""
    return [_as_good(rows, origin, kind) for origin, kind in KINDS.items() if select(rows, origin=origin)]


def _as_good(rows: list[TableRow], origin: str, kind: str) -> Finding:
    rule = Rule(
        claim=f"{kind} purify as well as images of the same classes.",
        where='the paper: repair data must "come from the same distribution" (V-D)',
        measure="With 36 and with 99 images of each data set, attack success is at most 5 points higher and accuracy "
        "at most 5 points lower than with images of the same classes from outside the training set: holds; at most "
        "10 points: with limits.",
        reason="The span of the clean images must hold what training learnt and not the trigger; labels and classes "
        "do not enter.",
    )
    worse = {}
    for data_name in values(rows, "data"):
        for n in COUNTS[1:]:
            own = select(rows, data=data_name, method="l1", clean=n)
            same, from_here = select(own, origin="other"), select(own, origin=origin)
            if from_here:
                worse[DATA[data_name], n, "attack success"] = change(same, from_here, "asr_all")
                worse[DATA[data_name], n, "accuracy"] = change(from_here, same, "accuracy")
    (where, n, rate), largest = max(worse.items(), key=lambda item: item[1].mean)
    return Finding(
        rule,
        graded(worse.values(), holds=largest.mean <= 0.05, limits=largest.mean <= 0.1),
        None,
        f"at worst {points(largest)} points ({where}, {rate}, n = {n})",
        [_table(rows, origin, y) for y in _RATES],
        ours=True,
    )


def _table(rows: list[TableRow], origin: str, y: str) -> Evidence:
    body, numbers = [], []
    for data_name in values(rows, "data"):
        for kind in ("other", origin):
            own = select(rows, data=data_name, method="l1", origin=kind)
            found = [level(own, y, clean=n) for n in COUNTS]
            numbers += found
            body.append([f"{DATA[data_name]}, {NAMES[kind]}", *map(cell, found)])
    title = f"{_RATES[y].capitalize()}, {trials_of(number for number in numbers if number.count)}"
    return Evidence(title, ["", *(f"n = {n}" for n in COUNTS)], body)


EXPERIMENT = Experiment(
    name="elsewhere",
    title="MNIST and CIFAR-10, 30 of 99 training images poisoned: clean images from elsewhere",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
FIGURE = Figure(
    number=16,
    title="Clean images from elsewhere: other classes, the other data set, noise",
    settings=(
        setting("Network, training, trigger", "main lines of Figures 8 (MNIST) and 9 (CIFAR-10), p = 300"),
        setting("Share of poisoned images", f"{RATIO:g}"),
        setting("n, clean images to recover with", ", ".join(map(str, COUNTS))),
        setting("Where clean images come from", "; ".join(NAMES.values()), "the paper: of the same distribution"),
        setting("Other classes", "digits 7, 8, 9; horse, ship, truck"),
        setting("Other data set", "CIFAR-10 in grey, its middle; MNIST with a border of black", "the sizes must agree"),
        setting("Noise", "independent pixels, uniform between black and white"),
        setting("Trials of each setting", EXPERIMENT.trials["full"]),
    ),
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
    ours=True,
)
