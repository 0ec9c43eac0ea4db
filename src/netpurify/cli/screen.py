"""What commands print: tables and JSON on standard output, everything else on standard error."""

import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from netpurify import experiments

_PLAIN_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, where no terminal says how wide it is."""
_SELDOM = 30.0
"""Seconds between lines of progress where there is no terminal."""


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()
) -> None:
    """Print an aligned table; ``numbers`` are the positions of the columns to align on the right."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for position, name in enumerate(columns):
        table.add_column(name, justify="right" if position in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False, markup=False).print(table)


def show_json(value: dict[str, Any]) -> None:
    """Print a record as JSON; what is not a finite number becomes null, since JSON knows no other."""
    sys.stdout.write(json.dumps(finite(value), indent=2, allow_nan=False) + "\n")


def finite(value: Any) -> Any:
    """The value with null in the place of what is not a finite number."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_line(message: str) -> None:
    """One line on standard output."""
    sys.stdout.write(message + "\n")


class Bar:
    """Progress of one piece of work: a bar on a terminal, a plain line now and then elsewhere."""

    def __init__(self, name: str) -> None:  # noqa: D107
        self._name = name
        self._last = 0.0
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[text]}"),
        )
        self._screen = Console(stderr=True, highlight=False)
        self._progress = Progress(*columns, console=self._screen) if self._screen.is_terminal else None
        self._task: TaskID | None = None

    def __enter__(self) -> "Bar":
        if self._progress:
            self._progress.start()
            self._task = self._progress.add_task(self._name, total=None, text="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()

    def to(self, done: float, total: float | None, text: str) -> None:
        """Show that ``done`` of ``total`` is done."""
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=done, total=total, text=text)
            return
        now = time.monotonic()
        if now - self._last >= _SELDOM or (total is not None and done >= total):
            self._last = now
            share = f"{100.0 * done / total:3.0f} %" if total else ""
            self._screen.print(f"{self._name}: {share} {text}", markup=False)

    def follow(self, state: experiments.Progress) -> None:
        """Show how far an experiment is."""
        left = "" if state.remaining is None else f", {clock(state.remaining)} left"
        failed = f", {state.failed} failed" if state.failed else ""
        spent = (
            state.cost_total if state.done == state.total else state.cost_done
        )  # sums of costs do not add up exactly
        self.to(spent, state.cost_total, f"{state.done} of {state.total} trials{failed}{left}")


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def note(message: str) -> None:
    """A line about progress, on standard error."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(message, style="dim")


def complain(message: str) -> None:
    """An error, on standard error."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"netpurify: {message}", style="red")
