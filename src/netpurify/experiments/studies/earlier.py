"""Trials of an earlier run, taken from its tables: the journal may be gone, or on another machine."""

from collections.abc import Sequence
from pathlib import Path

from netpurify.errors import InputError
from netpurify.experiments import journal
from netpurify.experiments.journal import TrialRecord, latest
from netpurify.experiments.studies.study import has_table, table_path
from netpurify.experiments.trials import RESERVED, PlannedTrial, TrialKey, settings_key, trials_of
from netpurify.findings import Experiment, Mode, TableRow, group, read_table


def take_up(experiments: Sequence[Experiment], tables: Path, *, folder: Path, mode: Mode) -> int:
    """Enter the trials of earlier tables into the journals of a run, which then counts them as done.

    Trials that are made from one thing, such as one trained network (``Experiment.together``), are taken up all or
    none: if one of them is not in the table, or is in the journal already, all of them are left to the run. Otherwise
    rows that are read side by side could be of two networks, since training amplifies how processors round.

    Args:
        experiments: The experiments; those without an earlier table take up nothing.
        tables: Folder of the earlier tables.
        folder: Folder of the run.
        mode: Which trials the run wants.

    Returns:
        How many trials were taken up.

    Raises:
        InputError: There is no table at all, or one was made by another revision of its experiment.
        JournalError: A journal cannot be written.
    """
    found = [experiment for experiment in experiments if has_table(tables, experiment.name)]
    if not found:
        names = ", ".join(f"{experiment.name}.csv" for experiment in experiments)
        raise InputError(f"{tables} must hold tables of an earlier run ({names}, or the same with .gz); it has none")
    known = [_records(experiment, table_path(tables, experiment.name), mode) for experiment in found]
    return sum(_enter(experiment, records, folder, mode) for experiment, records in zip(found, known, strict=True))


def _records(experiment: Experiment, table: Path, mode: Mode) -> dict[TrialKey, TrialRecord]:
    """The finished trials of a table.

    Raises:
        InputError: Rows are of another revision, or do not say of which.
    """
    rows = [row for row in read_table(table) if row.get("failure") is None]
    revisions = {row.get("revision") for row in rows} - {experiment.revision}
    if revisions:
        others = ", ".join("none" if one is None else str(one) for one in sorted(revisions, key=str))
        raise InputError(
            f"{table}: rows must be of revision {experiment.revision} of the experiment, as their column revision "
            f"says; it says {others}. Those are other measurements; run the study without them"
        )
    settings = list(dict.fromkeys(name for cell in experiment.grid(mode) for name in cell))
    missing = [name for name in (*settings, *RESERVED) if rows and name not in rows[0]]
    if missing:
        raise InputError(f"{table}: must have the columns {', '.join(missing)}; it is not a table of this study")
    known = (*settings, *RESERVED)
    found = {}
    for own in group(rows, [*settings, "trial"]).values():
        cell = {name: own[0][name] for name in settings}
        measured: list[TableRow] = [{name: value for name, value in row.items() if name not in known} for row in own]
        record = TrialRecord(
            experiment.revision, cell, int(own[0]["trial"] or 0), int(own[0]["seed"] or 0),
            float(own[0]["seconds"] or 0.0), measured,
        )  # fmt: skip
        found[(experiment.revision, settings_key(cell), record.trial)] = record
    return found


def _enter(experiment: Experiment, known: dict[TrialKey, TrialRecord], folder: Path, mode: Mode) -> int:
    wanted: dict[tuple[object, ...], list[PlannedTrial]] = {}
    for trial in trials_of(experiment, mode=mode):
        names = trial.settings if experiment.together is None else experiment.together
        wanted.setdefault((*(trial.settings[name] for name in names), trial.number), []).append(trial)
    taken = 0
    with journal.opened(folder / f"{experiment.name}.jsonl") as book:
        done = latest(book.records)
        for trials in wanted.values():
            keys = [trial.key(experiment.revision) for trial in trials]
            if all(key in known for key in keys) and not any(key in done for key in keys):
                for key in keys:
                    book.append(known[key])
                taken += len(keys)
    return taken
