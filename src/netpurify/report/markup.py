"""HTML from functions: every text is escaped unless it came from here, so that forgetting it is not possible."""

from collections.abc import Sequence
from html import escape

_VOID = ("br", "meta")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


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
    rows: Sequence[Sequence[str]],
    *,
    label: str,
    kind: str,
    names: Sequence[str] | None = None,
) -> Html:
    """A table that scrolls inside its own frame where the screen is too narrow for it.

    Args:
        columns: What stands above each column.
        rows: Cells, row by row; the first of each row names it.
        label: What screen readers call the table.
        kind: Its class in the style sheet.
        names: What stands beside each cell where cells are stacked; ``None`` for the columns, if they are plain text.
    """
    # The roles say again what the elements are, because some browsers forget it when a style sheet stacks the cells.
    head = tag("tr", *(tag("th", column, scope="col", role="columnheader") for column in columns), role="row")
    first_name, *other_names = names or columns
    lines = []
    for first, *others in rows:
        cells = [tag("th", first, scope="row", role="rowheader", data_label=first_name)]
        cells += [tag("td", cell, role="cell", data_label=name) for name, cell in zip(other_names, others, strict=True)]
        lines.append(tag("tr", *cells, role="row"))
    body = tag("tbody", *lines, role="rowgroup")
    whole = tag("table", tag("thead", head, role="rowgroup"), body, role="table", class_=kind)
    # With a place in the tab order the frame can be scrolled from the keyboard.
    return tag("div", whole, class_="scroll", role="region", aria_label=label, tabindex=0)
