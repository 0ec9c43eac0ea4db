"""The verdict on a purification, line by line: what was found, what became of it, what is not known."""

from netpurify.network import Grade, Purification
from netpurify.report.kit.names import missed_modules
from netpurify.report.kit.numbers import count, plural
from netpurify.report.kit.summary import SIGNS, Outlook, VerdictLine
from netpurify.report.purification.counts import SYMBOLS, Counts

_MISSED = "layers that could not be examined, so that nothing is known about them"


def verdict_on(counts: Counts, result: Purification) -> tuple[VerdictLine, ...]:
    """What was found, what became of it, and what is not known; lines of which there is nothing to say are left out."""
    if not counts.all_units and not counts.coverage.examined:
        lines = [_line(["No layer was examined"], "unseen")]
    elif counts.policy == "project":
        sign = SYMBOLS[Grade.PROJECTED]
        lines = [
            VerdictLine("; ".join(_projected(counts)), counts.outlook, sign if counts.outlook == "limits" else "○")
        ]
    else:
        lines = _recovered(counts)
    unknown, others = _unknown(counts, result), counts.skipped - counts.missed
    if others:
        unknown.append(f"{plural(others, 'other module' if counts.missed else 'module')} not examined")
    if unknown:
        lines.append(_line(unknown, "limits" if len(unknown) > bool(others) else "unseen"))
    return tuple(lines)


def _line(clauses: list[str], outlook: Outlook) -> VerdictLine:
    return VerdictLine("; ".join(clauses), outlook, SIGNS[outlook])


def _recovered(counts: Counts) -> list[VerdictLine]:
    """Tampering, and what became of it."""
    found, units = _found(counts), _recovered_units(counts)
    replaced = counts.replaced
    if replaced:
        proven = counts.others + sum(number for grade, number in counts.altered.items() if grade.certain)
        prefix = "" if proven < replaced else "replaced: " if replaced == 1 else "all replaced: "
        return [_line(found, "fails"), _line([f"{prefix}{units}"], "holds" if counts.certain else "limits")]
    if counts.whole:
        return [_line([*found, units], "holds")]
    return [_line(found, "limits"), _line([units], "holds" if counts.certain else "unseen")]


def _unknown(counts: Counts, result: Purification) -> list[str]:
    """What is not known of the purified network."""
    clauses = []
    if unproven := counts.units[Grade.APPROXIMATE] + counts.units[Grade.LOW_RANK]:
        clauses.append(f"{_of_all(counts, unproven)} without proof")
    if counts.units[Grade.LEFT_ALONE] and counts.policy != "project":
        clauses.append(f"{_of_all(counts, counts.units[Grade.LEFT_ALONE])} could not be judged")
    if counts.unjudged:
        clauses.append(f"{plural(counts.unjudged, 'weight')} left unjudged")
    if counts.suspicious:
        clauses.append(f"{plural(counts.suspicious, 'suspicious weight')} left unchanged")
    if counts.not_finite:
        are = "is" if counts.not_finite == 1 else "are"
        clauses.append(f"{plural(counts.not_finite, 'weight')} of the purified network {are} not finite")
    return clauses + missed_modules(result.skipped, _MISSED)


def _found(counts: Counts) -> list[str]:
    """Which weights were altered."""
    altered = counts.others + sum(found for grade, found in counts.altered.items() if grade.certain)
    far_out, low_rank = counts.altered[Grade.APPROXIMATE], counts.altered[Grade.LOW_RANK]
    clauses = []
    if altered:
        clauses.append(f"{count(altered)} of {plural(counts.weights, 'weight')} {were(altered)} altered")
    elif counts.whole:
        clauses.append(f"Nothing was altered in {plural(counts.weights, 'weight')} examined")
    else:
        clauses.append(f"No weight of {count(counts.weights)} is proven to be altered")
    if far_out:
        more = f"{count(far_out)} more" if altered else plural(far_out, "weight")
        clauses.append(f"{more} far out of the fit replaced approximately")
    if counts.others_rebuilt:
        more = f"{count(counts.others_rebuilt)} more" if altered or far_out else plural(counts.others_rebuilt, "weight")
        clauses.append(f"{more} that no training leaves replaced by the initial value")
    if low_rank:
        more = f"{count(low_rank)} more" if altered or far_out else plural(low_rank, "weight")
        clauses.append(f"{more} replaced by a low-rank fit that was estimated")
    return clauses


def _recovered_units(counts: Counts) -> str:
    """How many units are recovered, restored and intact, and on what evidence."""
    if not counts.certain:
        return f"{plural(counts.others, 'weight')} of other tensors restored" if counts.others else "no unit recovered"
    by_words = {
        "recovered, certified": counts.repaired[Grade.RECOVERED],
        "restored to the initial bits": counts.repaired[Grade.RESTORED],
        "intact, certified": counts.intact[Grade.RECOVERED],
        "intact, as before training": counts.intact[Grade.RESTORED],
        "certified but for unjudged weights": counts.unclear,
    }
    (words, units), *more = [(words, units) for words, units in by_words.items() if units]
    others = [f"{plural(counts.others, 'weight')} of other tensors restored"] if counts.others else []
    rest = [f"{count(number)} {how}" for how, number in more]
    return "; ".join([f"{_of_all(counts, units)} {words}", *rest, *others])


def _projected(counts: Counts) -> list[str]:
    units = _of_all(counts, counts.units[Grade.PROJECTED])
    clauses = [
        f"{units[0].upper()}{units[1:]} took the fitted value in every weight",
        f"{count(counts.changed)} of {plural(counts.weights, 'weight')} changed",
    ]
    if counts.units[Grade.LEFT_ALONE]:
        clauses.append(f"{_of_all(counts, counts.units[Grade.LEFT_ALONE])} left alone")
    if unproven := counts.fits - counts.minima:
        clauses.append(f"{plural(unproven, 'fit')} without a certificate")
    return clauses


def _of_all(counts: Counts, units: int) -> str:
    if units < counts.all_units:
        return f"{count(units)} of {plural(counts.all_units, 'unit')}"
    return f"all {plural(units, 'unit')}" if units > 1 else "the only unit"


def were(how_many: int) -> str:
    """The verb for so many."""
    return "was" if how_many == 1 else "were"
