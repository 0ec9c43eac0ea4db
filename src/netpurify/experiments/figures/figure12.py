"""Figure 12: one to three hidden layers on CIFAR-10, purified with training images."""

from dataclasses import replace
from typing import Any

from netpurify.experiments.figures import backdoors, figure10
from netpurify.experiments.figures.settings import settings_of
from netpurify.findings import Mode, TableRow

CLEAN = 69


def grid(mode: Mode) -> list[TableRow]:
    """One to three hidden layers, shares of poisoned images."""
    other: dict[str, Any] = {"data": "cifar10", "poison": "other", "k": 512, "rate": 0.05}
    return [cell | other for cell in figure10.grid(mode)]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Clean images from both places."""
    return backdoors.backdoor(settings, seed, counts=(CLEAN,), pixels=range(5))


EXPERIMENT = replace(
    figure10.EXPERIMENT,
    name="cifar10-layers",
    title="CIFAR-10, 99 training images, some poisoned: number of hidden layers",
    grid=grid,
    trial=trial,
)
FIGURE = replace(
    figure10.FIGURE,
    number=12,
    title="One to three hidden layers on CIFAR-10, purified with training images",
    settings=settings_of(12, EXPERIMENT, counts=(CLEAN,), pixels=range(5)),
    experiment=EXPERIMENT,
)
