"""Figure 15 (ours): for which layers, and up to which share, the law of the noise does not matter."""

from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from netpurify import lad
from netpurify.contaminate import BitFlip, Cauchy, Constant, Law, Normal, Quantise, SignFlip
from netpurify.experiments.figures.altered_weights import Cell
from netpurify.experiments.figures.many_units import Layer, change, copies_of_beta, first_filters, recovered
from netpurify.experiments.figures.panels import line
from netpurify.experiments.figures.verdicts import values
from netpurify.findings import Experiment, Line, Mode, PlotPanel, TableRow, select, summarise
from netpurify.paper import PatchCNN, train

LAWS: dict[str, Law] = {
    "N(0, 1)": Normal(0.0, 1.0),
    "N(1, 1)": Normal(1.0, 1.0),
    "Cauchy": Cauchy(),
    "constant 1": Constant(1.0),
    "sign flip": SignFlip(),
    "bit flip": BitFlip(),
    "3 bits": Quantise(3),
}
"""Added noise of both signs, of mostly one sign, without a mean, of one size; the weight with its sign flipped, with one
of its 64 bits flipped, and rounded to seven levels."""
BREAKS = {"N(1, 1)": 0.5 / NormalDist().cdf(1.0), "constant 1": 0.5, "sign flip": 0.5}
"""Share at which a law breaks beta however small the rank is. Features are never negative, so noise of which a share q
is positive is explained by a shift of all entries once q eps > 1/2. A flipped sign is twice minus the weight, and beta
itself lies in the span, because it is trained from 0."""
SHARES = (0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8)


def grid(mode: Mode) -> list[TableRow]:
    """Several p for beta, whose fan-in is p; W, for which p does not matter, in one of them."""
    sizes: TableRow = {"n": 5, "m": 5, "k": 100, "gamma": 0.1, "steps": 500}
    if mode == "quick":
        return [{**sizes, "p": p, "filters": filters, "copies": 10} for p, filters in ((100, 0), (500, 20))]
    return [{**sizes, "p": p, "filters": filters, "copies": 25} for p, filters in ((100, 0), (500, 200), (2000, 0))]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """One network trained as in Theorem 3; both layers contaminated by every law at every share, one at a time."""
    cell: Cell = dict(settings)
    generator = torch.Generator().manual_seed(seed)
    n, m, k = cell["n"], cell["m"], cell["k"]
    inputs = torch.randn(n, m * k, generator=generator, dtype=torch.float64)
    targets = 2.0 * torch.rand(n, generator=generator, dtype=torch.float64) - 1.0
    start = PatchCNN(m=m, k=k, p=cell["p"], generator=generator)
    training = train(start, inputs, targets, gamma=cell["gamma"], regime="sequential", steps=cell["steps"])
    nets = (training.initial, training.trained)
    beta = Layer(*(copies_of_beta(net, cell["copies"]) for net in nets), "output")
    with_true_filters = Layer(_with_hidden(beta.initial, training.trained), beta.trained, "output")
    rows = []
    for name, law in LAWS.items():
        for eps in SHARES:
            shares, dirty, _ = recovered(with_true_filters, law, eps, inputs, seed)
            rivals = _rivals(training.trained, inputs, change(beta, dirty))
            rows.append({"layer": "beta", "law": name, "eps": eps, **shares, **rivals})
            if cell["filters"]:
                filters = Layer(*(first_filters(net, cell["filters"]) for net in nets), "hidden.0")
                shares, *_ = recovered(filters, law, eps, inputs, seed)
                rows.append({"layer": "W", "law": name, "eps": eps, **shares})
    return rows


def _with_hidden(network: PatchCNN, other: PatchCNN) -> PatchCNN:
    network.hidden.load_state_dict(other.hidden.state_dict())
    return network


def _rivals(trained: PatchCNN, inputs: Tensor, added: Tensor) -> Cell:
    """Shares of the copies of beta that survive a rival point of the span.

    With altered entries S, the truth is an L1 minimum only if sum_S sign(z_i) v_i <= sum_not_S |v_i| for every v in the
    span. ``shift`` asks it of the sum of all features, which is never negative, and ``own`` of beta itself.
    """
    with torch.no_grad():
        features = trained.pool(trained.layers[0](trained.patches(inputs)).relu())
    known = added.isfinite()
    signs = torch.where(known, added, torch.zeros_like(added)).sign()
    kept = (added == 0.0).double()
    found = {}
    for name, direction in (("shift", features.sum(0)), ("own", trained.output.weight.detach()[0])):
        survives = (signs @ direction).abs() <= kept @ direction.abs()
        found[name] = float(survives.double().mean())
    return found


def cost(settings: TableRow) -> float:
    """Fits of filters, and of copies of beta."""
    return 1.0 + 0.01 * float(settings["filters"] or 0) + 0.0035 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """W by the share chosen and by the share that is really altered; beta at each p, with the rival that breaks it."""
    own = select(rows, layer="W")
    chosen = "share of weights that the law may alter"
    return [
        PlotPanel("W", chosen, "share of exact filters", _by_law(own), limits=(0.0, 1.02)),
        PlotPanel(
            "W, by what was really altered",
            "share of altered weights",
            "share of exact filters",
            [*_by_law(_really(own), x="really"), _generic(own)],
            limits=(0.0, 1.02),
        ),
        *(
            PlotPanel(f"beta, p = {p}", chosen, "share of exact copies of beta",
                      [*_by_law(select(rows, layer="beta", p=p)), *_survivors(select(rows, layer="beta", p=p))],
                      limits=(0.0, 1.02))
            for p in values(rows, "p")
        ),
    ]  # fmt: skip


def _by_law(rows: list[TableRow], x: str = "eps") -> list[Line]:
    return [line(rows, law, x=x, y="exact", law=law) for law in LAWS]


def _really(rows: list[TableRow]) -> list[TableRow]:
    """The rows with the mean share that was really altered by their law at their eps, as ``really``."""
    means = summarise(rows, ["law", "eps"], "altered")
    return [row | {"really": round(means[row["law"], row["eps"]].mean, 3)} for row in rows]


def _generic(rows: list[TableRow]) -> Line:
    """The odds of a generic design, over the shares that were really altered."""
    points = [{"share": share, "odds": _odds(rows, share)} for share in SHARES]
    return line(points, "generic design", x="share", y="odds", baseline=True)


def _odds(rows: list[TableRow], altered: float, missing: float = 0.0) -> float:
    """The odds of a filter on a generic design; entries that are missing are no rows of it."""
    first: dict[str, Any] = dict(rows[0])
    present = round(first["k"] * (1.0 - missing))
    return lad.recovery_probability(present, first["rank"], (altered - missing) / (1.0 - missing))


def _survivors(rows: list[TableRow]) -> list[Line]:
    """Copies of beta that no shift of all entries explains better."""
    return [line(rows, f"{law}: no shift is better", x="eps", y="shift", baseline=True, law=law)
            for law in ("N(1, 1)", "constant 1")]  # fmt: skip


EXPERIMENT = Experiment(
    name="universality",
    title="Seven laws of noise on one trained network: share of units that come back exactly",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 5, "full": 20},
)
