"""A scan in a few sentences: what was found, how much is known, and what could not be seen."""

from netpurify.network import Coverage, Scan
from netpurify.report.comparison.detection import Detection
from netpurify.report.kit.names import first_few
from netpurify.report.kit.numbers import count, plural, share
from netpurify.report.kit.summary import Outlook, Statement, Summary
from netpurify.report.kit.tensor_findings import Kind
from netpurify.report.purification.summary import summarise_purification

_BASIS = (
    "What this rests on: that the base is what the weights were before training or fine-tuning. In a tensor that was "
    "trained, an alteration about as large as the changes of training cannot be seen without clean inputs."
)
_BASIS_OF_MERGE = (
    "What this rests on: that the base is what the weights were before the adapter was merged, and that the adapter is "
    "the one that was meant. What the adapter itself does is not judged."
)


def summarise_detection(result: Detection) -> Summary:
    """A scan in words; the exit code is 1 if something was found or is unknown."""
    found = _findings(result)
    return Summary(
        policy="",
        headline="; ".join(found) if found else _nothing(result),
        outlook=_outlook(result, found),
        statements=(
            *_verdicts(result),
            *map(Statement, _further_checks(result.scan)),
            *_with_inputs(result),
            Statement(describe_coverage(result.coverage), "coverage"),
        ),
        advice=(),
        basis=_BASIS if result.scan.merge is None else _BASIS_OF_MERGE,
        exit_code=1 if found else 0,
    )


def describe_coverage(coverage: Coverage) -> str:
    """How many weights are known, in one line."""
    examined, compared, unknown = map(share, coverage.shares())
    return f"Of {plural(coverage.total, 'weight')}: examined {examined}, compared only {compared}, unknown {unknown}."


def _further_checks(scan: Scan) -> list[str]:
    """What the adapter and changes of low rank say, if they were asked, a sentence each."""
    texts = []
    if scan.merge is not None:
        adapted = plural(len(scan.merge.adapted), "tensor")
        differing = scan.merge.differing
        agree = "all of them are" if not differing else f"{count(differing)} {'is' if differing == 1 else 'are'} not"
        texts.append(
            f"The adapter changes {adapted}; of {_entries(scan.merge.entries)} compared with base and adapter, {agree} "
            "what these make, up to the rounding of a merge."
        )
    if scan.low_rank:
        ranks = first_few([f"{name}: {one.rank}" for name, one in scan.low_rank.items()])
        number = len(scan.low_rank)
        texts.append(
            f"The {'change' if number == 1 else 'changes'} of {plural(number, 'trained tensor')} "
            f"{'has' if number == 1 else 'have'} a low rank ({ranks}), as a merged adapter makes it; an edit of low "
            "rank that was made on purpose looks the same."
        )
    return texts


def _verdicts(result: Detection) -> list[Statement]:
    """How many tensors have which verdict."""
    return [Statement(text, verdict.label) for verdict, text in result.verdicts]


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
            entries = _entries(sum(one.count for one in findings))
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


def _entries(number: int) -> str:
    return plural(number, "entry").replace("entrys", "entries")


def _named(names: "list[str] | tuple[str, ...]") -> str:
    return f"{plural(len(names), 'tensor')} ({first_few(names)})"
