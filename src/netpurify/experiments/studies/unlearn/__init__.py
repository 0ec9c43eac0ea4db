"""Hunting and unlearning, measured: false alarms, what is found, what is left of attacks, beside other repairs.

The quick mode has one small network on the bundled sample of MNIST, the default mode the networks for MNIST, and the
full mode all networks.
"""

from functools import partial
from pathlib import Path

from netpurify.experiments.studies.defence.scenarios import ATTACKS
from netpurify.experiments.studies.study import Study
from netpurify.experiments.studies.unlearn.attacks import SET_ASIDE
from netpurify.experiments.studies.unlearn.curve import pictures
from netpurify.experiments.studies.unlearn.methods import METHODS
from netpurify.experiments.studies.unlearn.page import unlearn_page
from netpurify.experiments.studies.unlearn.rows import COUNT, hunted, repaired
from netpurify.findings import Experiment, Mode, TableRow

HUNTS = (0, 1, 2)
"""Seeds of the hunts."""
COUNTS = (50, 100, 500, 1000)
"""Numbers of clean images."""
SECONDS = {"unlearn": 125.0, "defend": 20.0, "I-BAU": 66.0, "RNP": 22.0, "NAD": 145.0, "FT-SAM": 220.0,
           "ANP, 2,000 iterations": 1200.0}  # fmt: skip
"""About how long each repair takes on the ResNet with 500 images, on one core."""


def _pairs(mode: Mode) -> list[TableRow]:
    """Networks and attacks of a mode. The attacks that were set aside are tried on the small networks, and on VGG."""
    if mode == "quick":
        return [{"network": "sample_cnn", "attack": attack} for attack in ("none", "patch", "blended")]
    pairs: list[TableRow] = [{"network": "mnist_cnn", "attack": attack} for attack in (*ATTACKS, *SET_ASIDE)]
    if mode == "full":
        pairs.extend({"network": "resnet", "attack": attack} for attack in ATTACKS)
        pairs.extend({"network": "vgg", "attack": attack} for attack in (*ATTACKS, *SET_ASIDE))
    return pairs


def _hunts(mode: Mode) -> list[TableRow]:
    return [pair | {"hunt": seed} for pair in _pairs(mode) for seed in (HUNTS if mode != "quick" else (0,))]


def _repairs(mode: Mode) -> list[TableRow]:
    """Every repair with 500 images; ``unlearn`` with every hunt, and with other numbers of images once."""
    cells = []
    for pair in _pairs(mode):
        for method in METHODS if mode != "quick" else ("nothing", "unlearn"):
            seeds = HUNTS if method == "unlearn" and mode != "quick" else (0,)
            cells += [pair | {"method": method, "images": COUNT, "hunt": seed} for seed in seeds]
        if mode == "full" and pair["attack"] in ATTACKS:
            cells += [pair | {"method": "unlearn", "images": count, "hunt": 0} for count in COUNTS if count != COUNT]
    return cells


def _scale(cell: TableRow) -> float:
    return {"resnet": 1.0, "vgg": 0.8}.get(str(cell["network"]), 0.1)


def experiments(folder: Path) -> tuple[Experiment, ...]:
    """The hunts first: what they show in healthy networks is what repairs go by."""
    networks = str(folder / "networks")
    trials: dict[Mode, int] = {"quick": 1, "default": 3, "full": 3}
    return (
        Experiment(
            name="hunts",
            title="what hunts find in healthy and in poisoned networks",
            grid=_hunts,
            trial=partial(hunted, folder=networks),
            cost=lambda cell: 35.0 * _scale(cell),
            trials=trials,
        ),
        Experiment(
            name="unlearnt",
            title="what is left of attacks after each repair",
            grid=_repairs,
            trial=partial(repaired, folder=networks),
            cost=lambda cell: 5.0 + _scale(cell) * SECONDS.get(str(cell["method"]), 150.0),
            trials=trials,
        ),
    )


def data_sets(mode: Mode) -> tuple[str, ...]:
    """The quick mode needs the bundled sample alone."""
    return {"quick": (), "default": ("mnist",)}.get(mode, ("mnist", "cifar10"))


STUDY = Study(
    name="unlearn",
    title="Does a hunt find backdoors, and does unlearning remove them?",
    document="unlearn-results.md",
    experiments=experiments,
    page=unlearn_page,
    pictures=pictures,
    data_sets=data_sets,
    libraries=("matplotlib",),
)
