"""The experiments of docs/evidence.md: one for each assumption of the theorem behind *recovered*.

    python tools/evidence          writes the tables of docs/evidence.md, and docs/figures/evidence-*.svg

Every experiment is a function that returns a table; the page holds it between two marks of its name. It takes about a
minute. Which statements the numbers must bear out is asserted in tests/test_evidence.py.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assumptions import Row, accidental_zeros, adversary, dense_noise, lonely_rows, misfit, ties
from exact import brute_force
from pictures import PICTURES

from netpurify.atomic import write_atomically
from netpurify.experiments.studies.markdown import table

DOCS = Path(__file__).parents[2] / "docs"
EXPERIMENTS: dict[str, Callable[[], list[Row]]] = {
    "brute-force": brute_force,
    "lonely-rows": lonely_rows,
    "ties": ties,
    "adversary": adversary,
    "accidental-zeros": accidental_zeros,
    "dense-noise": dense_noise,
    "misfit": misfit,
}


def cell(value: Any) -> str:
    """A number of a table in few digits."""
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.2g}"
    return f"{value:,}" if isinstance(value, int) else value


def as_markdown(rows: list[Row]) -> str:
    """A table of Markdown."""
    texts = sum(isinstance(value, str) for value in rows[0].values())
    return table(list(rows[0]), [[cell(value) for value in row.values()] for row in rows], texts=max(texts, 1))


def insert(page: str, name: str, content: str) -> str:
    """The page with another table between the marks of a name."""
    mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", flags=re.DOTALL)
    if not mark.search(page):
        raise ValueError(f"the page has no marks <!-- {name} --> and <!-- end -->")
    return mark.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", page)


def main() -> None:
    """Write all tables and pictures."""
    page = DOCS / "evidence.md"
    text = page.read_text(encoding="utf-8")
    tables = {name: run() for name, run in EXPERIMENTS.items()}
    for name, rows in tables.items():
        text = insert(text, name, as_markdown(rows))
    for name, paint in PICTURES.items():
        with write_atomically(DOCS / "figures" / f"evidence-{name}.svg") as stream:
            stream.write(paint(tables).encode())
    with write_atomically(page) as stream:
        stream.write(text.encode())


if __name__ == "__main__":
    main()
