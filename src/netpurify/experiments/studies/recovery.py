"""What ``netpurify.purify`` recovers in networks that are trained here: the table of docs/network-results.md.

Every network is trained on images of the bundled MNIST sample, and the same images purify it. All weights and biases of
Linear and Conv layers are altered, each with the given probability: by N(0, 1) added, by one random bit flipped, or by
erasure (NaN).
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

import netpurify
from netpurify import data
from netpurify.contaminate import BitFlip, Erase, Law, Normal, contaminate
from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.blocks import ResidualBlock
from netpurify.experiments.studies.study import RunFacts, Study, Tables, always
from netpurify.findings import Experiment, Mode, TableRow
from netpurify.network import Grade, LayerRecord, Purification, Seeded

HEALTHY = "healthy"
LAWS: dict[str, Law] = {"noise": Normal(0.0, 1.0), "bit flip": BitFlip(), "erasure": Erase()}
SHARES = (0.05, 0.1, 0.2, 0.3)
EXACT = 1e-5
"""Largest error of a weight in a unit that counts as exact."""
PAGE = """# What is recovered: networks of four kinds

Made by `{commands}` in {core_time} of one core ([the table itself](results/recovery.csv.gz)). Each network is trained
on 30 to 60 images of the bundled MNIST sample, which also purify it. All weights and biases of Linear and Conv layers
are altered, each with the given probability: N(0, 1) added, one random bit flipped, or erased (NaN).

*Precision*: share of the named weights that were altered. *Recall*: share of the altered weights that were named, not
counting flips of last bits, which are smaller than the rounding errors. *Units exact*: units all of whose weights are
within {exact} of the true ones, whatever their grade. *Unjudged*: weights that differ from the fit and were left alone,
because nearly all units differ on their row, so that the row itself may be wrong. *Suspicious*: weights that are far
from a fit that is not exact; they were listed, not replaced. *Largest error*: of any weight that was replaced in a unit
that is called recovered.

{table}

In the second network all layers were trained at once. Its first layer sees the images themselves and is exact. The
inputs of the other layers changed during training, so that no fit is exact there, and the grades say so.
"""
COLUMNS = (
    "network", "altered", "share", "precision", "recall", "units exact", "approximate", "left alone", "unjudged",
    "suspicious", "largest error", "seconds",
)  # fmt: skip


def mlp() -> nn.Sequential:
    """Three layers on 784 pixels."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(), nn.Linear(100, 10)
    )


def lenet() -> nn.Sequential:
    """Two convolutions and three fully connected layers."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 240), nn.ReLU(), nn.Linear(240, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def resnet() -> nn.Sequential:
    """A small ResNet with BatchNorm and a head on 256 features."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), ResidualBlock(16), nn.MaxPool2d(2),
        ResidualBlock(16), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def depthwise() -> nn.Sequential:
    """Depthwise and pointwise convolutions, and a head on 512 features."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, groups=32),
        nn.Conv2d(32, 32, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecoveryCase:
    """A network and how it is trained.

    Attributes:
        name: Name in the table.
        build: Makes the network.
        images: Number of images that train it.
        phases: Layers that are trained together, in groups one after the other; all other layers stay as they were.
    """

    name: str
    build: Callable[[], nn.Sequential]
    images: int
    phases: tuple[tuple[int, ...], ...]


CASES = {
    case.name: case
    for case in (
        RecoveryCase("MLP, one layer after the other", mlp, 40, ((1,), (3,), (5,))),
        RecoveryCase("MLP, all layers at once", mlp, 40, ((1, 3, 5),)),
        RecoveryCase("LeNet, fully connected layers one after the other", lenet, 30, ((7,), (9,), (11,))),
        RecoveryCase("ResNet with BatchNorm, head", resnet, 60, ((8,),)),
        RecoveryCase("depthwise CNN, head", depthwise, 60, ((7,),)),
    )
}


def grid(mode: Mode) -> list[TableRow]:
    """Every network, healthy (share 0) and altered; the quick grid has one share."""
    shares = (0.0, 0.2) if mode == "quick" else (0.0, *SHARES)
    return [{"network": name, "share": share} for name in CASES for share in shares]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """One row for each way of altering a network; share 0 gives one row for the healthy network."""
    network, initial, inputs = trained(str(settings["network"]), seed)
    share = float(settings["share"] or 0.0)
    return [
        {"altered": name, **purified(network, initial, inputs, law=law, share=share, seed=seed + 1)}
        for name, law in (LAWS if share else {HEALTHY: Erase()}).items()
    ]


def cost(settings: TableRow) -> float:
    """About what purification takes three times, and training once."""
    return 20.0 if settings["share"] else 10.0


@cache
def trained(name: str, seed: int) -> tuple[nn.Sequential, nn.Sequential, Tensor]:
    """A trained network, its initial weights and its images; BatchNorm keeps its initial statistics throughout."""
    case = CASES[name]
    drawn = data.balanced(data.load("mnist-sample"), case.images, generator=torch.Generator().manual_seed(seed))
    inputs, labels = data.to_inputs(drawn).float().reshape(-1, 1, 28, 28), drawn.labels
    network = Seeded(case.build, seed).build().eval()
    assert isinstance(network, nn.Sequential)
    initial = copy.deepcopy(network)
    for phase in case.phases:
        optimiser = torch.optim.SGD([value for number in phase for value in network[number].parameters()], lr=0.05)
        for _ in range(300):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(inputs), labels).backward()
            optimiser.step()
    return network, initial, inputs


def purified(network: nn.Module, initial: nn.Module, inputs: Tensor, *, law: Law, share: float, seed: int) -> TableRow:
    """Alter a share of the network's weights, purify it, and compare the result with the truth."""
    layers = [name for name, module in network.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)]
    names = [name for name in network.state_dict() if name.rpartition(".")[0] in layers]
    generator = torch.Generator().manual_seed(seed)
    contaminated = contaminate(network.state_dict(), law, share=share, generator=generator, names=names)
    dirty = copy.deepcopy(network)
    dirty.load_state_dict(contaminated.state)
    begun = time.perf_counter()
    result = netpurify.purify(dirty, inputs, policy=netpurify.Recover(initial))
    seconds = time.perf_counter() - begun
    true = network.state_dict()
    return {**named(result, true, contaminated.altered), **repaired(result, true), "purify_seconds": seconds}


def named(result: Purification, true: dict[str, Tensor], altered: dict[str, Tensor]) -> TableRow:
    """How many of the weights that were called altered were, and how many altered weights were missed."""
    table = result.altered
    called = {(table.names[tensor], int(index)) for tensor, index in zip(table.tensor, table.index, strict=True)}
    hits = misses = 0
    for layer in result.layers:
        floor = float(np.nanmax(np.append(layer.noise_floor, 0.0)))
        for name in (f"{layer.name}.weight", f"{layer.name}.bias"):
            if name not in altered:
                continue
            change = (result.contaminated[name] - true[name]).abs().reshape(-1)
            for index in altered[name].reshape(-1).nonzero().reshape(-1).tolist():
                hit = (name, index) in called
                hits += hit
                # A flip of a last bit is smaller than the rounding errors: nobody can see it, and it does no harm.
                misses += not hit and not float(change[index]) <= floor
    return {"named": len(called), "hits": hits, "misses": misses}


def repaired(result: Purification, true: dict[str, Tensor]) -> TableRow:
    """Exact units, grades, and the largest error of a weight that was replaced in a recovered unit."""
    now = result.model.state_dict()
    errors = [_errors(layer, now, result.contaminated, true) for layer in result.layers]
    return {
        "exact": sum(exact for exact, _ in errors),
        "units": sum(layer.units for layer in result.layers),
        "approximate": result.count(Grade.APPROXIMATE),
        "left_alone": result.count(Grade.LEFT_ALONE),
        "unjudged": sum(layer.unjudged for layer in result.layers),
        "suspicious": len(result.suspicious),
        "largest_error": max([0.0, *(worst for _, worst in errors)]),
    }


def _errors(
    layer: LayerRecord, now: dict[str, Tensor], contaminated: dict[str, Tensor], true: dict[str, Tensor]
) -> tuple[int, float]:
    """The number of exact units of a layer, and the largest error of a replaced weight in its recovered units."""
    name = f"{layer.name}.weight"
    error = (now[name] - true[name]).abs().flatten(1)
    recovered = torch.from_numpy(layer.grade == Grade.RECOVERED)
    # A weight that is wrong and was not replaced was left unjudged, and is counted as such.
    replaced = (now[name] != contaminated[name]).flatten(1)[recovered]
    worst = float((error[recovered] * replaced).max()) if recovered.any() else 0.0
    return int((error.amax(1) <= EXACT).sum()), worst


def page(tables: Tables, facts: RunFacts) -> str:
    """The page: one line for each network, way of altering it and share."""
    order = [HEALTHY, *LAWS]
    names = list(CASES)
    rows = sorted(
        tables["recovery"],
        key=lambda row: (names.index(str(row["network"])), order.index(str(row["altered"])), row["share"]),
    )
    table = markdown.table(COLUMNS, [cells(row) for row in rows], texts=3)
    return PAGE.format(table=table, exact=f"{EXACT:g}", commands=facts.commands, core_time=facts.core_time)


def cells(row: TableRow) -> list[str]:
    """One line of the page's table."""
    share, called, hits, misses, error, seconds = (
        markdown.number(row[name]) for name in ("share", "named", "hits", "misses", "largest_error", "purify_seconds")
    )
    return [
        str(row["network"]),
        str(row["altered"]),
        f"{share:.0%}",
        f"{hits / called:.3f}" if called else "-",
        f"{hits / (hits + misses):.3f}" if hits + misses else "-",
        f"{row['exact']} of {row['units']}",
        *(str(row[name]) for name in ("approximate", "left_alone", "unjudged", "suspicious")),
        f"{error:.1e}",
        f"{seconds:.1f}",
    ]


EXPERIMENT = Experiment(
    name="recovery",
    title="altered weights in small networks: which are found, and what is restored",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 1, "full": 1},
)


STUDY = Study(
    name="recovery",
    title="Which altered weights does purify find and restore?",
    document="network-results.md",
    experiments=always(EXPERIMENT),
    page=page,
)
