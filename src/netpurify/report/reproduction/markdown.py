"""The reproduction of the paper as Markdown, for a repository."""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from netpurify.findings import CLAIM_VERDICTS
from netpurify.report.reproduction.plots import draw
from netpurify.report.reproduction.result import FigureResult, require_distinct
from netpurify.report.reproduction.words import (
    CLAIMS,
    FAILURES,
    KEY,
    NOTHING,
    PAPER,
    SETTINGS,
    TITLE,
    counts_of,
    failures_of,
    verdict_text,
)


def reproduction_markdown(
    results: Sequence[FigureResult], *, about: Mapping[str, str], images: Callable[[int], str]
) -> str:
    """All figures as Markdown, for a repository.

    Args:
        results: The figures, in the order of the text.
        about: What was run, by name.
        images: Where the drawing of a figure is, by its number; see ``plot``.

    Raises:
        InputError: A figure comes twice.
    """
    require_distinct(results)
    blocks = [f"# {TITLE}", _plain(PAPER)]
    blocks.append("\n".join(f"- **{_plain(name)}**: {_plain(text)}" for name, text in about.items()))
    columns = ("Figure", *map(verdict_text, CLAIM_VERDICTS), "Trials", "Failed")
    blocks.append(_grid(columns, [counts_of(result) for result in results]))
    for result in results:
        blocks += _figure(result, images(result.figure.number))
    return "\n\n".join(block for block in blocks if block) + "\n"


def plot(result: FigureResult, *, columns: int | None = None) -> str | None:
    """The drawing of one figure as SVG, as in the page; ``None`` if no trial succeeded. See ``draw``."""
    panels = result.panels
    return draw(panels, title=result.name, columns=columns) if panels else None


def _figure(result: FigureResult, image: str) -> list[str]:
    name = _plain(result.name)
    drawing = [f"![{name}]({quote(image, safe='/:%?=&')})", _plain(KEY)] if result.panels else []
    claims = [
        (f.claim, f.measured, verdict_text(f.by_measure), verdict_text(f.against_nothing), f.why)
        for f in result.findings
    ]
    failures = failures_of(result)
    return [
        f"## {name}",
        _grid(SETTINGS, [(row.name, row.paper, row.here, row.why) for row in result.figure.settings]),
        *drawing,
        _grid(CLAIMS, claims) if claims else NOTHING,
        "\n".join(f"- {_plain(remark)}" for remark in result.figure.remarks),
        _plain(result.effort),
        _grid(FAILURES, failures) if failures else "",
    ]


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line, also inside a table."""
    return re.sub(r"([\\`*_\[\]|$~])", r"\\\1", escape(" ".join(text.split()), quote=False))
