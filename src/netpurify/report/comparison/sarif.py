"""A scan as SARIF 2.1.0, for code scanning and pipelines: one result for each kind of finding in a tensor."""

from collections.abc import Iterable, Iterator
from typing import Any

from netpurify.report.comparison.detection import Detection
from netpurify.report.comparison.summary import summarise_detection
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import to_json
from netpurify.report.kit.numbers import count, plural
from netpurify.report.kit.sarif import (
    Alert,
    AlertRule,
    Unexamined,
    digest_entries,
    named_file,
    sarif_log,
    unexamined,
)
from netpurify.report.kit.tensor_findings import Kind, TensorFinding
from netpurify.report.purification.sarif import RULES as RULES_OF_FITS
from netpurify.report.purification.sarif import layer_alerts

_OF_KIND = {
    Kind.ALTERED: "altered-tensor",
    Kind.IMPOSSIBLE: "impossible-weights",
    Kind.OUTLYING: "outlying-weights",
    Kind.NOT_MERGED: "not-base-and-adapter",
    Kind.OFF_RANK: "off-low-rank",
}
_RULES = {
    "altered-tensor": AlertRule(
        "error",
        "A tensor was never trained, and some of its entries differ from the base.",
        "Take these entries from the base again, or find out who changed them. If the tensor was trained on purpose, "
        "entry by entry, this is a false alarm.",
    ),
    "impossible-weights": AlertRule(
        "error",
        "A trained tensor has entries that are NaN, infinite or absurdly large: no training leaves them so.",
        "netpurify recover rebuilds them with clean inputs.",
    ),
    "outlying-weights": AlertRule(
        "warning",
        "Entries of a trained tensor changed far more than all others of this tensor.",
        "netpurify recover says more about them with clean inputs.",
    ),
    "not-base-and-adapter": AlertRule(
        "error",
        "Entries of merged weights are not what the base and the adapter make of them, beyond the rounding of a merge.",
        "Merge the adapter again, or find out who changed these entries. An adapter of another version, or a merge of "
        "several adapters, gives the same alarm.",
    ),
    "off-low-rank": AlertRule(
        "warning",
        "The change of a trained tensor has a low rank, and some entries do not agree with it.",
        "The rank was estimated from the tensor itself: compare it with that of the adapter. With the adapter, "
        "--adapter tells exactly.",
    ),
    "tensor-without-base": AlertRule(
        "warning",
        "A tensor has nothing to be compared with, so nothing is known about it.",
        "Give the base that the weights were trained from.",
    ),
    "tensor-only-in-base": AlertRule("warning", "The base has a tensor that the weights lack."),
    "tensor-compared-only": AlertRule(
        "warning",
        "A tensor was trained: an alteration about as large as the changes of training would not be seen.",
        "Give clean inputs with --data, or name the tensor with --frozen if it was never trained.",
    ),
}


def detection_sarif(result: Detection, context: Context) -> dict[str, Any]:
    """A SARIF log with one run.

    Raises:
        InputError: The context does not name the file of the weights.
    """
    summary = summarise_detection(result)
    fits = result.fits
    alerts = [] if fits is None else list(layer_alerts(fits))
    told = {alert.tensor for alert in alerts}  # clean inputs tell more about a tensor than its base alone
    alerts += [alert for alert in _alerts(result) if alert.tensor not in told]
    return sarif_log(
        alerts,
        rules=_RULES if fits is None else _RULES | RULES_OF_FITS,
        file=named_file(context, "weights"),
        unexamined=_compared_only(result) if fits is None else unexamined(fits.skipped),
        properties={
            "verdict": summary.headline,
            "statements": summary.texts,
            "coverage": to_json(result.coverage),
            "frozen": list(result.scan.frozen),
        },
    )


def _alerts(result: Detection) -> Iterator[Alert]:
    for finding in result.findings:
        digest = digest_entries(finding.entries.index, finding.entries.was)
        yield Alert(_OF_KIND[finding.kind], finding.tensor.name, _message(finding), digest)
    for one in result.unknown:
        yield Alert("tensor-without-base", one.name, f"{plural(one.entries, 'weight')} not compared: {one.reason}")
    for name in result.scan.only_base:
        yield Alert("tensor-only-in-base", name, "the base has this tensor, the weights lack it")
    if result.strict and result.fits is None:
        found = {finding.tensor.name for finding in result.findings}
        for one in result.compared_only:
            if one.name not in found:
                yield Alert("tensor-compared-only", one.name, one.reason)


def _message(finding: TensorFinding) -> str:
    entries = f"{count(finding.count)} of {plural(finding.tensor.entries, 'weight')} {finding.kind.meaning}"
    entries += f" ({finding.note})" if finding.note else ""
    return f"{entries}; {next(finding.rows(1)).text}"


def _compared_only(result: Detection) -> Iterable[Unexamined]:
    if result.strict:  # these are among the results then
        return []
    return [Unexamined(one.name, one.reason, "note") for one in result.compared_only]
