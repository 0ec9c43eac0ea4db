"""What an experiment is: a grid of settings, one trial, and what a trial costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from netpurify.findings.table import TableRow


def every_trial(settings: TableRow, number: int) -> bool:
    """For experiments whose cells all have the same number of trials."""
    del settings, number
    return True


Mode = Literal["quick", "default", "full"]
"""How much of a grid is run, and how many trials of each cell."""
MODES: tuple[Mode, ...] = get_args(Mode)
"""All modes, the smallest first."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment, as the file of a figure or of a study defines it; ``netpurify.experiments.run`` runs it.

    A cell of the grid holds the settings that a trial trains once. What is varied on the trained network, such as the
    share of altered weights, is not in the grid: the trial goes through the values and returns one row for each, so
    that training is shared.

    Attributes:
        name: Name of the table's file.
        title: The claim or the question, in one line.
        grid: Gives the settings of every cell for a mode, in the order of the table.
        trial: ``trial(settings, seed)`` gives the rows of one trial. It must be a function of a module, so that worker
            processes can import it, and pure: the same settings and seed give the same rows wherever it runs.
        cost: About how many seconds one trial with these settings takes on one core.
        trials: Number of trials of each cell, by mode; the largest one if cells have different numbers.
        has_trial: Whether the cell with these settings has the trial of this number. Costly cells may have fewer.
        revision: To be raised whenever the trial gives other rows than before, so that old rows are not used.
        together: Names of settings; trials that have these and the seed in common are made from one thing, such as one
            trained network, and ``netpurify study --extend`` takes them from an earlier table all or none. None if
            every trial stands by itself.
    """

    name: str
    title: str
    grid: Callable[[Mode], list[TableRow]]
    trial: Callable[[TableRow, int], list[TableRow]]
    cost: Callable[[TableRow], float]
    trials: Mapping[Mode, int]
    has_trial: Callable[[TableRow, int], bool] = every_trial
    revision: int = 1
    together: tuple[str, ...] | None = None
