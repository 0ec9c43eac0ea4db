"""Trial of Figure 15: both layers of one trained network, contaminated by seven laws."""

from collections.abc import Sequence

import torch
from torch import Tensor

from netpurify.contaminate import BitFlip, Cauchy, Constant, Law, Normal, Quantise, SignFlip
from netpurify.experiments.figures.trials.altered_weights import Cell
from netpurify.experiments.figures.trials.many_units import (
    TrainedLayer,
    change,
    copies_of_beta,
    first_filters,
    recovered,
)
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
"""Added noise of both signs, of mostly one sign, without a mean, of one size; the weight with its sign flipped, with
one of its 64 bits flipped, and rounded to seven levels."""


def by_seven_laws(cell: Cell, seed: int, *, shares: Sequence[float]) -> list[Cell]:
    """One network trained as in Theorem 3; both layers contaminated by every law at every share, one at a time."""
    generator = torch.Generator().manual_seed(seed)
    n, m, k = cell["n"], cell["m"], cell["k"]
    inputs = torch.randn(n, m * k, generator=generator, dtype=torch.float64)
    targets = 2.0 * torch.rand(n, generator=generator, dtype=torch.float64) - 1.0
    start = PatchCNN(m=m, k=k, p=cell["p"], generator=generator)
    training = train(start, inputs, targets, gamma=cell["gamma"], regime="sequential", steps=cell["steps"])
    before, after = training.initial, training.trained
    beta = TrainedLayer(copies_of_beta(before, cell["copies"]), copies_of_beta(after, cell["copies"]), "output")
    rows = []
    for name, law in LAWS.items():
        for eps in shares:
            found, dirty, _ = recovered(beta, law, eps, inputs, seed)
            rivals = _rivals(training.trained, inputs, change(beta, dirty))
            rows.append({"layer": "beta", "law": name, "eps": eps, **found, **rivals})
            if cell["filters"]:
                filters = TrainedLayer(
                    first_filters(before, cell["filters"]), first_filters(after, cell["filters"]), "hidden.0"
                )
                found, *_ = recovered(filters, law, eps, inputs, seed)
                rows.append({"layer": "W", "law": name, "eps": eps, **found})
    return rows


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
