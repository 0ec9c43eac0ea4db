"""Figure 12: one to three hidden layers on CIFAR-10, purified with training images."""

from dataclasses import replace
from functools import partial

from netpurify.experiments.figures import figure10
from netpurify.experiments.figures.settings.table import settings_of
from netpurify.experiments.figures.trials import backdoors
from netpurify.findings import Mode, TableRow

CLEAN = 69


def grid(mode: Mode) -> list[TableRow]:
    """As Figure 10; the variant is one step size with other classes poisoned."""
    variant = "one step size, other classes poisoned"
    changed: TableRow = {"variant": variant, "gamma": 0.05, "hidden": 0.05, "poison": "other", "steps": 1000}
    return figure10.depths(mode, "cifar10", changed)


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Clean images from all places."""
    return backdoors.backdoor(settings, seed, counts=(CLEAN,))


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
    findings=partial(figure10.findings, clean=CLEAN),
)
