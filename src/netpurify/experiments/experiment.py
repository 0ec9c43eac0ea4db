"""What an experiment is: a grid of settings, one trial, and what a trial costs."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from netpurify.errors import InputError

Scalar = bool | int | float | str | None
Row = dict[str, Scalar]
Mode = Literal["quick", "default", "full"]
Place = tuple[int, str, int]
"""Which trial: revision, settings as text, number."""
MODES: tuple[Mode, ...] = get_args(Mode)
RESERVED = ("experiment", "trial", "seed", "seconds", "failure")
"""Columns that the runner fills in; neither settings nor rows may use their names."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment; the file of a figure defines one.

    A cell of the grid holds what a trial trains once. What is varied on the trained network, such as eps, is not in
    the grid: the trial goes through it and returns one row for each value, so that training is shared.

    Attributes:
        name: Name of its files.
        title: The claim, in one line.
        grid: Settings of every cell for a mode, in the order of the table.
        trial: ``trial(settings, seed)`` gives the rows of one trial. A function of a module, and pure: the same
            settings and seed give the same rows, wherever and whenever it runs.
        cost: About how many seconds one trial with these settings takes on one core.
        trials: How many trials each cell has, by mode.
        revision: Raised whenever the trial gives other rows than before, so that the old ones are not used.
    """

    name: str
    title: str
    grid: Callable[[Mode], list[Row]]
    trial: Callable[[Row, int], list[Row]]
    cost: Callable[[Row], float]
    trials: Mapping[Mode, int]
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial that is to be in the table."""

    settings: Row
    number: int
    cost: float

    @property
    def seed(self) -> int:
        """The trial's number: every cell sees the same seeds, so that cells are compared in pairs."""
        return self.number

    def place(self, revision: int) -> Place:
        """Which trial of a revision it is."""
        return revision, key(self.settings), self.number


def trials_of(experiment: Experiment, *, mode: Mode = "default", trials: int | None = None) -> list[Trial]:
    """All trials of an experiment, cell by cell, in the order of the table.

    Args:
        experiment: The experiment.
        mode: ``"quick"``, ``"default"`` or ``"full"``.
        trials: How many for each cell, instead of the mode's own number.

    Raises:
        InputError: The mode is unknown, the number is below 1, or the grid is not one of distinct, named scalars.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}")
    count = experiment.trials[mode] if trials is None else trials
    if count < 1:
        raise InputError(f"trials must be at least 1; got {count}")
    cells = [plain(cell, f"the grid of {experiment.name}") for cell in experiment.grid(mode)]
    seen: set[str] = set()
    for cell in cells:
        if any(isinstance(value, float) and not math.isfinite(value) for value in cell.values()):
            raise InputError(f"settings must be finite, to be told apart; the grid of {experiment.name} has {cell}")
        if key(cell) in seen:
            raise InputError(f"every cell of a grid must be another; the grid of {experiment.name} has {cell} twice")
        seen.add(key(cell))
    return [Trial(cell, number, experiment.cost(cell)) for cell in cells for number in range(count)]


def key(settings: Row) -> str:
    """Settings as text that is equal if and only if they are."""
    return json.dumps(settings, sort_keys=True)


def plain(row: Mapping[str, Any], what: str, taken: tuple[str, ...] = ()) -> Row:
    """A row with Python's own scalars, numpy's turned into them without loss.

    Args:
        row: Settings, or one row of a trial.
        what: What to call it in errors.
        taken: Names that it must not use, besides those of the runner's own columns.

    Raises:
        InputError: A name is taken or no text, or a value is no scalar.
    """
    result: Row = {}
    for name, value in row.items():
        if not isinstance(name, str) or not name or name in (*RESERVED, *taken):
            used = ", ".join((*RESERVED, *taken))
            raise InputError(f"{what}: a column must have a name of its own, none of {used}; got {name!r}")
        scalar = value.item() if isinstance(value, np.generic) else value
        if scalar is not None and type(scalar) not in (bool, int, float, str):
            raise InputError(
                f"{what}: {name} must be a number, a text, a truth value or None; got {type(value).__name__}; "
                "use .item() or split it into columns"
            )
        result[name] = scalar
    return result
