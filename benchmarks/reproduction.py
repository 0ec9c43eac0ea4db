"""A sample of the full reproduction run again: what all of it would take now, and whether its tables would change.

    python benchmarks/reproduction.py                      some minutes for each core
    python benchmarks/reproduction.py --budget 30          about so many seconds for each experiment
    python benchmarks/reproduction.py --experiments synthetic-m mnist-p

Each experiment's trials are sorted by the seconds that the committed table says, and every so-manieth is run again, in
this process and with one thread. The whole is estimated from the processor seconds of the sample, weighted by the
seconds of the table. Rows are compared number by number with the committed ones: those that training does not precede
should agree to rounding; training amplifies how a processor rounds.
"""

import os

# Before numpy is imported, which reads them once.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lad_report import aligned
from netpurify.experiments import PlannedTrial, trials_of
from netpurify.experiments.figures import FIGURES
from netpurify.findings import Experiment, TableRow, group, read_table
from netpurify.findings.table import Scalar

TABLES = Path(__file__).parents[1] / "docs" / "results"
ROUNDING = 1e-4
"""Numbers that differ by less than this, relatively or absolutely, agree."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sample of an experiment's trials has shown.

    Attributes:
        experiment: Its name.
        trials: How many trials the committed table has.
        sampled: How many were run again.
        before: Seconds of one core of all trials, as the table says.
        estimate: The same now, estimated.
        rows: How many rows were compared.
        changed: In how many of them some number differs by more than rounding.
        largest: The largest such difference.
    """

    experiment: str
    trials: int
    sampled: int
    before: float
    estimate: float
    rows: int
    changed: int
    largest: float

    def cells(self) -> list[str]:
        """The line of the table."""
        return [
            self.experiment, f"{self.trials:,}", str(self.sampled), f"{self.before / 60:.1f}",
            f"{self.estimate / 60:.1f}", f"{self.changed} of {self.rows}", f"{self.largest:.2g}",
        ]  # fmt: skip


HEAD = ["experiment", "trials", "run again", "minutes, table", "minutes, now", "rows changed", "by at most"]


def main() -> None:
    """Run the samples and print one line for each experiment, and the sum."""
    options = _options()
    experiments = {figure.experiment.name: figure.experiment for figure in FIGURES.values()}
    samples = []
    for name, experiment in experiments.items():
        if options.experiments and name not in options.experiments:
            continue
        sample = again(experiment, read_table(TABLES / f"{name}.csv.gz"), options.budget)
        samples.append(sample)
        print(" ".join(sample.cells()), file=sys.stderr, flush=True)
    before, now = (sum(getattr(sample, what) for sample in samples) / 3600 for what in ("before", "estimate"))
    print(aligned([HEAD, *(sample.cells() for sample in samples)]))
    print(f"all: {before:.1f} hours of one core in the tables, about {now:.1f} now")


def again(experiment: Experiment, rows: list[TableRow], budget: float) -> Sample:
    """Run some trials of an experiment again, for about ``budget`` seconds, and at least two."""
    names = list(dict.fromkeys(name for cell in experiment.grid("full") for name in cell))
    known = group(rows, [*names, "trial"])
    timed = [
        (trial, known[key]) for trial in trials_of(experiment, mode="full") if (key := _key(trial, names)) in known
    ]
    timed.sort(key=lambda pair: float(pair[1][0]["seconds"] or 0.0))
    seconds = [float(own[0]["seconds"] or 0.0) for _, own in timed]
    chosen = spread(seconds, budget)
    compared, changed, largest, spent = 0, 0, 0.0, 0.0
    for number in chosen:
        trial, own = timed[number]
        begun = time.process_time()
        fresh = experiment.trial(dict(trial.settings), trial.seed)
        spent += time.process_time() - begun
        differences = [difference(new, old) for new, old in zip(fresh, own, strict=True)]
        compared += len(differences)
        changed += sum(one > ROUNDING for one in differences)
        largest = max([largest, *differences])
    whole = sum(seconds)
    share = spent / sum(seconds[number] for number in chosen)
    return Sample(experiment.name, len(timed), len(chosen), whole, whole * share, compared, changed, largest)


def spread(seconds: Sequence[float], budget: float) -> list[int]:
    """Positions spread evenly over trials that take so many seconds: as many as the budget pays for, and at least two.

    Those in the middle of equal shares, so that no end of the list weighs more than it should.
    """
    mean = max(sum(seconds) / len(seconds), 1e-3)
    count = min(len(seconds), max(2, int(budget / mean)))
    return sorted({int((number + 0.5) * len(seconds) / count) for number in range(count)})


def difference(new: TableRow, old: TableRow) -> float:
    """The largest difference of two rows' numbers, over the larger of 1 and the number; infinite if a text differs."""
    worst = 0.0
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, int | float) and isinstance(before, int | float):
            if math.isnan(value) and math.isnan(before):
                continue
            worst = max(worst, abs(value - before) / max(1.0, abs(before)))
        elif value != before:
            return math.inf
    return worst


def _key(trial: PlannedTrial, names: Sequence[str]) -> tuple[Scalar, ...]:
    return (*(trial.settings.get(name) for name in names), trial.number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--budget", type=float, default=30.0, help="seconds for each experiment (default: 30)")
    parser.add_argument("--experiments", nargs="+", help="only these, by the names of their tables")
    return parser.parse_args()


if __name__ == "__main__":
    main()
