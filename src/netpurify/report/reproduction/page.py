"""The reproduction of the paper as one page: every figure's plot, and its claims beside what was measured."""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import resources
from urllib.parse import quote

from netpurify.experiments.figure import Finding, Panel, Verdict
from netpurify.report.kit.markup import Html, table, tag
from netpurify.report.reproduction.plots import columns_of, draw
from netpurify.report.reproduction.result import FigureResult, require_distinct, tally

_TITLE = "The paper's figures, measured again"
_PAPER = (
    "H. Lu, Z. Huang, R. Wang: Purification of Contaminated Convolutional Neural Networks via Robust Recovery: An "
    "Approach with Theoretical Guarantee in One-Hidden-Layer Case. IEEE Journal of Selected Topics in Signal "
    "Processing 19 (3), 2025, arXiv:2407.11031."
)
_KEY = "Lines are means over trials, bands go from the first to the third quartile; thin and dashed: to compare with."
_SYMBOLS = {Verdict.HOLDS: "✓", Verdict.LIMITS: "◐", Verdict.FAILS: "✗", Verdict.UNSEEN: "○"}
_FINDINGS = ("The paper's claim", "Measured", "Verdict", "Why")
_FAILURES = ("Reason", "Trials", "Which")
_SUMMARY = ("Figure", *(f"{symbol} {verdict}" for verdict, symbol in _SYMBOLS.items()), "Trials", "Failed")
_NUMBERS = ("Panel", "Line", "x", "Mean", "First quartile", "Third quartile")
_NOTHING = "No trial succeeded, so there is nothing to draw and no claim was judged."
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""For the browser: the page carries its styles, and whatever else it should ask for must not be loaded."""


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
    style = resources.files("netpurify.report.kit").joinpath("assets", "page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", _TITLE),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("header", tag("h1", _TITLE), tag("p", _PAPER, class_="paper")),
        tag("main", _summary(results), _about(about), *(_section(result) for result in results)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


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
    parts = [f"# {_TITLE}", _plain(_PAPER)]
    parts.append("\n".join(f"- **{_plain(name)}**: {_plain(text)}" for name, text in about.items()))
    parts.append(_grid(_SUMMARY, [_counts(result) for result in results]))
    for result in results:
        findings = [(one.claim, one.measured, _verdict_text(one.verdict), one.why) for one in result.findings]
        failures = [(one.reason, str(one.count), one.trials) for one in result.failures]
        parts += [f"## {_plain(result.name)}", _plain(result.figure.setting)]
        if result.panels:
            parts += [f"![{_plain(result.name)}]({quote(images(result.figure.number), safe='/:%?=&')})", _plain(_KEY)]
        parts.append(_grid(_FINDINGS, findings) if findings else _NOTHING)
        parts.append("\n".join(f"- {_plain(remark)}" for remark in result.figure.remarks))
        parts.append(_plain(result.effort))
        parts.append(_grid(_FAILURES, failures) if failures else "")
    return "\n\n".join(part for part in parts if part) + "\n"


def plot(result: FigureResult, *, columns: int | None = None) -> str | None:
    """The drawing of one figure as SVG, as in the page; ``None`` if no trial succeeded. See ``plots.draw``."""
    panels = result.panels
    return draw(panels, title=result.name, columns=columns) if panels else None


def _summary(results: Sequence[FigureResult]) -> Html:
    rows = []
    for result in results:
        name, *verdicts, trials, failed = _counts(result)
        link = tag("a", name, href=f"#figure-{result.figure.number}")
        rows.append([link, *map(_muted, verdicts), trials, _muted(failed)])
    columns = ["Figure", *(_verdict(verdict) for verdict in Verdict), "Trials", "Failed"]
    content = table(columns, rows, label="Verdicts by figure", kind="summary", names=_SUMMARY)
    return tag("section", tag("h2", "Summary"), content, id="summary")


def _muted(count: str) -> Html:
    """A count that steps back if it is zero, so that the eye finds the others."""
    return tag("span", count, class_="none" if count == "0" else "some")


def _counts(result: FigureResult) -> list[str]:
    failed = sum(failure.count for failure in result.failures)
    return [result.name, *map(str, tally(result.findings).values()), str(result.trials), str(failed)]


def _about(about: Mapping[str, str]) -> Html:
    entries = [tag("div", tag("dt", name), tag("dd", text)) for name, text in about.items()]
    return tag("section", tag("h2", "How it was run"), tag("dl", *entries), id="about")


def _section(result: FigureResult) -> Html:
    figure, panels, findings, failures = result.figure, result.panels, result.findings, result.failures
    parts = [tag("h2", result.name), tag("p", figure.setting, class_="setting")]
    if panels:
        parts += [_plot(result.name, panels), _numbers(panels)]
    parts.append(_findings(findings) if findings else tag("p", _NOTHING))
    if figure.remarks:
        parts.append(tag("ul", *(tag("li", remark) for remark in figure.remarks), class_="remarks"))
    parts.append(tag("p", result.effort, class_="effort"))
    if failures:
        rows = [(one.reason, str(one.count), one.trials) for one in failures]
        parts += [tag("h3", "Failed trials"), table(_FAILURES, rows, label="Failed trials", kind="failures")]
    parts.append(tag("p", tag("a", "Back to the summary", href="#summary"), class_="back"))
    return tag("section", *parts, id=f"figure-{figure.number}")


def _plot(name: str, panels: Sequence[Panel]) -> Html:
    """The drawing twice, of which the style sheet shows one: side by side, and as one column for phones."""
    across = columns_of(panels)
    cards = [tag("div", Html(draw(panels, title=name)), class_=f"card across-{across}")]
    if across > 1:
        cards.append(tag("div", Html(draw(panels, title=name, columns=1)), class_="card narrow"))
    return tag("figure", *cards, tag("figcaption", _KEY))


def _numbers(panels: Sequence[Panel]) -> Html:
    """The plot as a table, for those who cannot see it and for those who want to check it."""
    rows = [
        [panel.title, line.label, *(f"{value:.4g}" for value in point)]
        for panel in panels
        for line in panel.lines
        for point in zip(line.x, line.mean, line.low, line.high, strict=True)
    ]
    content = table(_NUMBERS, rows, label="The numbers of the plot", kind="numbers")
    return tag("details", tag("summary", "The numbers of the plot"), content)


def _findings(findings: Sequence[Finding]) -> Html:
    rows = [(one.claim, one.measured, _verdict(one.verdict), one.why) for one in findings]
    return table(_FINDINGS, rows, label="Claims and measurements", kind="findings")


def _verdict(verdict: Verdict) -> Html:
    # A symbol and a word: the colour only repeats them.
    return tag("span", _verdict_text(verdict), class_=f"verdict {verdict.name.lower()}")


def _verdict_text(verdict: Verdict) -> str:
    return f"{_SYMBOLS[verdict]} {verdict}"


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line, also inside a table."""
    return re.sub(r"([\\`*_\[\]|$~])", r"\\\1", escape(" ".join(text.split()), quote=False))
