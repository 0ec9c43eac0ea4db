"""The trials of an experiment: every cell of its grid, as often as asked, each with its seed."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from netpurify.errors import InputError
from netpurify.findings import MODES, Experiment, Mode, TableRow

TrialKey = tuple[int, str, int]
"""Which trial: revision of the experiment, settings as text, number of the trial."""
RESERVED = ("experiment", "trial", "seed", "revision", "seconds", "failure")
"""Columns that the runner fills in; neither settings nor rows may use their names."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One trial that belongs in the table, whether it has been run or not."""

    settings: TableRow
    number: int
    cost: float

    @property
    def seed(self) -> int:
        """The number of the trial: every cell has the same seeds, so that cells can be compared trial by trial."""
        return self.number

    def key(self, revision: int) -> TrialKey:
        """The key under which the journal knows this trial."""
        return revision, settings_key(self.settings), self.number


def trials_of(experiment: Experiment, *, mode: Mode = "default", trials: int | None = None) -> list[PlannedTrial]:
    """All trials of an experiment, cell by cell, in the order of the table.

    Args:
        experiment: The experiment.
        mode: ``"quick"``, ``"default"`` or ``"full"``.
        trials: Number of trials of each cell, instead of the mode's own number.

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
            raise InputError(
                f"settings must be finite, so that cells can be compared; the grid of {experiment.name} has {cell}"
            )
        if settings_key(cell) in seen:
            raise InputError(f"the cells of a grid must differ; the grid of {experiment.name} has {cell} twice")
        seen.add(settings_key(cell))
    return [
        PlannedTrial(cell, number, experiment.cost(cell))
        for cell in cells
        for number in range(count)
        if experiment.has_trial(cell, number)
    ]


def settings_key(settings: TableRow) -> str:
    """Settings as text; two texts are equal if and only if the settings are."""
    return json.dumps(settings, sort_keys=True)


def plain(row: Mapping[str, Any], what: str, taken: tuple[str, ...] = ()) -> TableRow:
    """The row with Python's own scalars; numpy's scalars are converted without loss.

    Args:
        row: Settings, or one row of a trial.
        what: Name of the row in error messages.
        taken: Names that the row must not use, besides those of the runner's own columns.

    Raises:
        InputError: A name is taken or is not a text, or a value is not a scalar.
    """
    result: TableRow = {}
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
