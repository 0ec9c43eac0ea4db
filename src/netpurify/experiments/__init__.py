"""Experiments: a grid of settings and one trial become one table on disk, cached, resumable and parallel.

    plan = experiments.plan(EXPERIMENT, folder="results", mode="full")     what it costs, before anything is run
    path = experiments.run(EXPERIMENT, folder="results", mode="full")      kill it and call again: it goes on
    rows = experiments.read(path)
    experiments.summary(rows, ["width", "eps"], "recovered")               for the figure

The file of a figure defines one ``EXPERIMENT``; see ``Experiment``.
"""

from netpurify.experiments.experiment import Experiment, Mode, Row, Scalar
from netpurify.experiments.runner import Plan, Progress, plan, run
from netpurify.experiments.table import Summary, group, read, select, summary

__all__ = [
    "Experiment", "Mode", "Plan", "Progress", "Row", "Scalar", "Summary", "group", "plan", "read", "run", "select",
    "summary",
]  # fmt: skip
