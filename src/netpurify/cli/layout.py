"""How texts and tables fit a width: lines break between words, and a table that is too wide becomes blocks.

Everything here is a function of texts. A line that goes on is always indented: a name in a file may hold any words, and
none of them may begin a line and pass for one of ours.
"""

import os
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len, chop_cells

PLAIN_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, where no terminal says how wide it is."""
_USUAL_WIDTH = 80
_PROSE = 24
"""Sentences in a column that is narrower than this are hard to read: the table becomes blocks."""
_GAP = 2
"""Blanks between two columns of a table."""
_INDENT = 2
_NOTHING = ("", "-", "\N{EN DASH}")


def known_width(stream: TextIO) -> int | None:
    """How wide a stream is: what ``COLUMNS`` says, else its terminal; ``None`` for a file or a pipe."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):  # a terminal that does not tell
        return _USUAL_WIDTH


def wrapped(text: str, width: int | None, indent: int = _INDENT) -> list[str]:
    """The text in lines of at most ``width`` columns, broken between words, all but the first indented.

    Only a word that is longer than a line is broken. Without a width there is one line.
    """
    if width is None or cell_len(text) <= width:
        return [text]
    lines, line, first = [], "", True
    for word in _words(text, max(width - indent, 1)):
        room = width if first else width - indent
        if line and cell_len(line) + 1 + cell_len(word) > room:
            lines.append(line if first else " " * indent + line)
            line, first = word, False
        else:
            line = f"{line} {word}" if line or word == "" else word
    return [*lines, line if first else " " * indent + line]


def _words(text: str, longest: int) -> Iterator[str]:
    for word in text.split(" "):
        yield from chop_cells(word, longest) if cell_len(word) > longest else [word]


def column_widths(
    names: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int], width: int
) -> list[int] | None:
    """How wide each column of a table is, so that it fits ``width``; ``None`` if words would have to be broken.

    Numbers, and the names in the first column, stay on one line; other texts and headings may be broken between words.
    """
    natural, least = [], []
    for position, name in enumerate(names):
        cells = [row[position] for row in rows]
        widest = max(map(cell_len, cells), default=0)
        word = max(map(cell_len, name.split()), default=0)
        needed = widest
        if position > 0 and position not in numbers:
            longest = max((cell_len(part) for cell in cells for part in cell.split()), default=0)
            needed = max(longest, min(widest, _PROSE))
        natural.append(max(widest, cell_len(name)))
        least.append(max(needed, word))
    over = sum(natural) + _GAP * (len(names) - 1) - width
    while over > 0:
        place = max(range(len(names)), key=lambda one: (natural[one] > least[one], natural[one]))
        if natural[place] <= least[place]:
            return None
        natural[place] -= 1
        over -= 1
    return natural


def blocks(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Rows as blocks: the first cell, then the others with their column's name, as many on a line as fit.

    The name of the first column stands above all. Cells that say nothing are left out; long ones have a line of their
    own.
    """
    if names[0]:
        yield from wrapped(f"{names[0]}:", width)
    for row in rows:
        yield from wrapped(row[0], width, 2 * _INDENT) if row[0] else []
        line = ""
        for name, cell in zip(names[1:], row[1:], strict=True):
            if cell in _NOTHING:
                continue
            pair = f"{name}: {cell}" if name else cell
            if line and cell_len(line) + _GAP + cell_len(pair) > width - _INDENT:
                yield " " * _INDENT + line
                line = ""
            if cell_len(pair) > width - _INDENT:
                yield from (" " * _INDENT + part for part in wrapped(pair, width - _INDENT))
            else:
                line = f"{line}{' ' * _GAP}{pair}" if line else pair
        if line:
            yield " " * _INDENT + line


def cut_front(name: str, width: int) -> str:
    """The end of a name that is too long, since names of layers differ at their ends; nothing if there is no room."""
    if cell_len(name) <= width:
        return name
    kept = ""
    for letter in reversed(name):
        if cell_len(kept) + cell_len(letter) > width - 1:
            break
        kept = letter + kept
    return f"…{kept}" if width > 3 else ""
