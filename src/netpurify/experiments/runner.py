"""From a grid to a table: recorded trials are never run again, and all others run on an engine.

Beside the table NAME.csv lies the journal NAME.jsonl. A run that was killed continues where it stopped. Except for the
seconds that trials took, the table depends neither on that nor on the engine or the order in which trials finished.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from netpurify import engine as engines
from netpurify.experiments import journal
from netpurify.experiments.journal import TrialRecord, latest
from netpurify.experiments.trials import PlannedTrial, plain, trials_of
from netpurify.findings import Experiment, Mode, TableRow, group, write_table


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run would do and cost.

    Attributes:
        total: Number of trials of the table.
        done: Number of trials that are recorded and will not be run again.
        workers: Number of trials that would run at the same time.
        seconds: Expected seconds of one core for the other trials; scaled by the time that recorded trials took, where
            there are any.
        wall_seconds: Expected seconds until the table is written.
    """

    total: int
    done: int
    workers: int
    seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come.

    Attributes:
        done: Number of recorded trials, those of earlier runs included.
        total: Number of trials of the table.
        failed: Number of trials of this run that failed.
        cost_done: Expected seconds of one core for the recorded trials.
        cost_total: Expected seconds of one core for all trials of the table.
        elapsed: Seconds since the run began.
        remaining: Expected seconds until the table is written, from the cost of the missing trials and the speed of
            this run; ``None`` before the first trial of this run is done.
    """

    done: int
    total: int
    failed: int
    cost_done: float
    cost_total: float
    elapsed: float
    remaining: float | None


def plan(
    experiment: Experiment,
    *,
    folder: str | Path,
    mode: Mode = "default",
    trials: int | None = None,
    engine: str = "processes",
    jobs: int | None = None,
) -> RunPlan:
    """What ``run`` with the same arguments would do; writes nothing. Raises as ``run`` does."""
    wanted = trials_of(experiment, mode=mode, trials=trials)
    records = journal.read(_journal(experiment, folder))
    missing = _missing(experiment, wanted, records)
    workers = engines.workers(engine, jobs=jobs)
    scale = _scale(experiment, wanted, records)
    seconds = scale * sum(trial.cost for trial in missing)
    longest = scale * max((trial.cost for trial in missing), default=0.0)
    return RunPlan(
        total=len(wanted),
        done=len(wanted) - len(missing),
        workers=workers,
        seconds=seconds,
        wall_seconds=max(seconds / workers, longest),
    )


def run(
    experiment: Experiment,
    *,
    folder: str | Path,
    mode: Mode = "default",
    trials: int | None = None,
    engine: str = "processes",
    jobs: int | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Path:
    """Run every trial that is not recorded yet, and write the table.

    The seed of a trial is its number, the same for every cell of the grid, so that cells can be compared trial by
    trial. A trial that raises becomes a row with the reason, and the next run tries it again. A run that is interrupted
    leaves the finished trials in the journal, and the table as it was.

    Args:
        experiment: What to run.
        folder: Folder of the table and the journal; created if it does not exist.
        mode: ``"quick"``, ``"default"`` or ``"full"`` (the paper's own numbers).
        trials: Number of trials of each cell, instead of the mode's own number. A larger number than before adds to the
            recorded trials; with a smaller one, the table holds only so many and the journal keeps the others.
        engine: Where trials run; see ``engine.run``.
        jobs: Largest number of trials at the same time; ``None`` for all cores.
        progress: Called at the start and after every trial.

    Returns:
        The path of the table.

    Raises:
        InputError: An argument or the experiment's grid has no meaning.
        EngineError: The engine is not available, or lost a worker.
        JournalError: Another run is writing in the folder, the journal is damaged, or the disk is full.
    """
    wanted = trials_of(experiment, mode=mode, trials=trials)
    table_path = Path(folder) / f"{experiment.name}.csv"
    with journal.opened(_journal(experiment, folder)) as book:
        records = list(book.records)
        missing = _missing(experiment, wanted, records)
        # The costliest trials first: those left for the end are short, and no core waits long for the last one.
        queue = sorted(missing, key=lambda trial: -trial.cost)
        tasks = [_Task(experiment.trial, experiment.revision, trial) for trial in queue]
        meter = _Meter(wanted, missing, progress)
        with closing(engines.run(_attempt, tasks, engine=engine, jobs=jobs)) as results:
            for position, record in results:
                book.append(record)
                records.append(record)
                meter.add(queue[position], failed=record.failure is not None)
        write_table(table_path, _assemble(experiment, wanted, records))
    return table_path


def core_seconds(experiment: Experiment, rows: list[TableRow], *, mode: Mode) -> float:
    """Seconds of one core that the trials of a table took together; all rows of a trial give the same number."""
    settings = dict.fromkeys(name for cell in experiment.grid(mode) for name in cell)
    trials = group(rows, [*settings, "trial"]).values()
    return sum(float(trial[0]["seconds"] or 0.0) for trial in trials)


@dataclass(frozen=True, slots=True)
class _Task:
    work: Callable[[TableRow, int], list[TableRow]]
    revision: int
    trial: PlannedTrial


def _attempt(task: _Task) -> TrialRecord:
    """One trial, on a worker; an exception becomes the reason why the trial has no rows."""
    trial = task.trial
    rows: list[TableRow] = []
    failure = None
    start = time.perf_counter()
    try:
        given = task.work(dict(trial.settings), trial.seed)
        rows = [plain(row, "a row of the trial", taken=tuple(trial.settings)) for row in given]
    except Exception as problem:  # one trial must not take the others down
        failure = f"{type(problem).__name__}: {next(iter(str(problem).splitlines()), '')}"
    seconds = time.perf_counter() - start
    return TrialRecord(task.revision, trial.settings, trial.number, trial.seed, seconds, rows, failure)


class _Meter:
    """Counts finished trials and reports progress to the caller."""

    def __init__(
        self, wanted: list[PlannedTrial], missing: list[PlannedTrial], progress: Callable[[RunProgress], None] | None
    ) -> None:
        self._progress = progress
        self._begin = time.monotonic()
        self._total = len(wanted)
        self._done = len(wanted) - len(missing)
        self._failed = 0
        self._cost_total = sum(trial.cost for trial in wanted)
        self._cost_left = sum(trial.cost for trial in missing)
        self._cost_spent = 0.0
        self._tell()

    def add(self, trial: PlannedTrial, *, failed: bool) -> None:
        self._done += 1
        self._failed += failed
        self._cost_left -= trial.cost
        self._cost_spent += trial.cost
        self._tell()

    def _tell(self) -> None:
        if self._progress is None:
            return
        elapsed = time.monotonic() - self._begin
        left = max(self._cost_left, 0.0)  # rounding leaves a little less than nothing
        remaining = left * elapsed / self._cost_spent if self._cost_spent > 0.0 else None
        if self._done == self._total:
            remaining = 0.0
        self._progress(
            RunProgress(
                done=self._done,
                total=self._total,
                failed=self._failed,
                cost_done=self._cost_total - left,
                cost_total=self._cost_total,
                elapsed=elapsed,
                remaining=remaining,
            )
        )


def _assemble(experiment: Experiment, trials: Iterable[PlannedTrial], records: Iterable[TrialRecord]) -> list[TableRow]:
    """The rows of the table in the order of ``trials``, in whichever order the records came.

    A failed trial is one row with its reason; a trial without a record has no row.
    """
    recorded = latest(records)
    rows: list[TableRow] = []
    for trial in trials:
        record = recorded.get(trial.key(experiment.revision))
        if record is None:
            continue
        head = {"experiment": experiment.name, **trial.settings, "trial": trial.number, "seed": trial.seed}
        head["revision"] = record.revision
        tail = {"seconds": record.seconds, "failure": record.failure}
        measured: list[TableRow] = [{}] if record.failure is not None else record.rows
        rows.extend({**head, **row, **tail} for row in measured)
    return rows


def _journal(experiment: Experiment, folder: str | Path) -> Path:
    return Path(folder) / f"{experiment.name}.jsonl"


def _missing(experiment: Experiment, wanted: list[PlannedTrial], records: list[TrialRecord]) -> list[PlannedTrial]:
    """The trials without a record, and those whose last record is a failure, since its cause may be gone."""
    done = {key for key, record in latest(records).items() if record.failure is None}
    return [trial for trial in wanted if trial.key(experiment.revision) not in done]


def _scale(experiment: Experiment, wanted: list[PlannedTrial], records: list[TrialRecord]) -> float:
    """By which factor the recorded trials took longer than expected on this machine; 1 if there are none."""
    recorded = latest(records)
    pairs = [(trial.cost, recorded.get(trial.key(experiment.revision))) for trial in wanted]
    known = [(cost, record.seconds) for cost, record in pairs if record is not None and record.failure is None]
    expected = sum(cost for cost, _ in known)
    return sum(seconds for _, seconds in known) / expected if expected > 0.0 else 1.0
