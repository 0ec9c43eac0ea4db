"""The reproduction of the paper as one page: every figure's plot, and its claims beside what was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from netpurify.findings import CLAIM_VERDICTS, PlotPanel, Verdict
from netpurify.report.kit.pages import render_page
from netpurify.report.kit.tables import Cell, Table
from netpurify.report.reproduction.plots import columns_of, draw
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

_NUMBERS = ("Panel", "Line", "x", "Median", "First quartile", "Third quartile")


def reproduction_page(results: Sequence[FigureResult], *, about: Mapping[str, str]) -> str:
    """All figures as one HTML page that loads nothing: light and dark, for desktop, phone and paper.

    Args:
        results: The figures, in the order of the page.
        about: What was run, by name: version, commands, machine, minutes.

    Returns:
        The text of the file; the same results give the same text.

    Raises:
        InputError: A figure comes twice, a plot cannot be drawn, or matplotlib is not installed.
    """
    require_distinct(results)
    content = {
        "title": TITLE,
        "paper": PAPER,
        "key": KEY,
        "nothing": NOTHING,
        "summary": _summary(results),
        "about": list(about.items()),
        "figures": [_figure(result) for result in results],
    }
    return render_page("reproduction.html", content, styles=("page.css",))


def _summary(results: Sequence[FigureResult]) -> Table:
    rows = []
    for result in results:
        name, *verdicts, trials, failed = counts_of(result)
        rows.append([Cell(name, link=_link(result)), *map(_muted, verdicts), trials, _muted(failed)])
    columns = ["Figure", *map(_verdict, CLAIM_VERDICTS), "Trials", "Failed"]
    return Table.of(columns, rows, label="Verdicts by figure", kind="summary")


def _link(result: FigureResult) -> str:
    return f"figure-{result.figure.number}"


def _muted(count: str) -> Cell:
    """A count that steps back if it is zero, so that the eye finds the others."""
    return Cell(count, style="none" if count == "0" else "some")


def _verdict(verdict: Verdict | None) -> Cell:
    if verdict is None:
        return Cell(verdict_text(verdict), style="none")
    # A symbol and a word: the colour only repeats them.
    return Cell(verdict_text(verdict), style=f"verdict {verdict.name.lower()}")


def _figure(result: FigureResult) -> dict[str, Any]:
    claims = [
        (finding.claim, finding.measured, _verdict(finding.by_measure), _verdict(finding.against_nothing), finding.why)
        for finding in result.findings
    ]
    settings = [(row.name, row.paper, row.here, row.why) for row in result.figure.settings]
    return {
        "link": _link(result),
        "name": result.name,
        "settings": Table.of(SETTINGS, settings, label="Settings", kind="settings"),
        "drawings": _drawings(result),
        "numbers": _numbers(result.panels),
        "findings": Table.of(CLAIMS, claims, label="Claims and measurements", kind="findings"),
        "remarks": result.figure.remarks,
        "effort": result.effort,
        "failures": Table.of(FAILURES, failures_of(result), label="Failed trials", kind="failures"),
    }


def _drawings(result: FigureResult) -> list[tuple[str, str]]:
    """The drawing twice, of which the style sheet shows one: side by side, and as one column for phones."""
    panels = result.panels
    if not panels:
        return []
    across = columns_of(panels)
    wide = (f"across-{across}", draw(panels, title=result.name))
    return [wide] if across == 1 else [wide, ("narrow", draw(panels, title=result.name, columns=1))]


def _numbers(panels: Sequence[PlotPanel]) -> Table:
    """The plot as a table, for those who cannot see it and for those who want to check it."""
    rows = [
        [panel.title, line.label, *(f"{value:.4g}" for value in point)]
        for panel in panels
        for line in panel.lines
        for point in zip(line.x, line.median, line.low, line.high, strict=True)
    ]
    return Table.of(_NUMBERS, rows, label="The numbers of the plot", kind="numbers")
