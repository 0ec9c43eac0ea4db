"""Figure 12: one to three hidden layers on CIFAR-10, purified with training images."""

from dataclasses import replace
from functools import partial

from netpurify.experiments.figures import figure10
from netpurify.experiments.figures.settings.table import settings_of
from netpurify.experiments.figures.trials import backdoors
from netpurify.experiments.figures.trials.backdoors import MAIN
from netpurify.findings import Mode, TableRow

CLEAN = 69


def grid(mode: Mode) -> list[TableRow]:
    """As Figure 10; the variant is one step size with other classes poisoned."""
    other: TableRow = {"data": "cifar10", "colour": "black", "pixels": "centred", "k": 512}
    main: TableRow = {"gamma": 3.0}
    changed: TableRow = {
        "variant": "one step size, other classes poisoned", "gamma": 0.05, "hidden": 0.05, "poison": "other"
    }  # fmt: skip
    return [cell | other | (main if cell["variant"] == MAIN else changed) for cell in figure10.grid(mode)]


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
