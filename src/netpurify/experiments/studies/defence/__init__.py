"""Every defence on every attack, network and number of clean images: the tables of docs/defence-results.md.

The quick mode has one small network on the bundled sample of MNIST, the default mode the networks on which settings of
``defend`` were chosen, and the full mode all networks, which takes a night on two cores.
"""

from functools import partial
from pathlib import Path

from netpurify.experiments.studies.defence.defences import DEFENCES, PUBLISHED
from netpurify.experiments.studies.defence.page import defence_page
from netpurify.experiments.studies.defence.rows import COUNTS, defended, trained
from netpurify.experiments.studies.defence.scatter import pictures
from netpurify.experiments.studies.defence.scenarios import ATTACKS, COMPARED, DEVELOPMENT, QUICK
from netpurify.experiments.studies.study import Study
from netpurify.findings import Experiment, Mode, TableRow

SECONDS = {"nothing": 0.0, "CLP": 0.0, "fine-tuning": 35.0, "fine-pruning": 40.0, "ANP": 120.0, "Algorithm 2": 15.0,
           "least squares": 15.0, "defend": 35.0}  # fmt: skip
"""About how long each defence takes on a network for CIFAR-10 with 1,000 images."""


def network_cells(mode: Mode) -> list[TableRow]:
    """The networks of a mode."""
    scenarios = {"quick": QUICK, "default": DEVELOPMENT}.get(mode)
    if scenarios is None:
        return [{"network": network, "attack": attack} for network in COMPARED for attack in ATTACKS]
    return [{"network": scenario.network, "attack": scenario.attack} for scenario in scenarios]


def defence_cells(mode: Mode) -> list[TableRow]:
    """Every defence on every network; defences that use no images once, ANP with 500 images only."""
    cells = []
    for cell in network_cells(mode):
        for name, defence in DEFENCES.items():
            counts = (500,) if name == "ANP" else COUNTS if defence.data else (0,)
            cells.extend(cell | {"defence": name, "images": count} for count in counts)
    return cells


def training(folder: Path) -> Experiment:
    """Training every network once, so that no two defences train the same one at the same time."""
    return Experiment(
        name="defence-networks",
        title="networks trained on poisoned data",
        grid=network_cells,
        trial=partial(trained, folder=str(folder)),
        cost=lambda cell: {"resnet": 450.0, "vgg": 350.0}.get(str(cell["network"]), 20.0),
        trials={"quick": 1, "default": 1, "full": 3},
    )


def table(folder: Path) -> Experiment:
    """Every defence on every network."""

    def cost(cell: TableRow) -> float:
        share = 0.1 if "cnn" in str(cell["network"]) else 1.0
        name, images = str(cell["defence"]), int(cell["images"] or 0)
        # With more images the inputs span every direction, and there is nothing to solve.
        if name == "Algorithm 2" and images < 500:
            return 5.0 + share * 100.0
        return 5.0 + share * SECONDS.get(name, 30.0) * images / 1000

    return Experiment(
        name="defences",
        title="defences on poisoned networks",
        grid=defence_cells,
        trial=partial(defended, folder=str(folder)),
        cost=cost,
        trials={"quick": 1, "default": 1, "full": 3},
    )


def published(folder: Path) -> Experiment:
    """Fine-tuning and fine-pruning with the published number of epochs, on one of three seeds."""
    return Experiment(
        name="defences-published",
        title="published epochs",
        grid=lambda mode: [
            cell | {"defence": name, "images": 500} for cell in network_cells(mode) for name in PUBLISHED
        ],
        trial=partial(defended, folder=str(folder)),
        cost=lambda cell: 15.0 if "cnn" in str(cell["network"]) else 95.0,
        trials={"quick": 1, "default": 1, "full": 1},
    )


def experiments(folder: Path) -> tuple[Experiment, ...]:
    """Training first, so that no two defences train the same network at the same time."""
    networks = folder / "networks"
    return training(networks), table(networks), published(networks)


def data_sets(mode: Mode) -> tuple[str, ...]:
    """The quick mode needs the bundled sample alone."""
    return () if mode == "quick" else ("mnist", "cifar10")


STUDY = Study(
    name="defence",
    title="How do defences compare on poisoned networks?",
    document="defence-results.md",
    experiments=experiments,
    page=defence_page,
    pictures=pictures,
    data_sets=data_sets,
    libraries=("matplotlib",),
)
