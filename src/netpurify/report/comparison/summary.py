"""A scan in a few sentences: what was found, how much is known, and what could not be seen."""

from netpurify.network import Coverage, TensorVerdict
from netpurify.report.comparison.detection import Detection, Kind
from netpurify.report.kit.names import first_few
from netpurify.report.kit.numbers import count, plural, share
from netpurify.report.kit.summary import Outlook, Statement, Summary
from netpurify.report.purification.summary import summarise_purification

_BASIS = (
    "What this rests on: that the base is what the weights were before training or fine-tuning. In a tensor that was "
    "trained, an alteration about as large as the changes of training cannot be seen without clean inputs."
)
_SAID = {
    TensorVerdict.SAME: ("has every bit of the base", "have every bit of the base"),
    TensorVerdict.ALTERED: ("was never trained, and was altered", "were never trained, and were altered"),
    TensorVerdict.TRAINED: (
        "was trained: only what no training could have done would be seen",
        "were trained: only what no training could have done would be seen",
    ),
    TensorVerdict.UNKNOWN: ("has nothing to be compared with", "have nothing to be compared with"),
}


def summarise_detection(result: Detection) -> Summary:
    """A scan in words; the exit code is 1 if something was found or is unknown."""
    found = _findings(result)
    return Summary(
        policy="",
        headline="; ".join(found) if found else _nothing(result),
        outlook=_outlook(result, found),
        statements=(
            *_verdicts(result),
            *_with_inputs(result),
            Statement(describe_coverage(result.coverage), "coverage"),
        ),
        advice=(),
        basis=_BASIS,
        exit_code=1 if found else 0,
    )


def describe_coverage(coverage: Coverage) -> str:
    """How many weights are known, in one line."""
    examined, compared, unknown = map(share, coverage.shares())
    return f"Of {plural(coverage.total, 'weight')}: examined {examined}, compared only {compared}, unknown {unknown}."


def _verdicts(result: Detection) -> list[Statement]:
    """How many tensors have which verdict."""
    return [
        Statement(f"{plural(number, 'tensor')} {_SAID[verdict][number > 1]}.", verdict.label)
        for verdict in (TensorVerdict.ALTERED, TensorVerdict.UNKNOWN, TensorVerdict.TRAINED, TensorVerdict.SAME)
        if (number := result.scan.count(verdict))
    ]


def _with_inputs(result: Detection) -> list[Statement]:
    if result.fits is None:
        return []
    return [Statement(f"With clean inputs: {summarise_purification(result.fits).headline}.", "clean inputs")]


def _findings(result: Detection) -> list[str]:
    """What was found, a clause for each kind."""
    scan, found = result.scan, []
    for kind in Kind:
        findings = [one for one in result.findings if one.kind == kind]
        if findings:
            entries = plural(sum(one.count for one in findings), "entry").replace("entrys", "entries")
            found.append(f"{entries} {kind.label} in {_named([one.tensor.name for one in findings])}")
    if result.fits is not None and len(result.fits.altered):
        found.append(f"with clean inputs, {plural(len(result.fits.altered), 'weight')} altered")
    if result.unknown:
        found.append(f"nothing to compare with for {_named([one.name for one in result.unknown])}")
    if scan.only_base:
        found.append(f"only the base has {_named(scan.only_base)}")
    if result.strict and result.coverage.compared:
        found.append(f"{plural(result.coverage.compared, 'weight')} compared only, which --strict counts")
    return found


def _nothing(result: Detection) -> str:
    compared = result.coverage.compared
    if not compared:
        return f"nothing was found: all {plural(result.coverage.total, 'weight')} are known"
    return f"nothing was found; a moderate alteration could not be seen in {count(compared)} trained weights"


def _outlook(result: Detection, found: list[str]) -> Outlook:
    if result.findings or (result.fits is not None and len(result.fits.altered)):
        return "fails"
    if found:
        return "unseen" if not result.coverage.examined and not result.coverage.compared else "limits"
    return "limits" if result.coverage.compared else "holds"


def _named(names: "list[str] | tuple[str, ...]") -> str:
    return f"{plural(len(names), 'tensor')} ({first_few(names)})"
