"""Experiments: a grid of settings and one trial become one table on disk, cached, resumable and parallel.

    plan = experiments.plan(EXPERIMENT, folder="results", mode="full")     what a run costs, before anything is run
    path = experiments.run(EXPERIMENT, folder="results", mode="full")      kill it and call it again: it continues
    rows = findings.read_table(path)

``experiments.figures`` holds the figures of the paper, one file for each, and ``experiments.studies`` the measurements
of this library itself. What an experiment is, and all that is read
from its table, is plain data in ``netpurify.findings``.
"""

from netpurify.experiments.runner import RunPlan, RunProgress, core_seconds, plan, run
from netpurify.experiments.trials import PlannedTrial, trials_of

__all__ = ["PlannedTrial", "RunPlan", "RunProgress", "core_seconds", "plan", "run", "trials_of"]
