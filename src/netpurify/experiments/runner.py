"""From a grid to a table: trials that are recorded are never run again, all others run on an engine.

Beside the table NAME.csv lies the journal NAME.jsonl. A run that was killed goes on where it was; the table does not
depend on that, nor on the engine or the order in which trials finished, except for the seconds that trials took.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from netpurify import engine as engines
from netpurify.experiments import journal, table
from netpurify.experiments.experiment import Experiment, Mode, Row, Trial, plain, trials_of
from netpurify.experiments.journal import Record, latest


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do, to be said before it is done.

    Attributes:
        total: Trials of the table.
        done: Those that are recorded and will not be run again.
        workers: Trials that would run at the same time.
        seconds: Expected seconds on one core for all others; scaled by what recorded trials took, where there are any.
        wall_seconds: Expected seconds until the table is there.
    """

    total: int
    done: int
    workers: int
    seconds: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        done: Trials that are recorded, those of earlier runs included.
        total: Trials of the table.
        failed: Those of this run that failed.
        cost_done: Expected seconds on one core of the trials that are recorded.
        cost_total: The same for all trials of the table.
        elapsed: Seconds since the run began.
        remaining: Expected seconds until the table is there, by the cost of what is left and the speed of this run;
            ``None`` before its first trial is done.
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
) -> Plan:
    """What ``run`` with the same arguments would do; writes nothing. Raises as ``run`` does."""
    wanted = trials_of(experiment, mode=mode, trials=trials)
    records = journal.read(_journal(experiment, folder))
    missing = _missing(experiment, wanted, records)
    workers = engines.workers(engine, jobs=jobs)
    scale = _scale(experiment, wanted, records)
    seconds = scale * sum(trial.cost for trial in missing)
    longest = scale * max((trial.cost for trial in missing), default=0.0)
    return Plan(
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
    progress: Callable[[Progress], None] | None = None,
) -> Path:
    """Runs every trial that is not recorded yet, and writes the table.

    The seed of a trial is its number, the same for every cell of the grid, so that cells are compared in pairs. A trial
    that raises becomes a row with the reason, and is tried again by the next run. A run that is interrupted leaves all
    that was finished in the journal, and the table as it was.

    Args:
        experiment: What to run.
        folder: Where its table and its journal are; made if it is not there.
        mode: ``"quick"``, ``"default"`` or ``"full"`` (the paper's own numbers).
        trials: Trials of each cell, instead of the mode's own number. More than before adds to what is recorded; with
            fewer, the table holds only these, and the journal keeps the others.
        engine: Where trials run; see ``engine.run``.
        jobs: Most trials at the same time; ``None`` for all cores.
        progress: Called at the start and after every trial.

    Returns:
        The path of the table.

    Raises:
        InputError: An argument or the experiment's grid has no meaning.
        EngineError: The engine is not there, or lost a worker.
        JournalError: Another run writes in the folder, the journal is damaged, or the disk is full.
    """
    wanted = trials_of(experiment, mode=mode, trials=trials)
    table_path = Path(folder) / f"{experiment.name}.csv"
    with journal.opened(_journal(experiment, folder)) as book:
        records = list(book.records)
        missing = _missing(experiment, wanted, records)
        # The costliest first: what is left for the end is short, and no core waits long for the last trial.
        queue = sorted(missing, key=lambda trial: -trial.cost)
        tasks = [_Task(experiment.trial, experiment.revision, trial) for trial in queue]
        meter = _Meter(wanted, missing, progress)
        with closing(engines.run(_attempt, tasks, engine=engine, jobs=jobs)) as results:
            for position, record in results:
                book.append(record)
                records.append(record)
                meter.add(queue[position], failed=record.failure is not None)
        table.write(table_path, table.assemble(experiment, wanted, records))
    return table_path


@dataclass(frozen=True, slots=True)
class _Task:
    work: Callable[[Row, int], list[Row]]
    revision: int
    trial: Trial


def _attempt(task: _Task) -> Record:
    """One trial, on a worker; whatever it raises is its reason for having no rows."""
    trial = task.trial
    rows: list[Row] = []
    failure = None
    start = time.perf_counter()
    try:
        given = task.work(dict(trial.settings), trial.seed)
        rows = [plain(row, "a row of the trial", taken=tuple(trial.settings)) for row in given]
    except Exception as problem:  # one trial must not take the others down
        failure = f"{type(problem).__name__}: {next(iter(str(problem).splitlines()), '')}"
    seconds = time.perf_counter() - start
    return Record(task.revision, trial.settings, trial.number, trial.seed, seconds, rows, failure)


class _Meter:
    """Counts trials and tells the caller."""

    def __init__(self, wanted: list[Trial], missing: list[Trial], progress: Callable[[Progress], None] | None) -> None:
        self._progress = progress
        self._begin = time.monotonic()
        self._total = len(wanted)
        self._done = len(wanted) - len(missing)
        self._failed = 0
        self._cost_total = sum(trial.cost for trial in wanted)
        self._cost_left = sum(trial.cost for trial in missing)
        self._cost_spent = 0.0
        self._tell()

    def add(self, trial: Trial, *, failed: bool) -> None:
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
            Progress(
                done=self._done,
                total=self._total,
                failed=self._failed,
                cost_done=self._cost_total - left,
                cost_total=self._cost_total,
                elapsed=elapsed,
                remaining=remaining,
            )
        )


def _journal(experiment: Experiment, folder: str | Path) -> Path:
    return Path(folder) / f"{experiment.name}.jsonl"


def _missing(experiment: Experiment, wanted: list[Trial], records: list[Record]) -> list[Trial]:
    """The trials without a record, or whose last record is a failure: that may have passed."""
    done = {place for place, record in latest(records).items() if record.failure is None}
    return [trial for trial in wanted if trial.place(experiment.revision) not in done]


def _scale(experiment: Experiment, wanted: list[Trial], records: list[Record]) -> float:
    """How much longer than expected the recorded trials took on this machine; 1 if there are none."""
    recorded = latest(records)
    pairs = [(trial.cost, recorded.get(trial.place(experiment.revision))) for trial in wanted]
    known = [(cost, record.seconds) for cost, record in pairs if record is not None and record.failure is None]
    expected = sum(cost for cost, _ in known)
    return sum(seconds for _, seconds in known) / expected if expected > 0.0 else 1.0
