"""Which hunts raise an alarm: levels of healthy networks from the rows on which they are calibrated, applied to all."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from netpurify.experiments.studies.markdown import number
from netpurify.findings import TableRow, group
from netpurify.network import Expectation, HealthyLevel, healthy_level

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
        suspects: By the name of a suspect family, the class that stands out.
    """

    row: TableRow
    suspects: dict[str, int]

    @property
    def healthy(self) -> bool:
        """Whether the network was trained on data that nobody poisoned."""
        return self.row["attack"] == "none"

    @property
    def found(self) -> bool:
        """Whether a family points to the class of the backdoor."""
        return self.row["target"] in self.suspects.values()

    def found_without(self, family: str) -> bool:
        """Whether another family than this one points there."""
        return self.row["target"] in [target for name, target in self.suspects.items() if name != family]


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
            str(row["family"]): row["class"]
            for row in some
            if levels.of(str(row["family"])).alarm(number(row["success"]), number(row["margin"])) >= 1.0
        }
        found.append(HuntedNetwork(some[0], suspects))
    return found
