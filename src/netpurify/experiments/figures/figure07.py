"""Figure 7: few clean images are enough on CIFAR-10, in or outside the training set."""

from dataclasses import replace

from netpurify.experiments.figures import figure06
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.findings import Figure, Mode, TableRow


def grid(mode: Mode) -> list[TableRow]:
    """One cell, as in Figure 6."""
    (cell,) = figure06.grid(mode)
    return [cell | {"data": "cifar10", "k": 512, "gamma": 0.3}]


EXPERIMENT = replace(
    figure06.EXPERIMENT,
    name="cifar10-n",
    title="CIFAR-10, 99 training images: number and origin of clean images",
    grid=grid,
)
FIGURE = Figure(
    number=7,
    title="Few clean images are enough on CIFAR-10, in or outside the training set",
    settings=settings_of(7, EXPERIMENT, shares=figure06.SHARES, counts=figure06.COUNTS),
    experiment=EXPERIMENT,
    units=units_of,
    panels=figure06.panels,
    findings=figure06.findings,
    remarks=figure06.FIGURE.remarks,
)
