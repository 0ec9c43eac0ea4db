"""Hunting and unlearning, measured: false alarms, what is found, what is left of attacks, beside other repairs.

The quick mode has one small network on the bundled sample of MNIST, the default mode the networks for MNIST, and the
full mode all networks.
"""

from functools import partial
from pathlib import Path

from netpurify.experiments.studies.defence.scenarios import ATTACKS
from netpurify.experiments.studies.study import Study
from netpurify.experiments.studies.unlearn.alarms import GREY
from netpurify.experiments.studies.unlearn.attacks import SET_ASIDE
from netpurify.experiments.studies.unlearn.curve import pictures
from netpurify.experiments.studies.unlearn.methods import METHODS
from netpurify.experiments.studies.unlearn.opinions import second_opinions
from netpurify.experiments.studies.unlearn.page import unlearn_page
from netpurify.experiments.studies.unlearn.rivals import TRIED_ON, every_repair
from netpurify.experiments.studies.unlearn.rows import COUNT, hunted, repaired
from netpurify.findings import Experiment, Mode, TableRow

ONE_NETWORK = ("network", "attack")
"""Settings that, with the seed, say which network is trained."""
HUNTS = (0, 1, 2)
"""Seeds of the hunts."""
COUNTS = (50, 100, 500, 1000)
"""Numbers of clean images."""
ATTACKED = {"mnist_cnn": (0, 1, 2), "fashion_cnn": (0, 1, 2), "resnet": (2,), "vgg": (2,)}
"""Seeds of the attacked networks of each kind; each seed has its own initial weights, target class and images, and seed
2 other triggers too. Large networks of other seeds are left out: on many of them something was chosen."""
UNSEEN = (1, 2)
"""Seeds of the networks on which the attacks set aside are tried; all are for MNIST."""
HEALTHY = {"mnist_cnn": 26, "fashion_cnn": 26, "resnet": 3, "vgg": 3, "short_resnet": 13, "short_vgg": 13}
"""Healthy networks of each kind that are hunted in the full mode, for the rate of false alarms."""
HUNTED_THRICE = 3
"""Healthy networks of each kind that are hunted with every seed of a hunt; the others are hunted once."""
SECONDS = {"unlearn": 45.0, "defend": 8.0, "I-BAU": 25.0, "RNP": 8.0, "NAD": 55.0, "FT-SAM": 80.0,
           "ANP, 2,000 iterations": 400.0}  # fmt: skip
"""About how long each repair takes on the ResNet with 500 images, on one core."""
COSTLY = {"unlearn, then defend", "defend, then unlearn", "NAD", "FT-SAM", "ANP, 2,000 iterations"}
"""Repairs that are tried on the small networks alone, with one seed; on a ResNet they are tried in ``rivals``."""
SEVERAL_COUNTS = ("mnist_cnn", "resnet")
"""Networks on which other numbers of images are tried."""
RIVALLED = {"resnet": ("none", "patch", "blended", "wanet")}
"""Attacks on large networks on which every repair is tried, with one seed."""
ONCE = {"fashion_cnn": (0, 1)}
"""Seeds of attacked networks that are hunted and unlearnt with one seed of a hunt."""
ONE_SEED = 2
"""The seed of networks of which one is tried: with costly repairs, and with other numbers of images."""


def _pairs(mode: Mode) -> list[TableRow]:
    """Networks and attacks of a mode."""
    if mode == "quick":
        return [{"network": "sample_cnn", "attack": attack} for attack in ("none", "patch", "blended")]
    networks = ATTACKED if mode == "full" else ("mnist_cnn",)
    pairs = [(network, attack) for network in networks for attack in ATTACKS]
    pairs += [("mnist_cnn", attack) for attack in SET_ASIDE]
    return [{"network": network, "attack": attack} for network, attack in pairs]


def _attacked(cell: TableRow, seed: int) -> bool:
    """Whether there is a network with this attack and this seed; the quick mode has one of each."""
    return seed in (UNSEEN if cell["attack"] in SET_ASIDE else ATTACKED.get(str(cell["network"]), (0,)))


def _hunts(mode: Mode) -> list[TableRow]:
    pairs = _pairs(mode)
    if mode == "full":
        pairs += [{"network": network, "attack": "none"} for network in HEALTHY if network not in ATTACKED]
    seeds = HUNTS if mode != "quick" else (0,)
    return [{**pair, "hunt": seed} for pair in pairs for seed in seeds]


def _hunted(cell: TableRow, seed: int) -> bool:
    """Some networks of each kind are hunted three times; further ones, most of them healthy, are hunted once."""
    if cell["attack"] != "none":
        return _attacked(cell, seed) and (cell["hunt"] == 0 or not _once(cell, seed))
    return seed < HEALTHY.get(str(cell["network"]), 1) and (seed < HUNTED_THRICE or cell["hunt"] == 0)


def _repairs(mode: Mode) -> list[TableRow]:
    """Every repair with 500 images; ``unlearn`` with every hunt, and with other numbers of images once.

    RNP needs BatchNorm, which the networks for grey images do not have, and prunes nothing in the others. ANP takes a
    minute for the smallest network.
    """
    cells = []
    for pair in _pairs(mode):
        known = pair["attack"] in ATTACKS and mode != "quick"
        for method in METHODS if mode != "quick" else ("nothing", "unlearn"):
            if method in COSTLY and not (known and pair["network"] in GREY):
                continue
            if method == "ANP, 2,000 iterations" and pair["network"] != "mnist_cnn":
                continue
            if method == "RNP" and pair["network"] in GREY:
                continue
            seeds = HUNTS if method == "unlearn" and known else (0,)
            cells += [pair | {"method": method, "images": COUNT, "hunt": seed} for seed in seeds]
        if mode == "full" and known and pair["network"] in SEVERAL_COUNTS:
            cells += [pair | {"method": "unlearn", "images": count, "hunt": 0} for count in COUNTS if count != COUNT]
    return cells


def _repaired(cell: TableRow, seed: int) -> bool:
    once = cell["method"] in COSTLY or cell["images"] != COUNT
    return _attacked(cell, seed) and (seed == ONE_SEED or not once) and (cell["hunt"] == 0 or not _once(cell, seed))


def _once(cell: TableRow, seed: int) -> bool:
    return seed in ONCE.get(str(cell["network"]), ())


def _rivals(mode: Mode) -> list[TableRow]:
    """Networks of which each is repaired in every way."""
    if mode != "full":
        return [{"network": "sample_cnn" if mode == "quick" else "mnist_cnn", "attack": "patch"}]
    return [{"network": network, "attack": attack} for network, attacks in RIVALLED.items() for attack in attacks]


def _rivalled(cell: TableRow, seed: int) -> bool:
    return seed == (0 if cell["network"] == "sample_cnn" else ONE_SEED)


def _opinions(mode: Mode) -> list[TableRow]:
    """Networks whose repairs are given a second opinion, and healthy ones beside them."""
    if mode == "quick":
        return [{"network": "sample_cnn", "attack": "patch"}]
    return [{"network": "mnist_cnn", "attack": attack} for attack in ATTACKS]


def _second_opinion(cell: TableRow, seed: int) -> bool:
    """Those on which nothing was chosen; the quick mode has one."""
    return seed > 0 or cell["network"] == "sample_cnn"


def _scale(cell: TableRow) -> float:
    return {"resnet": 1.0, "vgg": 0.9, "short_resnet": 1.0, "short_vgg": 0.9}.get(str(cell["network"]), 0.2)


def experiments(folder: Path) -> tuple[Experiment, ...]:
    """The hunts first: what they show in healthy networks is what repairs go by."""
    networks = str(folder / "networks")
    return (
        Experiment(
            name="hunts",
            title="what hunts find in healthy and in poisoned networks",
            grid=_hunts,
            trial=partial(hunted, folder=networks),
            cost=lambda cell: 15.0 * _scale(cell),
            trials={"quick": 1, "default": 3, "full": max(HEALTHY.values())},
            has_trial=_hunted,
            revision=2,
            together=ONE_NETWORK,
        ),
        Experiment(
            name="unlearnt",
            title="what is left of attacks after each repair",
            grid=_repairs,
            trial=partial(repaired, folder=networks),
            cost=lambda cell: 2.0 + _scale(cell) * SECONDS.get(str(cell["method"]), 60.0),
            trials={"quick": 1, "default": 3, "full": 3},
            has_trial=_repaired,
            revision=2,
            together=ONE_NETWORK,
        ),
        Experiment(
            name="rivals",
            title="what is left of attacks after every repair of one and the same network",
            grid=_rivals,
            trial=partial(every_repair, folder=networks),
            cost=lambda cell: 2.0 + _scale(cell) * (850.0 if cell["attack"] in TRIED_ON else 450.0),
            trials={"quick": 1, "default": 3, "full": 3},
            has_trial=_rivalled,
        ),
        Experiment(
            name="opinions",
            title="what tells how much of a backdoor a repair has left",
            grid=_opinions,
            trial=partial(second_opinions, folder=networks),
            cost=lambda cell: 2.0 + _scale(cell) * (20.0 if cell["attack"] == "none" else 240.0),
            trials={"quick": 1, "default": 3, "full": 3},
            has_trial=_second_opinion,
        ),
    )


def data_sets(mode: Mode) -> tuple[str, ...]:
    """The quick mode needs the bundled sample alone."""
    return {"quick": (), "default": ("mnist",)}.get(mode, ("mnist", "fashion-mnist", "cifar10"))


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
