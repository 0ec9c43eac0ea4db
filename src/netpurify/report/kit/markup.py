"""HTML from functions: every text is escaped unless it came from here, so that forgetting it is not possible."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_VOID = ("br", "meta")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


class Cell(NamedTuple):
    """A cell of a table that is sorted by another value than its text."""

    text: str
    value: float


def tag(name: str, /, *children: str, **attributes: str | int) -> Html:
    """One element; children that are not ``Html`` are texts and are escaped.

    Args:
        name: Name of the element.
        children: What is inside, in order.
        attributes: Its attributes; a trailing underscore goes, other underscores become hyphens.
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Children one after the other, texts escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    *,
    label: str,
    kind: str,
    names: Sequence[str] | None = None,
    stacked: bool = True,
) -> Html:
    """A table that scrolls inside its own frame where the screen is too narrow for it.

    Args:
        columns: What stands above each column.
        rows: Cells, row by row; the first of each row names it.
        label: What screen readers call the table.
        kind: Its class in the style sheet.
        names: What stands beside each cell where cells are stacked; ``None`` for the columns, if they are plain text.
        stacked: Whether the style sheet may stack its cells; long tables are much smaller if not.
    """

    # The roles say again what the elements are, because some browsers forget it when a style sheet stacks the cells.
    def said(role: str, name: str | None = None) -> dict[str, str]:
        return ({"role": role} | ({} if name is None else {"data_label": name})) if stacked else {}

    head = tag("tr", *(tag("th", column, scope="col", **said("columnheader")) for column in columns), **said("row"))
    first_name, *other_names = names or columns
    lines = []
    for first, *others in rows:
        cells = [_cell("th", first, scope="row", **said("rowheader", first_name))]
        cells += [_cell("td", cell, **said("cell", name)) for name, cell in zip(other_names, others, strict=True)]
        lines.append(tag("tr", *cells, **said("row")))
    body = tag("tbody", *lines, **said("rowgroup"))
    whole = tag("table", tag("thead", head, **said("rowgroup")), body, **said("table"), class_=kind)
    # With a place in the tab order the frame can be scrolled from the keyboard.
    return tag("div", whole, class_="scroll", role="region", aria_label=label, tabindex=0)


def _cell(name: str, content: str | Cell, **attributes: str) -> Html:
    if isinstance(content, Cell):
        return tag(name, content.text, **attributes, data_value=f"{content.value:.9g}")
    return tag(name, content, **attributes)
