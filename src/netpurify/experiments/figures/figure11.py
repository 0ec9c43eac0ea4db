"""Figure 11: several hidden layers on MNIST, purified with images outside the training set."""

from dataclasses import replace
from functools import partial

from netpurify.experiments.figures import figure10
from netpurify.experiments.figures.settings.table import settings_of

EXPERIMENT = figure10.EXPERIMENT
FIGURE = replace(
    figure10.FIGURE,
    number=11,
    settings=settings_of(11, EXPERIMENT, counts=(figure10.CLEAN,), pixels=range(5)),
    title="Several hidden layers on MNIST, purified with images outside the training set",
    panels=partial(figure10.panels, origin="other"),
    findings=partial(figure10.findings, origin="other"),
)
