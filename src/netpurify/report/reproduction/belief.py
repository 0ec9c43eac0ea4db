"""What a reader should believe, in words that are made from the verdicts, so that they cannot contradict them."""

from collections.abc import Callable, Sequence

from netpurify.findings import Finding, Rule, Verdict
from netpurify.report.kit.numbers import plural
from netpurify.report.reproduction.result import FigureResult, tally

Judged = list[tuple[int, Finding]]
"""The findings on one claim, with the numbers of the figures."""
_KINDS: tuple[tuple[str, Callable[[Judged], bool]], ...] = (
    (
        "Believe it: it holds by the paper's measure and, where that can be asked, against doing nothing, in every "
        "figure that makes it",
        lambda judged: _all(judged, Verdict.HOLDS) and _none_lost(judged),
    ),
    (
        "Believe it by the paper's measure, within limits against doing nothing: by the paper's measure it holds in "
        "every figure, against doing nothing with limits in some",
        lambda judged: _all(judged, Verdict.HOLDS) and not _beaten(judged),
    ),
    (
        "Believe it within limits: by the paper's measure it holds, with limits in some figure, and against doing "
        "nothing it fails in none",
        lambda judged: not _any(judged, Verdict.FAILS, Verdict.UNSEEN) and not _beaten(judged),
    ),
    (
        "Believe it of the paper's measure alone: there it holds, at least with limits, but against doing nothing it "
        "does not hold in some figure",
        lambda judged: not _any(judged, Verdict.FAILS, Verdict.UNSEEN),
    ),
    (
        "Do not believe it as it is stated: by the paper's own measure it does not hold in some figure",
        lambda judged: _any(judged, Verdict.FAILS),
    ),
    ("Not measured in this run, at least in part", lambda _judged: True),
)  # fmt: skip


def counted(results: Sequence[FigureResult]) -> str:
    """How many claims of the paper hold by either yardstick, in two sentences."""
    findings = [finding for result in results for finding in result.claims]
    measure = tally(finding.by_measure for finding in findings)
    sides = [finding.against_nothing for finding in findings if finding.against_nothing is not None]
    nothing = tally(sides)
    figures = sum(bool(result.claims) for result in results)
    return (
        f"{plural(len(findings), 'claim')} of the paper in {plural(figures, 'figure')} were judged (one that several "
        f"figures make counts in each). By the paper's own measure, with thresholds that are ours, {_spell(measure)}. "
        f"Against doing nothing, which can be asked of {len(sides)} of them, {_spell(nothing)}."
    )  # fmt: skip


def beliefs(results: Sequence[FigureResult]) -> list[tuple[str, list[str]]]:
    """The paper's claims by what to believe of them: a heading, and each claim with its verdicts."""
    claims: dict[Rule, Judged] = {}
    for result in results:
        for finding in result.claims:
            claims.setdefault(finding.rule, []).append((result.figure.number, finding))
    sorted_claims: list[tuple[str, list[str]]] = [(heading, []) for heading, _ in _KINDS]
    for rule, judged in claims.items():
        place = next(place for place, (_, fits) in enumerate(_KINDS) if fits(judged))
        sorted_claims[place][1].append(f"{rule.claim} {_where(judged)}")
    return [(heading, texts) for heading, texts in sorted_claims if texts]


def _where(judged: Judged) -> str:
    """The verdicts of a claim, with figures that agree named together."""
    groups: dict[str, list[int]] = {}
    for number, finding in judged:
        beside = finding.against_nothing
        text = f"{finding.by_measure}" + (f"; against doing nothing: {beside}" if beside is not None else "")
        groups.setdefault(text, []).append(number)
    texts = [f"Figure{'s' * (len(own) > 1)} {', '.join(map(str, own))}: {text}" for text, own in groups.items()]
    return f"({'. '.join(texts)}.)"


def _all(judged: Judged, verdict: Verdict) -> bool:
    return all(finding.by_measure is verdict for _, finding in judged)


def _any(judged: Judged, *verdicts: Verdict) -> bool:
    return any(finding.by_measure in verdicts for _, finding in judged)


def _beaten(judged: Judged) -> bool:
    """Whether a claim fails against doing nothing in some figure, or was not measured there."""
    return any(finding.against_nothing in (Verdict.FAILS, Verdict.UNSEEN) for _, finding in judged)


def _none_lost(judged: Judged) -> bool:
    return all(finding.against_nothing in (Verdict.HOLDS, None) for _, finding in judged)


def _spell(counts: dict[Verdict, int]) -> str:
    words = {
        Verdict.HOLDS: "hold",
        Verdict.LIMITS: "hold with limits",
        Verdict.FAILS: "do not hold",
        Verdict.UNSEEN: "were not measured",
    }
    named = [f"{count} {words[verdict]}" for verdict, count in counts.items() if count]
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else "".join(named) or "none was judged"
