"""A purification as SARIF 2.1.0, for code scanning and pipelines: one result for each finding in a tensor."""

import hashlib
import math
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad import Status
from netpurify.network import Altered, Grade, LayerRecord, Purification, Skipped
from netpurify.report.kit.context import Context
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import count, exact, number, plural
from netpurify.report.purification.advice import advise_layer, status_label
from netpurify.report.purification.entries import change
from netpurify.report.purification.summary import summarise_purification

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULES = {
    "altered-weights": (
        "error",
        "Weights were altered after training; they are proven and replaced, exact to rounding.",
    ),
    "restored-weights": (
        "error",
        "Weights that were never trained differ from the initial ones; they were set back to the initial bits.",
    ),
    "low-rank-repair": ("warning", "Weights differ from a low-rank change that was estimated from the layer itself."),
    "approximate-repair": ("warning", "Weights stand far out of the fit and were replaced by it, without a proof."),
    "unit-left-alone": ("warning", "Units could not be judged; nothing was changed in them."),
    "weights-unjudged": (
        "warning",
        "Weights differ from the fit in a pattern that training may have made, and were left.",
    ),
    "weights-suspicious": ("note", "Weights stand far out of a fit that is not exact; training may have made them."),
    "layer-projected": ("note", "Every weight took the fitted value; which ones had been altered is not said."),
}
_OF_GRADE = {
    Grade.RECOVERED: "altered-weights",
    Grade.RESTORED: "restored-weights",
    Grade.LOW_RANK: "low-rank-repair",
    Grade.APPROXIMATE: "approximate-repair",
}
_HOW = {
    Grade.RECOVERED: "replaced, exact to rounding",
    Grade.RESTORED: "set back to the initial bits",
    Grade.LOW_RANK: "replaced by a low-rank fit that was estimated",
    Grade.APPROXIMATE: "far out of the fit and replaced without proof",
}
_WITHOUT_RECOVERY = ("approximate-repair", "unit-left-alone")
_HELP = "What the status of an L1 fit says about a unit that was not recovered, and what to do. " + " ".join(
    f"{status_label(status).capitalize()}: {status.meaning}. Remedy: {status.remedy}."
    for status in Status
    if status not in (Status.CLEAN, Status.RECOVERED)
)
_SKIPPED = "not-examined"


class Alert(NamedTuple):
    """One result of the log.

    Attributes:
        rule: Its rule.
        tensor: Where it is.
        message: What was found.
        digest: What tells it from a later finding in the same tensor; empty if nothing does.
    """

    rule: str
    tensor: str
    message: str
    digest: str = ""


def purification_sarif(result: Purification, context: Context) -> dict[str, Any]:
    """A SARIF log with one run.

    Raises:
        InputError: The context does not name the file of the contaminated weights.
    """
    if "contaminated" not in context.files:
        raise InputError("a SARIF log names the file of weights; give files={'contaminated': 'model.safetensors'}")
    address = _address(context.files["contaminated"])
    summary = summarise_purification(result)
    results = [_result(address, finding) for layer in result.layers for finding in _findings(layer, result)]
    run = {
        "tool": {"driver": _driver(result.provenance["versions"]["netpurify"])},
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": [_notification(it) for it in result.skipped]}
        ],
        "artifacts": [{"location": {"uri": address}}],
        "results": results,
        "columnKind": "unicodeCodePoints",
        "properties": {
            "policy": summary.policy,
            "verdict": summary.headline,
            "statements": summary.texts,
            "contaminated": result.provenance["model"],
            "initial": result.provenance["initial"],
            "data": result.provenance["data"],
        },
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _findings(layer: LayerRecord, result: Purification) -> Iterator[Alert]:
    """What was found in one layer, one finding for each rule and tensor."""
    yield from _replaced(layer, result)
    weight = f"{layer.name}.weight" if layer.name else "weight"
    if left := layer.count(Grade.LEFT_ALONE):
        # The advice is about units that are approximate too: their fits have the same statuses.
        advice = " ".join(advice.text for advice in advise_layer(layer))
        message = f"{count(left)} of {plural(layer.units, 'unit')} left alone: {layer.reason}. {advice}"
        yield Alert("unit-left-alone", weight, message)
    if layer.unjudged:
        weights = plural(layer.unjudged, "weight")
        message = f"{weights} left unjudged: they differ from the fit in a pattern that training may have made"
        yield Alert("weights-unjudged", weight, message)
    if suspicious := len(layer.suspicious):
        message = f"{plural(suspicious, 'suspicious weight')} left unchanged: far out of a fit that is not exact"
        yield Alert("weights-suspicious", weight, message)
    if projected := layer.count(Grade.PROJECTED):
        total = plural(layer.fan_in * layer.units, "weight")
        message = f"{plural(projected, 'unit')} projected: {count(layer.changed)} of {total} changed"
        yield Alert("layer-projected", weight, message)


def _replaced(layer: LayerRecord, result: Purification) -> Iterator[Alert]:
    """The replaced weights of each tensor, by grade."""
    altered = layer.altered
    for position, tensor in enumerate(altered.names):
        for grade, rule in _OF_GRADE.items():
            chosen = np.flatnonzero((altered.tensor == position) & (altered.grade == grade))
            chosen = chosen[np.argsort(altered.index[chosen], kind="stable")]
            if chosen.size:
                message = _message(altered, chosen, tuple(result.contaminated[tensor].shape), grade)
                yield Alert(rule, tensor, message, _digest(altered, chosen))


def _message(altered: Altered, chosen: NDArray[np.intp], shape: tuple[int, ...], grade: Grade) -> str:
    was, now = altered.was[chosen], altered.now[chosen]
    sizes = change(was, now)
    largest = int(sizes.argmax())
    index = ", ".join(str(int(axis)) for axis in np.unravel_index(altered.index[chosen[largest]], shape))
    where = f"largest change {number(float(sizes[largest]))} at index {index}"
    values = f"was {exact(float(was[largest]))}, now {exact(float(now[largest]))}"
    return f"{count(chosen.size)} of {plural(math.prod(shape), 'weight')} {_HOW[grade]}; {where} ({values})"


def _result(address: str, finding: Alert) -> dict[str, Any]:
    place = hashlib.sha256(f"{finding.rule}\n{finding.tensor}".encode()).hexdigest()
    prints = {"tensor/v1": place} | ({"weights/v1": finding.digest} if finding.digest else {})
    # A line, because some readers refuse results without one; a file of weights has no other.
    physical = {"artifactLocation": {"uri": address, "index": 0}, "region": {"startLine": 1}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": list(_RULES).index(finding.rule),
        "level": _RULES[finding.rule][0],
        "message": {"text": _literal(f"{finding.tensor}: {finding.message}")},
        "locations": [{"physicalLocation": physical, "logicalLocations": [{"fullyQualifiedName": finding.tensor}]}],
        "partialFingerprints": prints,
    }


def _driver(version: str) -> dict[str, Any]:
    return {
        "name": "netpurify",
        "version": version,
        "rules": [_rule(name, level, text) for name, (level, text) in _RULES.items()],
        "notifications": [
            {"id": _SKIPPED, "shortDescription": {"text": "A module with weights was not examined."}},
        ],
    }


def _rule(name: str, level: str, text: str) -> dict[str, Any]:
    rule = {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
    return rule | ({"help": {"text": _HELP}} if name in _WITHOUT_RECOVERY else {})


def _notification(module: Skipped) -> dict[str, Any]:
    text = _literal(f"{module_name(module.name)}: {module.reason}")
    level = "warning" if module.missed else "note"
    return {"descriptor": {"id": _SKIPPED, "index": 0}, "level": level, "message": {"text": text}}


def _digest(altered: Altered, chosen: NDArray[np.intp]) -> str:
    """The same for the same alteration, whatever else is in the network."""
    content = altered.index[chosen].astype("<i8").tobytes() + altered.was[chosen].astype("<f8").tobytes()
    return hashlib.sha256(content).hexdigest()


def _literal(text: str) -> str:
    """Text that means itself: in SARIF, brackets can make links and braces stand for arguments."""
    for sign in ("\\", "[", "]"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("{", "{{").replace("}", "}}")


def _address(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
