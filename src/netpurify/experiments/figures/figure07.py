"""Figure 7: few clean images are enough on CIFAR-10, in or outside the training set."""

from dataclasses import replace

from netpurify.experiments.figures import figure06
from netpurify.experiments.figures.claims.rules import OUTSIDE_WEIGHTS
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.findings import Figure, Finding, Mode, TableRow


def grid(mode: Mode) -> list[TableRow]:
    """One cell, as in Figure 6."""
    (cell,) = figure06.grid(mode)
    return [cell | {"data": "cifar10", "k": 512, "gamma": 0.3}]


def findings(rows: list[TableRow]) -> list[Finding]:
    """As Figure 6; that data from elsewhere does not matter the paper says of MNIST alone, so here it is ours."""
    return [
        replace(finding, against_nothing=None, ours=True) if finding.rule is OUTSIDE_WEIGHTS else finding
        for finding in figure06.findings(rows)
    ]


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
    findings=findings,
    remarks=figure06.FIGURE.remarks,
)
