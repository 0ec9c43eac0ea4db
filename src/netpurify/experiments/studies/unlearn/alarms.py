"""Which hunts raise an alarm: levels of healthy networks from the rows on which they are calibrated, applied to all."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from netpurify.experiments.studies.markdown import number
from netpurify.findings import TableRow, group
from netpurify.network import Expectation, HealthyLevel, healthy_level, strongest_classes

GREY = ("mnist_cnn", "fashion_cnn", "sample_cnn")
"""Networks for grey images; all others are for colour images."""
CALIBRATED = {
    "sample_cnn": 2,
    "mnist_cnn": 2,
    "fashion_cnn": 6,
    "resnet": 2,
    "vgg": 2,
    "short_resnet": 6,
    "short_vgg": 6,
}
"""Of how many healthy networks of each kind the levels come: those with the lowest seeds. All others are set aside."""
ABOUT = {
    "grey": "CNNs without BatchNorm on MNIST and Fashion-MNIST, of netpurify study unlearn",
    "colour": "ResNets and VGG-like networks on CIFAR-10, of netpurify study unlearn",
}


@dataclass(frozen=True, slots=True)
class HuntedNetwork:
    """One hunt in one network, and whether it raises an alarm.

    Attributes:
        row: Any of its rows: network, attack, seed, hunt.
        suspects: By the name of a suspect family, the class that stands out, and its success.
    """

    row: TableRow
    suspects: dict[str, tuple[int, float]]

    @property
    def healthy(self) -> bool:
        """Whether the network was trained on data that nobody poisoned."""
        return self.row["attack"] == "none"

    @property
    def found(self) -> bool:
        """Whether the class of the backdoor is one of those that users are told of."""
        return self.row["target"] in strongest_classes(list(self.suspects.values()))

    def found_without(self, *families: str) -> bool:
        """Whether it is without these families, too."""
        others = [found for name, found in self.suspects.items() if name not in families]
        return self.row["target"] in strongest_classes(others)


def kind_of(row: TableRow) -> str:
    """Grey or colour."""
    return "grey" if row["network"] in GREY else "colour"


def calibrated_on(row: TableRow) -> bool:
    """Whether the row is of a healthy network from which levels come."""
    return row["attack"] == "none" and number(row["seed"]) < CALIBRATED[str(row["network"])]


def calibration(rows: Iterable[TableRow]) -> dict[str, Expectation]:
    """What healthy networks show, by kind of image, from those on which hunts are calibrated."""
    chosen = [row for row in rows if calibrated_on(row)]
    found = {}
    for kind in dict.fromkeys(kind_of(row) for row in chosen):
        own = [row for row in chosen if kind_of(row) == kind]
        levels: dict[str, HealthyLevel] = {}
        for (family,), some in group(own, ["family"]).items():
            levels[str(family)] = healthy_level(
                [number(row["success"]) for row in some], [number(row["margin"]) for row in some]
            )
        found[kind] = Expectation(levels, len({(row["network"], row["seed"]) for row in own}), ABOUT[kind])
    return found


def hunted_networks(rows: list[TableRow], expected: dict[str, Expectation]) -> list[HuntedNetwork]:
    """Every hunt of a table, judged by what is expected of healthy networks."""
    found = []
    for some in group(rows, ["network", "attack", "seed", "hunt"]).values():
        levels = expected.get(kind_of(some[0]), next(iter(expected.values())))
        suspects: dict[str, Any] = {
            str(row["family"]): (row["class"], number(row["success"]))
            for row in some
            if levels.of(str(row["family"])).alarm(number(row["success"]), number(row["margin"])) >= 1.0
        }
        found.append(HuntedNetwork(some[0], suspects))
    return found


def without_themselves(rows: list[TableRow]) -> list[HuntedNetwork]:
    """Hunts in the healthy networks from which levels come, each judged by levels that come from all others."""
    chosen = [row for row in rows if calibrated_on(row)]
    judged = []
    for (network, seed), own in group(chosen, ["network", "seed"]).items():
        others = [row for row in chosen if (row["network"], row["seed"]) != (network, seed)]
        expected = calibration(others)
        if kind_of(own[0]) in expected:
            judged += hunted_networks(own, expected)
    return judged
