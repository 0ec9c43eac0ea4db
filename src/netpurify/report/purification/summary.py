"""A purification in a few sentences: what was proven, what was approximated, what was left alone."""

from netpurify.network import Grade, Purification
from netpurify.report.kit.numbers import count, number, plural
from netpurify.report.kit.summary import Statement, Summary, describe_agreement, describe_coverage
from netpurify.report.purification.advice import advise
from netpurify.report.purification.counts import SYMBOLS, Counts
from netpurify.report.purification.verdict import verdict_on, were

_BASIS = (
    "What this rests on: that the initial weights are those with which training began, and that the inputs are clean "
    "and like those of training. Neither can be seen from the weights."
)
_INTACT = {
    Grade.RECOVERED: "nothing to replace; every weight keeps its bits.",
    Grade.RESTORED: "never trained, and every weight has its initial bits.",
}
_CHECKABLE = " The certificates can be checked again by anyone who has both files of weights and the proof."


def summarise_purification(result: Purification) -> Summary:
    """A purification in words."""
    counts = Counts.of(result)
    lines = verdict_on(counts, result)
    checkable = counts.fits and result.provenance["settings"]["proof"]
    return Summary(
        policy=counts.policy,
        headline="; ".join(line.text for line in lines),
        outlook=counts.outlook,
        statements=(*_statements(counts), Statement(describe_agreement(result.agreement))),
        advice=advise(result),
        basis=_BASIS + (_CHECKABLE if checkable else ""),
        exit_code=counts.exit_code,
        lines=lines,
    )


def _statements(counts: Counts) -> list[Statement]:
    by_grade = [
        Statement(_about_grade(counts, grade), f"{SYMBOLS[grade]} {grade.label}", grade.label.replace(" ", "-"))
        for grade in Grade
        if (counts.repaired if grade.certain else counts.units)[grade]
    ]
    intact = [
        Statement(f"{plural(counts.intact[grade], 'unit')}: {words}", "✓ intact", "intact")
        for grade, words in _INTACT.items()
        if counts.intact[grade]
    ]
    texts = []
    if counts.rebuilt:
        texts.append(f"{plural(counts.rebuilt, 'replaced weight')} had been NaN, infinite or absurdly large.")
    if counts.unjudged:
        texts.append(
            f"{plural(counts.unjudged, 'weight')} left unjudged: they differ from the fit in a pattern that training "
            "may have made, such as nearly all units at one input, or several at inputs that no clean one reaches. An "
            "attacker can make it too."
        )
    if counts.suspicious:
        texts.append(
            f"{plural(counts.suspicious, 'suspicious weight')} left unchanged: far out of a fit that is not exact, "
            "but not beyond what training could have done."
        )
    if counts.fits:
        proven = f"{count(counts.minima)} of {plural(counts.fits, 'L1 fit')} {_are(counts.minima)}"
        more = "; a unit counts as recovered only with surplus evidence besides" if counts.policy == "recover" else ""
        texts.append(f"{proven}. That proves the fits, not the weights{more}.")
    if counts.others:
        texts.append(
            f"{plural(counts.others, 'weight')} of tensors that are not part of a layer {were(counts.others)} set back "
            "to the initial bits: these tensors were never trained."
        )
    if counts.others_rebuilt:
        texts.append(
            f"{plural(counts.others_rebuilt, 'weight')} of trained tensors that are not part of a layer had values "
            "that no training leaves (NaN, infinite, absurdly large or erased), and took the initial values."
        )
    if counts.skipped:
        texts.append(f"{plural(counts.skipped, 'module')} with weights {were(counts.skipped)} not examined.")
    if counts.policy == "recover":
        texts.append(describe_coverage(counts.coverage))
    if counts.unclear:
        units = plural(counts.unclear, "unit")
        text = f"{units}: nothing was replaced; weights that differ from the fit were left unjudged."
        intact.append(Statement(text, "◐ unjudged", "approximate"))
    return [*by_grade, *intact, *map(Statement, texts)]


def _about_grade(counts: Counts, grade: Grade) -> str:
    altered = counts.altered[grade]
    units = plural((counts.repaired if grade.certain else counts.units)[grade], "unit")
    if grade == Grade.RECOVERED:
        return f"{units}: {plural(altered, 'weight')} replaced, exact to rounding; all others keep their bits."
    if grade == Grade.RESTORED:
        return f"{units}: never trained; {plural(altered, 'weight')} set back to the initial bits."
    if grade == Grade.LOW_RANK:
        return (
            f"{units}: {plural(altered, 'weight')} replaced by a fit of low rank; its directions were estimated from "
            "the layer itself, so it is no proof."
        )
    if grade == Grade.APPROXIMATE:
        return (
            f"{units}: {plural(altered, 'weight')} far out of the fit replaced by the fitted value, with an error of "
            f"about {number(counts.error)} each; no proof, and smaller alterations stay."
        )
    if grade == Grade.LEFT_ALONE:
        return f"{units}: nothing was changed; whether anything is altered there is not known."
    return (
        f"{units}: every weight took the fitted value, whatever was altered (Algorithm 2 as written); which "
        "weights had been altered is not said."
    )


def _are(minima: int) -> str:
    return "is a proven minimum" if minima == 1 else "are proven minima"
