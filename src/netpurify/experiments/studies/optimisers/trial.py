"""Trials of the study of optimisers: what is recovered after each way of training, and what the change looks like."""

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from netpurify.contaminate import Normal, contaminate
from netpurify.experiments.studies.optimisers.training import FIRST, METHODS, NETWORKS, OptimisedNetwork, train
from netpurify.findings import TableRow
from netpurify.network import (
    Grade,
    Network,
    Outcome,
    Recover,
    build_design,
    capture,
    layer_by_layer,
    pose,
    prepare,
    probe,
)

SHARE = 0.05
"""Share of the weights that are altered."""
SIZES = {"large": 1.0, "small": 0.02}
"""Standard deviation of the alterations: far above the weights, and like the weights themselves."""
PROBES = 8
"""Units of a layer that are tried, as by ``check``."""
COUNTS = (1, 2, 3, 5, 10, 20, 50, 100)
"""Steps after which the change is measured."""
NEGLIGIBLE = 1e-5
"""Singular values below this share of the largest one do not count for the rank of a change."""
SECOND_MOMENTS = {"Adam": "exp_avg_sq", "AdamW": "exp_avg_sq", "RMSprop": "square_avg", "Adagrad": "sum"}
"""Where an optimiser keeps the means of squared gradients by which it divides."""


def recovery_trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Train a network, alter its trained layers, try units and purify; a row for each part and size of alterations.

    The steps of ``check`` and ``purify`` are taken one by one, because nine tenths of their time would go into the
    simulation of what layers tolerate.
    """
    kind = str(settings["network"])
    trained = train(kind, METHODS[str(settings["method"])], seed)
    parts, rows = NETWORKS[kind].parts, []
    for size, deviation in SIZES.items():
        names = [f"{name}.weight" for part in parts.values() for name in part]
        generator = torch.Generator().manual_seed(seed + 1)
        found = contaminate(
            trained.network.state_dict(), Normal(0.0, deviation), share=SHARE, generator=generator, names=names
        )
        dirty = copy.deepcopy(trained.network)
        dirty.load_state_dict(found.state)
        probes = tried(prepare(dirty, trained.inputs, initial=trained.initial))
        purified = layer_by_layer(
            prepare(dirty, trained.inputs, initial=trained.initial), Recover(trained.initial, proof=False)
        )
        outcomes = {done.layer.name: done.outcome for done in purified}
        rows += [
            {"part": part, "size": size}
            | joined([judged(trained, name, outcomes[name], found.altered) | probes[name] for name in layers])
            for part, layers in parts.items()
        ]
    return rows


def joined(rows: list[TableRow]) -> TableRow:
    """The sums of the columns of some rows, and the largest error."""
    total: TableRow = {column: sum(int(row[column] or 0) for row in rows) for column in rows[0]}
    return total | {"error": max(float(row["error"] or 0.0) for row in rows)}


def tried(network: Network) -> dict[str, TableRow]:
    """How many units of each layer agree on a fit before anything is repaired, as ``check`` tries them."""
    found: dict[str, TableRow] = {}
    for layer in network.in_order():
        spans = capture(network, layer)
        designs = [build_design(span) for span in spans]
        probed = probe(pose(layer, network.weights(layer), spans, designs), PROBES)
        found[layer.name] = {"probed": probed.probed, "agreeing": probed.agreeing}
    return found


def judged(trained: OptimisedNetwork, name: str, outcome: Outcome, altered: dict[str, Tensor]) -> TableRow:
    """Units recovered and weights found in one layer, also in the rows that no input reaches."""
    true = altered[f"{name}.weight"].flatten(1).T
    called = torch.from_numpy(outcome.replaced[0])[: len(true)]
    dead = unreached(trained, name)
    exact = trained.network.state_dict()[f"{name}.weight"].flatten(1).T
    errors = (torch.from_numpy(outcome.matrix[0])[: len(true)] - exact).abs()[called & ~true]
    return {
        "units": outcome.grade.size,
        "recovered": int((outcome.grade == Grade.RECOVERED).sum()),
        "altered": int(true.sum()),
        "found": int((called & true).sum()),
        "false": int(outcome.replaced.sum()) - int((called & true).sum()),
        "error": float(errors.max()) if len(errors) else 0.0,
        "unreached": int(true[dead].sum()),
        "unreached_found": int((called & true)[dead].sum()),
    }


def unreached(trained: OptimisedNetwork, name: str) -> Tensor:
    """Coordinates of a layer's fan-in that are zero for every clean input, without the bias."""
    seen: list[Tensor] = []
    layer = trained.network.get_submodule(name)
    hook = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    with torch.no_grad():
        trained.network(trained.inputs)
    hook.remove()
    if isinstance(layer, nn.Conv2d):
        return ~(nn.functional.unfold(seen[0], layer.weight.shape[2:], stride=layer.stride) != 0.0).any(dim=2).any(
            dim=0
        )
    return ~(seen[0] != 0.0).any(dim=0)


def change_trial(settings: TableRow, seed: int) -> list[TableRow]:
    """The change of an MLP's first layer after some numbers of steps: its rank, and how far it leaves the span."""
    name = str(settings["method"])
    method = replace(METHODS[name], batch=int(settings["batch"] or 0))
    trained = train("MLP", method, seed, snapshots=COUNTS)
    span = torch.linalg.qr(trained.inputs.flatten(1).double().T)[0]
    first = NETWORKS["MLP"].parts[FIRST][0]
    initial = trained.initial.state_dict()[f"{first}.weight"].double()
    return [
        {"steps": steps, **measured(change, span)}
        | {"outside_known": None if squares is None else outside(squares * change, span)}
        for steps, (network, state) in trained.snapshots.items()
        for change in [network.state_dict()[f"{first}.weight"].double() - initial]
        for squares in [root_of_squares(state, name)]
    ]


def root_of_squares(state: dict[str, Any], name: str) -> Tensor | None:
    """What the optimiser divides gradients by, from its state after the last step; ``None`` if it does not divide."""
    squares = state.get(SECOND_MOMENTS.get(name, ""))
    return None if squares is None else squares.double().sqrt()


def measured(change: Tensor, span: Tensor) -> TableRow:
    """Rank of a change [units, fan-in], directions that hold 99 % of its energy, and its part outside the span."""
    sizes = torch.linalg.svdvals(change)
    energy = (sizes**2).cumsum(0) / (sizes**2).sum()
    return {
        "units": len(change),
        "directions": span.shape[1],
        "rank": int((sizes > NEGLIGIBLE * sizes[0]).sum()),
        "rank_99": int((energy < 0.99).sum()) + 1,
        "outside": outside(change, span),
    }


def outside(matrix: Tensor, span: Tensor) -> float:
    """Norm of the part of the rows outside the span, as a share of the whole norm."""
    return float((matrix - matrix @ span @ span.T).norm() / matrix.norm())
