"""What commands print: tables and JSON on standard output, everything else on standard error.

Names in files may hold anything, also what would clear a terminal or paint a false verdict on it. So every text goes
through ``visible`` here, and nothing else in the command line writes to a stream.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from netpurify.report import clock, json_text

if TYPE_CHECKING:
    from rich.progress import TaskID

    from netpurify import experiments

_PLAIN_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, where no terminal says how wide it is."""
_SELDOM = 30.0
"""Seconds between lines of progress where there is no terminal."""


def visible(text: str) -> str:
    r"""The text with an escape such as ``\x1b`` in the place of every character that is not printable.

    Among those are control characters, line feeds, marks that turn the direction of writing, and halves of surrogates.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()
) -> None:
    """Print an aligned table; ``numbers`` are the positions of the columns to align on the right."""
    table = Table(title=visible(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    # A name with control characters must not be wrapped so that one of its words begins a line and reads as a verdict.
    hostile = any(visible(row[0]) != row[0] for row in rows)
    for position, name in enumerate(columns):
        side = "right" if position in numbers else "left"
        table.add_column(visible(name), justify=side, overflow="fold", no_wrap=hostile and position == 0)
    for row in rows:
        table.add_row(*map(visible, row))
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def show_json(value: dict[str, Any]) -> None:
    """Print a record of ``netpurify.report`` as JSON, with indents."""
    sys.stdout.write(json_text(value, indent=2))


def show_line(message: str) -> None:
    """One line on standard output."""
    sys.stdout.write(visible(message) + "\n")


class Bar:
    """Progress of one piece of work: a bar on a terminal, a plain line now and then elsewhere.

    Attributes:
        shown: The bar that is on the terminal now, if there is one: rich shows one at a time.
    """

    shown: ClassVar[Bar | None] = None

    def __init__(self, name: str) -> None:  # noqa: D107
        from rich.progress import BarColumn, Progress, TextColumn

        self._name = visible(name)
        self._last = 0.0
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
        )
        self._screen = Console(stderr=True, highlight=False, emoji=False)
        self._progress = Progress(*columns, console=self._screen) if self._screen.is_terminal else None
        self._task: TaskID | None = None

    def __enter__(self) -> Bar:
        if self._progress:
            self._progress.start()
            self._task = self._progress.add_task(self._name, total=None, text="")
            Bar.shown = self
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            Bar.shown = None
            self._progress.stop()

    def beside(self, message: str) -> Callable[[], object]:
        """Show a second bar that moves without an end; gives what takes it away."""
        assert self._progress
        task, progress = self._progress.add_task(message, total=None, text=""), self._progress
        return lambda: progress.remove_task(task)

    def to(self, done: float, total: float | None, text: str) -> None:
        """Show that ``done`` of ``total`` is done."""
        text = visible(text)
        share = f"{100.0 * done / total:3.0f} %" if total else ""
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=done, total=total, text=f"{share}  {text}")
            return
        now = time.monotonic()
        if now - self._last >= _SELDOM or (total is not None and done >= total):
            self._last = now
            self._screen.print(f"{self._name}: {share} {text}", markup=False)

    def follow(self, state: experiments.RunProgress) -> None:
        """Show how far an experiment is."""
        left = "" if state.remaining is None else f", {clock(state.remaining)} left"
        failed = f", {state.failed} failed" if state.failed else ""
        spent = (
            state.cost_total if state.done == state.total else state.cost_done
        )  # sums of costs do not add up exactly
        self.to(spent, state.cost_total, f"{state.done} of {state.total} trials{failed}{left}")


class Waiting:
    """Says what takes its time: with something that moves on a terminal, else in one line; on standard error."""

    def __init__(self, message: str) -> None:  # noqa: D107
        self._message = visible(message)
        self._said = False
        self._end: Callable[[], object] = _nothing

    def begin(self) -> None:
        """It begins, maybe once more; beside a bar on a terminal, where there is one."""
        screen = Console(stderr=True, highlight=False, emoji=False)
        if not screen.is_terminal:
            if not self._said:
                note(self._message)
        elif Bar.shown is not None:
            self._end = Bar.shown.beside(self._message)
        else:
            status = screen.status(Text(self._message, style="dim"))
            status.start()
            self._end = status.stop
        self._said = True

    def end(self) -> None:
        """It is over, for now."""
        self._end()
        self._end = _nothing


def _nothing() -> None:
    pass


def note(message: str) -> None:
    """A line about progress, on standard error."""
    _tell(visible(message), "dim")


def complain(message: str) -> None:
    """An error, on standard error.

    A message may have several lines of its own. All but the first are indented, so that a name in a file cannot pass
    for a line of ours.
    """
    _tell("\n    ".join(map(visible, f"netpurify: {message}".split("\n"))), "red")


def complain_at_length(text: str) -> None:
    """Many lines, such as a traceback, on standard error, as they are."""
    _tell("\n".join(map(visible, text.rstrip("\n").split("\n"))), "")


def tell_warning(message: object, category: type[Warning], *_: object) -> None:
    """As ``warnings.showwarning``, on one line, without the place in the code."""
    note(f"{category.__name__}: {message}")


def _tell(text: str, style: str) -> None:
    Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True).print(text, style=style)
