"""What commands print: tables and JSON on standard output, everything else on standard error."""

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, where no terminal says how wide it is."""


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
    sys.stdout.write(json.dumps(_finite(value), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def note(message: str) -> None:
    """A line about progress, on standard error."""
    Console(stderr=True, highlight=False, markup=False).print(message, style="dim")


def complain(message: str) -> None:
    """An error, on standard error."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"netpurify: {message}", style="red")
