"""The table of an experiment: a CSV file that reads back as it was, and the few sums that figures need.

Every value has one spelling: numbers as Python writes them (floats bit for bit), ``true`` and ``false``, nothing for
None, text as it is; a text that would read as one of the others, or has control characters, is written as in JSON.
"""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from netpurify.atomic import write_atomically
from netpurify.errors import InputError, JournalError
from netpurify.experiments.experiment import Experiment, Row, Scalar, Trial
from netpurify.experiments.journal import Record, latest

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
WORDS: dict[str, Scalar] = {
    "": None,
    "true": True,
    "false": False,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
}


@dataclass(frozen=True, slots=True)
class Summary:
    """A column over the trials of one group, without the rows where it is missing or NaN.

    Attributes:
        count: How many trials it is over; with none, the rest is NaN.
        mean: Their mean.
        deviation: Their standard deviation (with count - 1; NaN for a single one).
        low: Their first quartile.
        median: Their median.
        high: Their third quartile.
    """

    count: int
    mean: float
    deviation: float
    low: float
    median: float
    high: float


def assemble(experiment: Experiment, trials: Iterable[Trial], records: Iterable[Record]) -> list[Row]:
    """The rows of the table in the order of ``trials``, in whichever order the records came.

    A failed trial is one row with its reason; a trial without a record has none.
    """
    recorded = latest(records)
    rows: list[Row] = []
    for trial in trials:
        record = recorded.get(trial.place(experiment.revision))
        if record is None:
            continue
        head = {"experiment": experiment.name, **trial.settings, "trial": trial.number, "seed": trial.seed}
        tail = {"seconds": record.seconds, "failure": record.failure}
        own: list[Row] = [{}] if record.failure is not None else record.rows
        rows.extend({**head, **row, **tail} for row in own)
    return rows


def write(path: Path, rows: Sequence[Row]) -> None:
    """Writes rows as CSV, whole or not at all; an earlier table stays until then.

    Columns stand in the order in which rows first use them, the runner's last two at the end.

    Raises:
        JournalError: It could not be written, for example because the disk is full.
    """
    last = ("seconds", "failure")
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in last]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, *last])
    writer.writerows([_spell(row.get(name)) for name in (*columns, *last)] for row in rows)
    try:
        with write_atomically(path) as stream:
            stream.write(text.getvalue().encode())
    except OSError as problem:
        raise JournalError(f"{path}: the table must be written; {problem.strerror}; make room and run again") from (
            problem
        )


def read(path: str | Path) -> list[Row]:
    """The rows of a table, every value as it was; a name that ends in ``.gz`` is a compressed one.

    Raises:
        InputError: There is no such file, or a line has more or fewer values than there are columns.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such table; run the experiment first")
    with _opened(path) as stream:
        lines = csv.reader(stream)
        columns = next(lines, [])
        rows: list[Row] = []
        for values in lines:
            if len(values) != len(columns):
                raise InputError(
                    f"{path}: every line must have {len(columns)} values; line {lines.line_num} has {len(values)}; "
                    "run the experiment again, which writes the table anew"
                )
            rows.append({name: _value(text) for name, text in zip(columns, values, strict=True)})
    return rows


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def select(rows: Iterable[Row], **wanted: Scalar) -> list[Row]:
    """The rows in which every named column has the wanted value: ``select(rows, width=512, failure=None)``."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def group(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Scalar, ...], list[Row]]:
    """The rows that agree in ``keys``, by their values there, in the order of the table."""
    groups: dict[tuple[Scalar, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in keys), []).append(row)
    return groups


def summary(rows: Iterable[Row], keys: Sequence[str], value: str) -> dict[tuple[Scalar, ...], Summary]:
    """The column ``value`` over each group of ``keys``; failed trials have none and so do not count.

    A trial counts once: the mean of its rows, where a group has several. Trials of different cells with the same number
    are one here, as they share the seed and much of what is drawn from it. Rows without a trial count one by one.
    """
    return {place: _summary(members, value) for place, members in group(rows, keys).items()}


def _summary(rows: Iterable[Row], column: str) -> Summary:
    trials: dict[Scalar | tuple[int], list[float]] = {}
    for position, row in enumerate(rows):
        number = _number(row.get(column), column)
        if number == number:
            trials.setdefault(row.get("trial", (position,)), []).append(number)
    # A single value as it is: a mean could change its last digit.
    values = np.array([own[0] if len(set(own)) == 1 else np.mean(own) for own in trials.values()], np.float64)
    if not values.size:
        return Summary(0, *[float("nan")] * 5)
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    deviation = float(values.std(ddof=1)) if values.size > 1 else float("nan")
    if values.size > 1 and values.min() == values.max():
        deviation = 0.0  # the mean of equal numbers may round to another one
    return Summary(values.size, float(values.mean()), deviation, float(low), float(median), float(high))


def _number(value: Scalar, column: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, str):
        raise InputError(f"{column} must hold numbers to be summed up; got the text {value!r}; choose another column")
    return float(value)


def _spell(value: Scalar) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Line ends among others: a row of the table is one line of the file.
        bare = value.isprintable() and not value.startswith('"') and isinstance(_value(value), str)
        return value if bare else json.dumps(value)
    return repr(value)


def _value(text: str) -> Scalar:
    if text in WORDS:
        return WORDS[text]
    if text.startswith('"'):
        return json.loads(text)
    if NUMBER.fullmatch(text):
        return int(text) if text.removeprefix("-").isdigit() else float(text)
    return text
