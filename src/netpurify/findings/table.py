"""The table of an experiment: a CSV file that reads back exactly, and the few statistics that figures need.

Every value has one spelling: numbers as Python writes them (floats bit for bit), ``true`` and ``false``, an empty field
for None, text as it is. A text that would read as a number, a truth value or None, or that has control characters, is
written as a JSON string.
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

Scalar = bool | int | float | str | None
"""A value of a table; ``None`` is an empty field."""
TableRow = dict[str, Scalar]
"""One row of a table: a value for each column, by the column's name."""
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
class TrialSummary:
    """Statistics of one column over the trials of one group; rows in which the column is missing or NaN do not count.

    Attributes:
        count: Number of trials; if it is 0, all other numbers are NaN.
        mean: Mean over the trials.
        deviation: Standard deviation over the trials, with divisor count - 1; NaN for a single trial.
        low: First quartile.
        median: Median.
        high: Third quartile.
    """

    count: int
    mean: float
    deviation: float
    low: float
    median: float
    high: float


def write_table(path: Path, rows: Sequence[TableRow]) -> None:
    """Write rows as CSV, whole or not at all: an earlier table stays until the new one is complete.

    Columns stand in the order in which rows first use them, with ``seconds`` and ``failure`` at the end.

    Raises:
        JournalError: The table could not be written, for example because the disk is full.
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


def read_table(path: str | Path) -> list[TableRow]:
    """The rows of a table, every value as it was written; a file whose name ends in ``.gz`` is uncompressed first.

    Raises:
        InputError: There is no such file, or a line has more or fewer values than there are columns.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such table; run the experiment first")
    with _opened(path) as stream:
        lines = csv.reader(stream)
        columns = next(lines, [])
        rows: list[TableRow] = []
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


def select(rows: Iterable[TableRow], **wanted: Scalar) -> list[TableRow]:
    """The rows in which every named column has the wanted value: ``select(rows, width=512, failure=None)``."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def group(rows: Iterable[TableRow], keys: Sequence[str]) -> dict[tuple[Scalar, ...], list[TableRow]]:
    """The rows that agree in ``keys``, by their values there, in the order of the table."""
    groups: dict[tuple[Scalar, ...], list[TableRow]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in keys), []).append(row)
    return groups


def summarise(rows: Iterable[TableRow], keys: Sequence[str], value: str) -> dict[tuple[Scalar, ...], TrialSummary]:
    """Statistics of the column ``value`` over each group of rows that agree in ``keys``; failed trials do not count.

    A trial counts once: if a group has several rows of a trial, the trial's value is their mean. Trials of different
    cells with the same number count as one trial, because they share the seed and much of what is drawn from it. Rows
    without a trial count one by one.
    """
    return {key: _summarise(members, value) for key, members in group(rows, keys).items()}


def _summarise(rows: Iterable[TableRow], column: str) -> TrialSummary:
    trials: dict[Scalar | tuple[int], list[float]] = {}
    for position, row in enumerate(rows):
        number = _number(row.get(column), column)
        if number == number:
            trials.setdefault(row.get("trial", (position,)), []).append(number)
    # A single value as it is: a mean could change its last digit.
    values = np.array([own[0] if len(set(own)) == 1 else np.mean(own) for own in trials.values()], np.float64)
    if not values.size:
        return TrialSummary(0, *[float("nan")] * 5)
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    deviation = float(values.std(ddof=1)) if values.size > 1 else float("nan")
    if values.size > 1 and values.min() == values.max():
        deviation = 0.0  # the mean of equal numbers may round to another one
    return TrialSummary(values.size, float(values.mean()), deviation, float(low), float(median), float(high))


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
