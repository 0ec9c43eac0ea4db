"""Tables of a page as plain data; the template ``parts.html`` makes HTML from them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from netpurify.report.kit.numbers import count, number


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: What it says.
        value: The number by which the column is sorted; ``None`` to sort by the text.
        style: Class of the text in the style sheet, such as ``"none"`` for what should step back.
        link: Where the text leads to, as the id of an element of the page; empty if nowhere.
        notes: Lines below the text.
    """

    text: str
    value: float | None = None
    style: str = ""
    link: str = ""
    notes: Sequence[str] = ()

    @property
    def key(self) -> str:
        """The value as the script of the page reads it."""
        return "" if self.value is None else f"{self.value:.9g}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table that scrolls inside its own frame where the screen is too narrow for it.

    Attributes:
        columns: What stands above each column.
        rows: Cells, row by row; the first cell of a row names it.
        label: What screen readers call the table.
        kind: Its class in the style sheet.
        stacked: Whether the style sheet may stack its cells on a phone; long tables are much smaller if not.
    """

    columns: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    label: str
    kind: str
    stacked: bool = True

    @classmethod
    def of(
        cls,
        columns: Sequence[str | Cell],
        rows: Sequence[Sequence[str | Cell]],
        *,
        label: str,
        kind: str,
        stacked: bool = True,
    ) -> "Table":
        """A table in which plain texts stand for cells."""
        return cls(_cells(columns), [_cells(row) for row in rows], label, kind, stacked)


def _cells(texts: Sequence[str | Cell]) -> list[Cell]:
    return [text if isinstance(text, Cell) else Cell(text) for text in texts]


def counted(value: int) -> Cell:
    """A count that steps back if it is zero, so that the eye finds the others."""
    return Cell(count(value), value, "some" if value else "none")


def if_known(text: str, value: float, *, known: bool) -> Cell:
    """A number, or a dash where it would mean nothing."""
    return Cell(text, value) if known else Cell(number(math.nan), math.nan, "none")
