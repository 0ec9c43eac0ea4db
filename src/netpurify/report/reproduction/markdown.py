"""The reproduction of the paper as Markdown, for a repository."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from netpurify.findings import Finding, Rule
from netpurify.report.reproduction import words
from netpurify.report.reproduction.belief import beliefs, counted
from netpurify.report.reproduction.plots import draw
from netpurify.report.reproduction.result import FigureResult, require_distinct


def reproduction_markdown(
    results: Sequence[FigureResult],
    *,
    about: Mapping[str, str],
    images: Callable[[int], str],
    digests: Mapping[str, str] | None = None,
    conclusion: str = "",
) -> str:
    """All figures as Markdown, for a repository.

    Args:
        results: The figures, in the order of the text.
        about: What was run, by name.
        images: Where the drawing of a figure is, by its number; see ``plot``.
        digests: SHA-256 digests of tables and files of data, by name.
        conclusion: What to believe, in words, for the top.

    Raises:
        InputError: A figure comes twice.
    """
    require_distinct(results)
    rules = words.rules_of(results)
    links = {use.rule: f"rule-{place}" for place, use in enumerate(rules, 1)}
    blocks = [f"# {words.TITLE}", _plain(words.PAPER), *_belief(results, conclusion), *_summary(results)]
    blocks += ["## How to read it", _list(words.READING)]
    blocks += ["## How it was run", _list(about.items()), _grid(words.RUNS, words.runs_of(results))]
    if digests:
        blocks.append(_folded("Digests of tables and data", [_grid(("File", "SHA-256"), list(digests.items()))]))
    blocks += _rules(rules, links)
    for result in results:
        blocks += _figure(result, results, links, images(result.figure.number))
    return "\n\n".join(block for block in blocks if block) + "\n"


def plot(result: FigureResult, *, columns: int | None = None) -> str | None:
    """The drawing of one figure as SVG, as in the page; ``None`` if no trial succeeded. See ``draw``."""
    panels = result.panels
    return draw(panels, title=result.name, columns=columns) if panels else None


def _belief(results: Sequence[FigureResult], conclusion: str) -> list[str]:
    blocks = ["## What to believe", _plain(conclusion), _plain(counted(results))]
    for heading, texts in beliefs(results):
        blocks += [f"**{_plain(heading)}**", "\n".join(f"- {_plain(text)}" for text in texts)]
    return blocks


def _summary(results: Sequence[FigureResult]) -> list[str]:
    paper = [words.counts_of(result) for result in results if not result.figure.ours]
    own = [words.own_counts_of(result) for result in results if result.additions]
    blocks = ["## Summary", _grid(words.summary_columns(), paper)]
    if own:
        blocks += ["What we add, in figures of the paper and in figures of our own; none is counted above:"]
        blocks.append(_grid(words.own_columns(), own))
    return blocks


def _rules(rules: Sequence[words.RuleUse], links: Mapping[Rule, str]) -> list[str]:
    blocks = [
        "## How claims are judged",
        "One rule for one claim, in every figure that makes it; the rules are ours, taken from the paper's words "
        "before the verdicts of this page were computed; older tables of Figures 2 to 7 were known.",
    ]
    for place, use in enumerate(rules, 1):
        ours = "(Ours) " if use.ours else ""
        blocks.append(f'<a id="{links[use.rule]}"></a>**{place}. {ours}{_plain(use.rule.claim)}**')
        blocks.append(_list(use.facts))
    return blocks


def _figure(result: FigureResult, results: Sequence[FigureResult], links: Mapping[Rule, str], image: str) -> list[str]:
    name = _plain(result.name)
    drawing = [f"![{name}]({quote(image, safe='/:%?=&')})", _plain(words.KEY)] if result.panels else []
    settings = [(row.name, row.paper, row.here, row.why) for row in result.figure.settings]
    return [
        f"## {name}",
        *drawing,
        _folded("Settings: paper, here, why", [_grid(words.SETTINGS, settings)]) if settings else "",
        *_findings(result, links),
        "\n".join(f"- {_plain(remark)}" for remark in result.figure.remarks),
        _plain(words.effort_of(result, results)),
        _grid(words.FAILURES, words.failures_of(result)) if result.failures else "",
    ]


def _findings(result: FigureResult, links: Mapping[Rule, str]) -> list[str]:
    if not result.findings:
        return [words.NOTHING]
    claims = [
        [*_head(it, links), words.verdict_text(it.by_measure), words.verdict_text(it.against_nothing), _plain(it.why)]
        for it in result.claims
    ]
    own = [[*_head(it, links), words.verdict_text(it.by_measure), _plain(it.why)] for it in result.additions]
    return [
        _cells(words.CLAIMS, claims) if claims else "",
        "**What we add**" if own else "",
        _cells(words.ADDITIONS, own) if own else "",
        *(_evidence(finding) for finding in result.findings if finding.evidence),
    ]


def _head(finding: Finding, links: Mapping[Rule, str]) -> list[str]:
    """The claim, which leads to the rule by which it is judged, and the decisive numbers."""
    return [f"[{_plain(finding.claim)}](#{links[finding.rule]})", _plain(finding.measured)]


def _evidence(finding: Finding) -> str:
    blocks = []
    for one in finding.evidence:
        blocks += [_plain(one.title), _grid(one.columns, one.rows)]
    return _folded(f"Numbers behind: {finding.claim}", blocks)


def _folded(title: str, blocks: Sequence[str]) -> str:
    inside = "\n\n".join(blocks)
    return f"<details><summary>{escape(' '.join(title.split()), quote=False)}</summary>\n\n{inside}\n\n</details>"


def _list(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- **{_plain(name)}**: {_plain(text)}" for name, text in pairs)


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return _cells([_plain(column) for column in columns], [[_plain(cell) for cell in row] for row in rows])


def _cells(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are Markdown already."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *rows))


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line, also inside a table."""
    return re.sub(r"([\\`*_\[\]|$~])", r"\\\1", escape(" ".join(text.split()), quote=False))
