"""What commands print: tables and JSON on standard output, everything else on standard error.

Names in files may hold anything, also what would clear a terminal or paint a false verdict on it. So every text goes
through ``visible`` here, and nothing else in the command line writes to a stream.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from netpurify.cli.layout import PLAIN_WIDTH, blocks, column_widths, cut_front, known_width, wrapped
from netpurify.report import clock, json_text

if TYPE_CHECKING:
    from rich.progress import TaskID

    from netpurify import experiments

_COLOURS = {"holds": "green", "limits": "yellow", "fails": "bold red", "unseen": "bright_black"}
"""Of lines of a verdict, by their outlook; each line has a sign too, for readers who do not see colours."""
_LONG_BAR, _SHORT_BAR = 40, 8
"""Columns of a bar of progress where there is room, and where the text needs it."""
_WIDE = 120
_DEEP = 4
"""Blanks before lines of an error that go on."""
_GAPS = 3
"""Blanks beside a bar, and one to spare at the end of the line."""
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
    """Print an aligned table; ``numbers`` are the positions of the columns to align on the right.

    Where it is too wide for the screen, each row is a block of lines.
    """
    width = known_width(sys.stdout) or PLAIN_WIDTH
    names = [visible(name) for name in columns]
    cells = [[visible(cell) for cell in row] for row in rows]
    widths = column_widths(names, cells, numbers, width)
    if widths is None:
        heading = wrapped(visible(title), width) if title else []
        sys.stdout.writelines(f"{line}\n" for line in [*heading, *blocks(names, cells, width)])
        return
    table = Table(title=visible(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for position, name in enumerate(names):
        side = "right" if position in numbers else "left"
        table.add_column(name, justify=side, overflow="fold", width=widths[position])
    for row in cells:
        table.add_row(*row)
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def show_json(value: dict[str, Any]) -> None:
    """Print a record of ``netpurify.report`` as JSON, with indents."""
    sys.stdout.write(json_text(value, indent=2))


def show_line(message: str) -> None:
    """One line on standard output; several on a terminal that is narrower, broken between words."""
    sys.stdout.writelines(f"{line}\n" for line in wrapped(visible(message), known_width(sys.stdout)))


def show_verdict(symbol: str, text: str, outlook: str) -> None:
    """A line of a verdict on standard output, in colour on a terminal."""
    lines = wrapped(f"{symbol} {visible(text)}", known_width(sys.stdout))
    screen = Console(width=PLAIN_WIDTH, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        screen.print(Text(line, style=_COLOURS[outlook]))


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
        self._screen = Console(stderr=True, highlight=False, emoji=False)
        self._length = _LONG_BAR if self._screen.width >= _WIDE else _SHORT_BAR
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(self._length),
            TextColumn("{task.fields[text]}", markup=False),
        )
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

    def to(self, done: float, total: float | None, text: str, *, name: str = "") -> None:
        """Show that ``done`` of ``total`` is done; ``name`` is that of the layer at hand, cut if there is no room."""
        text, name = visible(text), visible(name)
        share = f"{100.0 * done / total:3.0f} %" if total else ""
        if self._progress and self._task is not None:
            line = f"{share}  {text}"
            room = self._screen.width - cell_len(self._name) - self._length - cell_len(line) - len(", now ") - _GAPS
            shown = cut_front(name, room)
            line += f", now {shown}" if shown else ""
            self._progress.update(self._task, completed=done, total=total, text=line)
            return
        text += f", now {name}" if name else ""
        now = time.monotonic()
        if now - self._last >= _SELDOM or (total is not None and done >= total):
            self._last = now
            self._screen.print(f"{self._name}: {share} {text}", markup=False, soft_wrap=True)

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
    _tell("\n".join(wrapped(visible(message), known_width(sys.stderr))), "dim")


def complain(message: str) -> None:
    """An error, on standard error.

    A message may have several lines of its own. All but the first are indented, so that a name in a file cannot pass
    for a line of ours.
    """
    first, *others = map(visible, f"netpurify: {message}".split("\n"))
    width = known_width(sys.stderr)
    lines = wrapped(first, width, _DEEP)
    for other in others:
        lines += [" " * _DEEP + line for line in wrapped(other, width and width - _DEEP)]
    _tell("\n".join(lines), "red")


def complain_at_length(text: str) -> None:
    """Many lines, such as a traceback, on standard error, as they are."""
    _tell("\n".join(map(visible, text.rstrip("\n").split("\n"))), "")


def tell_warning(message: object, category: type[Warning], *_: object) -> None:
    """As ``warnings.showwarning``, on one line, without the place in the code."""
    note(f"{category.__name__}: {message}")


def _tell(text: str, style: str) -> None:
    Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True).print(text, style=style)
