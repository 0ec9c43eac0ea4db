"""The reproduction of the paper as one page: every figure's plot, and its claims beside what was measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from netpurify.findings import Finding, PlotPanel, Rule, Verdict
from netpurify.report.kit.pages import render_page
from netpurify.report.kit.tables import Cell, Table
from netpurify.report.reproduction import words
from netpurify.report.reproduction.belief import beliefs, counted
from netpurify.report.reproduction.drawings import scales_of
from netpurify.report.reproduction.result import FigureResult, require_distinct

_NUMBERS = ("Panel", "Line", "x", "Median", "First quartile", "Third quartile")


def reproduction_page(
    results: Sequence[FigureResult],
    *,
    about: Mapping[str, str],
    digests: Mapping[str, str] | None = None,
    conclusion: str = "",
) -> str:
    """All figures as one HTML page that loads nothing: light and dark, for desktop, phone and paper.

    Args:
        results: The figures, in the order of the page.
        about: What was run, by name: version, commands, machine, minutes.
        digests: SHA-256 digests of tables and files of data, by name.
        conclusion: What to believe, in words, for the top.

    Returns:
        The text of the file; the same results give the same text.

    Raises:
        InputError: A figure comes twice, a plot cannot be drawn, or matplotlib is not installed.
    """
    require_distinct(results)
    rules = words.rules_of(results)
    links = {use.rule: f"rule-{place}" for place, use in enumerate(rules, 1)}
    content = {
        "title": words.TITLE,
        "paper": words.PAPER,
        "key": f"{words.KEY} {words.POINTING}",
        "nothing": words.NOTHING,
        "conclusion": conclusion,
        "counted": counted(results),
        "beliefs": beliefs(results),
        "summary": _summary(results),
        "own": _own(results),
        "reading": words.READING,
        "runs": Table.of(words.RUNS, words.runs_of(results), label="Runs", kind="runs"),
        "about": list(about.items()),
        "digests": Table.of(("File", "SHA-256"), list((digests or {}).items()), label="Digests", kind="digests"),
        "rules": [_rule(links[use.rule], use) for use in rules],
        "jumps": {_link(result): _short(result) for result in results},
        "figures": [_figure(result, results, links) for result in results],
    }
    return render_page("reproduction.html", content, styles=("page.css",), script="plots.js")


def _summary(results: Sequence[FigureResult]) -> Table:
    rows = [_counts(result, words.counts_of(result)) for result in results if not result.figure.ours]
    return Table.of(words.summary_columns(), rows, label="Verdicts by figure", kind="summary two")


def _own(results: Sequence[FigureResult]) -> Table:
    rows = [_counts(result, words.own_counts_of(result)) for result in results if result.additions]
    return Table.of(words.own_columns(), rows, label="Our own statements by figure", kind="summary")


def _counts(result: FigureResult, counts: list[str]) -> list[str | Cell]:
    name, *numbers = counts
    return [Cell(name, link=_link(result)), *map(_muted, numbers)]


def _link(result: FigureResult) -> str:
    return f"figure-{result.figure.number}"


def _short(result: FigureResult) -> str:
    return f"Figure {result.figure.number}"


def _muted(count: str) -> Cell:
    """A count that steps back if it is zero, so that the eye finds the others."""
    return Cell(count, style="none" if count == "0" else "some")


def _verdict(verdict: Verdict | None) -> Cell:
    if verdict is None:
        return Cell(words.verdict_text(verdict), style="none")
    # A symbol and a word: the colour only repeats them.
    return Cell(words.verdict_text(verdict), style=f"verdict {verdict.name.lower()}")


def _rule(link: str, use: words.RuleUse) -> dict[str, Any]:
    return {"link": link, "claim": use.rule.claim, "facts": use.facts, "ours": use.ours}


def _figure(result: FigureResult, results: Sequence[FigureResult], links: Mapping[Rule, str]) -> dict[str, Any]:
    short = _short(result)
    settings = [(row.name, row.paper, row.here, row.why) for row in result.figure.settings]
    claims = [
        (_claim(it, links), it.measured, _verdict(it.by_measure), _verdict(it.against_nothing), it.why)
        for it in result.claims
    ]
    own = [(_claim(it, links), it.measured, _verdict(it.by_measure), it.why) for it in result.additions]
    return {
        "link": _link(result),
        "name": result.name,
        "settings": Table.of(words.SETTINGS, settings, label=f"Settings of {short}", kind="settings"),
        "scales": scales_of(result.panels, result.name),
        "numbers": _numbers(result.panels, short),
        "measured": bool(result.findings),
        "findings": Table.of(words.CLAIMS, claims, label=f"Claims and measurements of {short}", kind="findings"),
        "additions": Table.of(words.ADDITIONS, own, label=f"What we add to {short}", kind="findings own"),
        "evidence": [_evidence(finding, short) for finding in result.findings if finding.evidence],
        "remarks": result.figure.remarks,
        "effort": words.effort_of(result, results),
        "failures": Table.of(
            words.FAILURES, words.failures_of(result), label=f"Failed trials of {short}", kind="failures"
        ),
    }


def _claim(finding: Finding, links: Mapping[Rule, str]) -> Cell:
    """The claim, which leads to the rule by which it is judged."""
    return Cell(finding.claim, link=links[finding.rule])


def _evidence(finding: Finding, figure: str) -> tuple[str, list[tuple[str, Table]]]:
    tables = [
        (
            one.title,
            Table.of(
                one.columns, one.rows, label=f"{figure}: {finding.claim}: {one.title}", kind="evidence", stacked=False
            ),
        )
        for one in finding.evidence
    ]
    return finding.claim, tables


def _numbers(panels: Sequence[PlotPanel], figure: str) -> Table:
    """The plot as a table, for those who cannot see it and for those who want to check it."""
    rows = [
        [panel.title, line.label, *(f"{value:.4g}" for value in point)]
        for panel in panels
        for line in panel.lines
        for point in zip(line.x, line.median, line.low, line.high, strict=True)
    ]
    return Table.of(_NUMBERS, rows, label=f"The numbers of the plot of {figure}", kind="numbers")
