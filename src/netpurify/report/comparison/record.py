"""A scan as JSON, for programs: every tensor with its verdict and its findings, under a versioned schema."""

from typing import Any

from netpurify.network import Entries, LowRankFinding, MergeCheck
from netpurify.report.comparison.detection import Detection
from netpurify.report.comparison.summary import summarise_detection
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import to_json
from netpurify.report.purification.record import purification_record
from netpurify.report.records.schemas import head
from netpurify.report.records.tensors import comparison_record, entries_record


def detection_record(result: Detection, context: Context) -> dict[str, Any]:
    """Everything that was found."""
    summary, scan = summarise_detection(result), result.scan
    return {
        **head("scan"),
        "verdict": summary.headline,
        "statements": summary.texts,
        "exit_code": summary.exit_code,
        "strict": result.strict,
        "frozen": list(scan.frozen),
        "coverage": to_json(result.coverage),
        "tensors": [comparison_record(one) for one in scan.tensors],
        "only_base": list(scan.only_base),
        "merge": None if scan.merge is None else _merge(scan.merge),
        "low_rank": [_low_rank(name, one) for name, one in scan.low_rank.items()],
        "fits": None if result.fits is None else purification_record(result.fits, context),
        "seconds": scan.seconds,
    }


def _merge(merge: MergeCheck) -> dict[str, Any]:
    differences = [
        {"name": one.tensor, "shape": list(one.shape), "adapted": one.adapted, "count": one.count}
        | entries_record(Entries(one.index, one.was, one.expected), reference="expected")
        for one in merge.differences
    ]
    return {
        "agrees": merge.agrees,
        "tensors": merge.tensors,
        "entries": merge.entries,
        "adapted": list(merge.adapted),
        "differences": differences,
        "unmatched": dict(merge.unmatched),
    }


def _low_rank(name: str, one: LowRankFinding) -> dict[str, Any]:
    facts = {"rank": one.rank, "singular_values": to_json(one.singular_values.tolist()), "gap": to_json(one.gap)}
    facts |= {"examined": one.examined, "unjudged": one.unjudged}
    return {"name": name} | facts | entries_record(Entries(one.index, one.was, one.expected), reference="expected")
