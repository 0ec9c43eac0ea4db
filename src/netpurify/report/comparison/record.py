"""A scan as JSON, for programs: every tensor with its verdict and its findings, under a versioned schema."""

from typing import Any

from netpurify.report.comparison.detection import Detection
from netpurify.report.comparison.summary import summarise_detection
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import to_json
from netpurify.report.purification.record import purification_record
from netpurify.report.records.schemas import head
from netpurify.report.records.tensors import comparison_record


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
        "fits": None if result.fits is None else purification_record(result.fits, context),
        "seconds": scan.seconds,
    }
