"""Figure 14 (ours): what is recovered is what a simulation on the design at hand predicts."""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import torch
from torch import Tensor

from netpurify import lad
from netpurify.contaminate import Law, Normal, SignFlip
from netpurify.experiments.figures.claims.own_statements import number, setting, statement
from netpurify.experiments.figures.claims.verdicts import values
from netpurify.experiments.figures.panels import line
from netpurify.experiments.figures.trials.altered_weights import Cell
from netpurify.experiments.figures.trials.many_units import TrainedLayer, copies_of_beta, recovered
from netpurify.experiments.figures.trials.three_classes import ThreeClasses, mnist
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
    select,
    summarise,
)
from netpurify.paper import PatchCNN, Training, train

LAWS: dict[str, tuple[Law, float]] = {
    "N(0, 1)": (Normal(0.0, 1.0), 0.5),
    "N(1, 1)": (Normal(1.0, 1.0), NormalDist().cdf(1.0)),
    "sign flip": (SignFlip(), 0.5),
}
"""Laws, with the probability that an alteration is positive. The signs of W are those of its random initial weights;
those of beta, which is trained from 0, are not random, and are taken as they are."""
SHARES = tuple(round(0.05 * step, 2) for step in range(2, 15))
PREDICTION_SEED = 7_000_000
"""Added to the seed of a trial: predictions use other random numbers than contaminations."""
NAMES = {"gaussian": "Gaussian", "mnist": "MNIST", "mnist-sample": "MNIST", "cifar10": "CIFAR-10"}
OPEN = (0.02, 0.98)
"""Between these a prediction can fail in both directions."""


def grid(mode: Mode) -> list[TableRow]:
    """The networks of Figures 2, 5 and 7, with few inputs; quick runs need no download."""
    p, copies, columns = (60, 30, 60) if mode == "quick" else (300, 200, 200)
    rest: TableRow = {"p": p, "copies": copies, "columns": columns, "steps": 300}
    cells: list[TableRow] = [
        {"data": "gaussian", "n": 5, "m": 5, "k": 100, "gamma": 0.1, **rest},
        {"data": mnist(mode), "n": 21, "m": 2, "k": 392, "gamma": 1.0, **rest},
    ]
    if mode != "quick":
        cells.append({"data": "cifar10", "n": 33, "m": 2, "k": 512, "gamma": 0.3, **rest})
    return cells


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """One network; each layer contaminated by every law at every share, and predicted without looking."""
    cell: Cell = dict(settings)
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = _problem(cell, generator)
    start = PatchCNN(m=cell["m"], k=cell["k"], p=cell["p"], generator=generator)
    training = train(start, inputs, targets, gamma=cell["gamma"], regime="sequential", steps=cell["steps"])
    copies = [copies_of_beta(network, cell["copies"]) for network in (training.initial, training.trained)]
    layers = {
        "W": TrainedLayer(training.initial, training.trained, "hidden.0"),
        "beta": TrainedLayer(copies[0], copies[1], "output"),
    }
    designs = {"W": training.trained.patches(inputs), "beta": _features(training, inputs)}
    rows: list[TableRow] = []
    for name, layer in layers.items():
        design = lad.Design.prepare(designs[name].T)
        for law in LAWS:
            odds = _predict(design, law, name, training, columns=cell["columns"], seed=seed)
            rows += [
                {"layer": name, "law": law, "eps": eps, **_row(odds, layer, LAWS[law][0], eps, inputs, seed)}
                for eps in SHARES
            ]
    return rows


def _problem(cell: Cell, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    n = cell["n"]
    if cell["data"] == "gaussian":
        inputs = torch.randn(n, cell["m"] * cell["k"], generator=generator, dtype=torch.float64)
        return inputs, 2.0 * torch.rand(n, generator=generator, dtype=torch.float64) - 1.0
    source = ThreeClasses(cell["data"])
    (images,) = source.draw((n,), generator)
    return source.inputs(images), images.labels.double() - 1.0


def _features(training: Training, inputs: Tensor) -> Tensor:
    network = training.trained
    with torch.no_grad():
        return network.pool(network.layers[0](network.patches(inputs)).relu())


def _predict(
    design: lad.Design, law: str, layer: str, training: Training, *, columns: int, seed: int
) -> lad.SimulatedOdds:
    """The odds on this design; flipped signs of beta are known."""
    positive: float | Tensor = LAWS[law][1]
    if law == "sign flip" and layer == "beta":
        positive = (training.trained.output.weight.detach()[0] < 0.0).double()
    return lad.simulate(design, positive=positive, columns=columns, seed=PREDICTION_SEED + seed)


def _row(odds: lad.SimulatedOdds, layer: TrainedLayer, law: Law, eps: float, inputs: Tensor, seed: int) -> Cell:
    found, *_ = recovered(layer, law, eps, inputs, seed)
    predicted = odds.recovery(eps)
    return {
        "predicted": predicted.value,
        "error": odds.error(eps),
        "low": predicted.low,
        "high": predicted.high,
        "generic": lad.recovery_probability(odds.live, odds.rank, eps),
        "measured": found["exact"],
        "units": layer.trained.get_parameter(f"{layer.name}.weight").shape[0],
        "rows": odds.live,
        "rank": odds.rank,
    }


def cost(settings: TableRow) -> float:
    """Fits of filters at and beyond their limits."""
    seconds = {"gaussian": 6.0, "mnist": 14.0, "mnist-sample": 14.0, "cifar10": 30.0}
    return seconds[str(settings["data"])] * float(settings["p"] or 0) / 300.0


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """The share of exact units against eps, by data and layer."""
    return [
        _panel(select(rows, data=data, layer=layer), f"{layer}, {NAMES[data]}")
        for layer in ("W", "beta")
        for data in NAMES
        if select(rows, data=data)
    ]


def _panel(rows: list[TableRow], title: str) -> PlotPanel:
    lines = [line(rows, law, x="eps", y="measured", law=law) for law in LAWS]
    lines += [_predicted(select(rows, law=law)) for law in LAWS]
    lines.append(line(rows, "generic random design", x="eps", y="generic", baseline=True, thing="generic"))
    return PlotPanel(title, "share of altered weights", "share of exact units", lines, limits=(0.0, 1.02))


def _predicted(rows: list[TableRow]) -> Line:
    """What was predicted, with its interval of 95 % confidence, means over trials."""
    shares = values(rows, "eps")
    middle, low, high = (
        [summarise(select(rows, eps=eps), [], name)[()].mean for eps in shares] for name in ("predicted", "low", "high")
    )
    return Line("predicted on the design at hand", shares, middle, low, high, baseline=True, thing="predicted")


PREDICTED = Rule(
    claim="A simulation on the design at hand, which knows of a law only its share and its signs, predicts how many "
    "units come back.",
    where="ours",
    measure="z is the difference of measured and predicted share over the standard error of both, for each data set, "
    "layer, law and eps, over all trials. Holds: |z| <= 3 in 99 % of the cells, and the root mean square of z, "
    "where the share is predicted between 0.02 and 0.98, is at most 1.3; holds with limits: 95 %, and 2.",
    reason="L1 recovery depends on which entries are altered and on the signs of the alterations, not on their sizes.",
)
GENERIC = Rule(
    claim="The formula for a generic random design promises too much where inputs are not negative, as pixels and "
    "features are, above all if alterations lean to one sign.",
    where="ours",
    measure="Holds: the formula is within 0.05 of the measured share everywhere for W on Gaussian inputs, and more "
    "than 0.3 above it somewhere for W on MNIST and for every beta, with N(1, 1); with limits: within 0.1, and 0.1.",
    reason="The formula is exact for a span that is uniformly random, which rows of one sign are not.",
)


def findings(rows: list[TableRow]) -> list[Finding]:
    """What the simulation predicts, and what the formula does."""
    return [_simulated(rows), _formula(rows)]


class _Compared(NamedTuple):
    """Shares of one cell, means over trials, and z."""

    measured: float
    predicted: float
    generic: float
    z: float


def compared(rows: list[TableRow]) -> dict[tuple[Any, ...], _Compared]:
    """Measured and predicted shares of every cell (data, layer, law, eps), over all trials."""
    names = ("measured", "predicted", "generic", "error", "units", "columns")
    found = {name: summarise(rows, ["data", "layer", "law", "eps"], name) for name in names}
    cells = {}
    for key, measured in found["measured"].items():
        predicted, generic, error, units, columns = (found[name][key].mean for name in names[1:])
        draws = measured.count * (units + columns)
        # Never 0, so that one unit more or less than none is not infinitely surprising.
        share = (measured.count * (units * measured.mean + columns * predicted) + 0.5) / (draws + 1.0)
        variance = (error**2 + share * (1.0 - share) / units) / measured.count
        cells[key] = _Compared(measured.mean, predicted, generic, (measured.mean - predicted) / math.sqrt(variance))
    return cells


def _simulated(rows: list[TableRow]) -> Finding:
    cells = compared(rows)
    scores = [cell.z for cell in cells.values()]
    within = sum(abs(z) <= 3.0 for z in scores) / max(len(scores), 1)
    spread = _spread(cells.values())
    table = []
    for data, layer, law in dict.fromkeys(key[:3] for key in cells):
        own = [cell for key, cell in cells.items() if key[:3] == (data, layer, law)]
        off = max(abs(cell.measured - cell.predicted) for cell in own)
        worst = max(abs(cell.z) for cell in own)
        table.append([f"{layer}, {NAMES[data]}, {law}", number(off), number(worst, 1), number(_spread(own), 2)])
    return statement(
        PREDICTED,
        f"{100.0 * within:.1f} % of {len(scores)} cells within 3 standard errors; root mean square of z {spread:.2f}",
        needed=summarise(rows, ["data", "layer", "law", "eps"], "measured").values(),
        holds=within >= 0.99 and spread <= 1.3,
        limits=within >= 0.95 and spread <= 2.0,
        evidence=[
            Evidence("Measured against predicted, over all eps", ["cell", "largest difference", "largest |z|", "rms z"],
                     table)
        ],
        why="Sizes of alterations do not matter, so 200 random sign patterns on the actual inputs tell what to expect, "
        "before anything is repaired.",
    )  # fmt: skip


def _spread(cells: Any) -> float:
    """Root mean square of z where a prediction can fail in both directions."""
    scores = [cell.z for cell in cells if OPEN[0] <= cell.predicted <= OPEN[1]]
    return math.sqrt(sum(z * z for z in scores) / len(scores)) if scores else 0.0


def _formula(rows: list[TableRow]) -> Finding:
    cells = compared(rows)
    over, off = {}, 0.0
    for (data, layer, law, _), cell in cells.items():
        key = (layer, NAMES[data], law)
        over[key] = max(over.get(key, 0.0), cell.generic - cell.measured)
        if (layer, data) == ("W", "gaussian"):
            off = max(off, abs(cell.generic - cell.measured))
    places = list(dict.fromkeys(key[:2] for key in over))
    one_signed = [place for place in places if place[0] == "beta" or place == ("W", "MNIST")]
    least = min((over[(*place, "N(1, 1)")] for place in one_signed), default=0.0)
    table = [[", ".join(place), *(number(over[(*place, law)]) for law in LAWS)] for place in places]
    return statement(
        GENERIC,
        f"W, Gaussian inputs: within {off:.3f}; W on MNIST and every beta, N(1, 1): up to {least:.2f} or more too high",
        needed=summarise(rows, ["data", "layer", "law", "eps"], "measured").values(),
        holds=off <= 0.05 and least > 0.3,
        limits=off <= 0.1 and least > 0.1,
        evidence=[Evidence("By how much the formula is too high, at most", ["layer and data", *LAWS], table)],
        why="A point of the span that has one sign explains alterations of one sign; random spans have no such point.",
    )


EXPERIMENT = Experiment(
    name="limits-at-hand",
    title="Share of exact units, predicted on the design at hand and measured",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 2, "default": 4, "full": 10},
)
FIGURE = Figure(
    number=14,
    title="Limits on the design at hand: predicted and measured",
    settings=(
        setting("Gaussian", "n = m = 5, k = 100, x ~ N(0, I), y ~ U(-1, 1), gamma = 0.1", "as in Figures 2 and 3"),
        setting("MNIST", "n = 21, m = 2, k = 392, gamma = 1", "as in Figure 5"),
        setting("CIFAR-10", "n = 33, m = 2, k = 512, gamma = 0.3", "as in Figure 7, with fewer images"),
        setting("p", "300 (quick: 60)"),
        setting("training", "Theorem 3: W, then beta from 0; at most 300 steps each",
                "so that both layers can come back exactly; the span does not depend on the number of steps"),
        setting("laws", ", ".join(LAWS), "both signs, mostly one sign, and a law that looks at the weight"),
        setting("share eps", ", ".join(f"{eps:g}" for eps in SHARES)),
        setting("measured", "the share of the p filters that are exact; of 200 contaminated copies of beta, W kept as "
                "trained", "beta is a single unit"),
        setting("predicted", "lad.simulate with 200 columns, other random numbers", "band: 95 % confidence"),
        setting("exact", "every weight of a unit within 1e-6"),
        setting("trials", "10"),
    ),
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
    remarks=("The generic line is lad.recovery_probability, exact for a uniformly random span of the same size.",),
    ours=True,
)  # fmt: skip
