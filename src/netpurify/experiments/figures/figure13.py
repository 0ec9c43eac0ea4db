"""Figure 13: one to three hidden layers on CIFAR-10, purified with images outside the training set."""

from dataclasses import replace
from functools import partial

from netpurify.experiments.figures import figure10, figure12
from netpurify.experiments.figures.settings.table import settings_of

EXPERIMENT = figure12.EXPERIMENT
FIGURE = replace(
    figure12.FIGURE,
    number=13,
    settings=settings_of(13, EXPERIMENT, counts=(figure12.CLEAN,), pixels=range(5)),
    title="One to three hidden layers on CIFAR-10, purified with images outside the training set",
    panels=partial(figure10.panels, origin="other"),
    findings=partial(figure10.findings, origin="other", clean=figure12.CLEAN),
)
