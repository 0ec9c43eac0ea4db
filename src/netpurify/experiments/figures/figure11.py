"""Figure 11: several hidden layers on MNIST, purified with images outside the training set."""

from dataclasses import replace
from functools import partial

from netpurify.experiments.figures import figure10

EXPERIMENT = figure10.EXPERIMENT
FIGURE = replace(
    figure10.FIGURE,
    number=11,
    title="Several hidden layers on MNIST, purified with images outside the training set",
    panels=partial(figure10.panels, origin="other"),
    findings=partial(figure10.findings, origin="other"),
)
