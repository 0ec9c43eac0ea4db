"""Tables of Markdown, the same way on the pages of all studies."""

from collections.abc import Sequence


def table(columns: Sequence[str], lines: Sequence[Sequence[str]], *, texts: int = 1) -> str:
    """A table whose first ``texts`` columns hold text, and all others numbers, which are aligned to the right."""
    ruler = ["---"] * texts + ["---:"] * (len(columns) - texts)
    return "\n".join(
        [f"| {' | '.join(columns)} |", f"|{'|'.join(ruler)}|", *(f"| {' | '.join(line)} |" for line in lines)]
    )


def number(value: object) -> float:
    """A value of a table as a number; NaN if it is missing or a text."""
    return float(value) if isinstance(value, int | float) else float("nan")
