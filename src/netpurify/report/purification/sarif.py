"""A purification as SARIF 2.1.0, for code scanning and pipelines: one result for each finding in a tensor."""

import hashlib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import numpy as np

from netpurify.network import Altered, Grade, LayerRecord, Purification, Skipped
from netpurify.report.kit.numbers import count, exact, number, plural
from netpurify.report.purification.entries import change
from netpurify.report.purification.summary import Summary

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULES = {
    "altered-weights": (
        "error",
        "Weights were altered after training; they are proven and replaced, exact to rounding.",
    ),
    "approximate-repair": ("warning", "Weights stand far out of the fit and were replaced by it, without a proof."),
    "unit-left-alone": ("warning", "Units could not be judged; nothing was changed in them."),
    "weights-unjudged": ("warning", "Weights differ from the fit but were left alone: so do nearly all units there."),
    "weights-suspicious": ("note", "Weights stand far out of a fit that is not exact; training may have made them."),
    "layer-projected": ("note", "Every weight took the fitted value; which ones had been altered is not said."),
}
_OF_GRADE = {Grade.RECOVERED: "altered-weights", Grade.APPROXIMATE: "approximate-repair"}
_SKIPPED = "not-examined"


def sarif(result: Purification, *, file: str) -> dict[str, Any]:
    """A SARIF log with one run.

    Args:
        result: What ``purify`` gave.
        file: The file of the contaminated weights, as the reader of the log should see it; relative to the root of the
            repository if the log goes to code scanning.

    Returns:
        What ``json.dumps`` takes. No results means that nothing was found in what was examined; what was not examined
        is among the notifications.
    """
    address = _address(file)
    found = [_result(address, *finding) for layer in result.layers for finding in _findings(layer, result)]
    notifications = [_notification(one) for one in result.skipped]
    run = {
        "tool": {"driver": _driver(result.provenance["versions"]["netpurify"])},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "artifacts": [{"location": {"uri": address}}],
        "results": found,
        "columnKind": "unicodeCodePoints",
        "properties": {
            "policy": result.policy,
            "verdict": Summary.of(result).headline,
            "contaminated": result.provenance["model"],
            "initial": result.provenance["initial"],
            "data": result.provenance["data"],
        },
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _findings(layer: LayerRecord, result: Purification) -> Iterator[tuple[str, str, str, str]]:
    """Rule, tensor, message, and what tells this finding from a later one in the same tensor."""
    found = layer.altered
    weight = f"{layer.name}.weight" if layer.name else "weight"
    for place, tensor in enumerate(found.names):
        size = result.contaminated[tensor].numel()
        for grade, rule in _OF_GRADE.items():
            mine = np.flatnonzero((found.tensor == place) & (found.grade == grade))
            mine = mine[np.argsort(found.index[mine], kind="stable")]
            if mine.size:
                shape = tuple(result.contaminated[tensor].shape)
                yield rule, tensor, _altered(found, mine, shape, size, grade), _digest(found, mine)
    if left := layer.count(Grade.LEFT_ALONE):
        yield (
            "unit-left-alone",
            weight,
            f"{count(left)} of {plural(layer.units, 'unit')} left alone: {layer.reason}",
            "",
        )
    if layer.unjudged:
        text = f"{plural(layer.unjudged, 'weight')} left unjudged: nearly all units differ from the fit at that input"
        yield "weights-unjudged", weight, text, ""
    if suspicious := len(layer.suspicious):
        text = f"{plural(suspicious, 'suspicious weight')} left unchanged: far out of a fit that is not exact"
        yield "weights-suspicious", weight, text, ""
    if changed := layer.count(Grade.PROJECTED):
        total = plural(layer.fan_in * layer.units, "weight")
        text = f"{plural(changed, 'unit')} projected: {count(layer.changed)} of {total} changed"
        yield "layer-projected", weight, text, ""


def _altered(found: Altered, mine: np.ndarray, shape: tuple[int, ...], size: int, grade: Grade) -> str:
    was, now = found.was[mine], found.now[mine]
    sizes = change(was, now)
    largest = int(sizes.argmax())
    index = ", ".join(str(int(axis)) for axis in np.unravel_index(found.index[mine[largest]], shape))
    how = "replaced, exact to rounding" if grade == Grade.RECOVERED else "far out of the fit and replaced without proof"
    size_of = f"largest change {number(float(sizes[largest]))} at index {index}"
    values = f"was {exact(float(was[largest]))}, now {exact(float(now[largest]))}"
    return f"{count(mine.size)} of {plural(size, 'weight')} {how}; {size_of} ({values})"


def _result(address: str, rule: str, tensor: str, message: str, digest: str) -> dict[str, Any]:
    place = hashlib.sha256(f"{rule}\n{tensor}".encode()).hexdigest()
    prints = {"tensor/v1": place} | ({"weights/v1": digest} if digest else {})
    # A line, because some readers refuse results without one; a file of weights has no other.
    physical = {"artifactLocation": {"uri": address, "index": 0}, "region": {"startLine": 1}}
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": _RULES[rule][0],
        "message": {"text": _literal(f"{tensor}: {message}")},
        "locations": [{"physicalLocation": physical, "logicalLocations": [{"fullyQualifiedName": tensor}]}],
        "partialFingerprints": prints,
    }


def _driver(version: str) -> dict[str, Any]:
    return {
        "name": "netpurify",
        "version": version,
        "rules": [
            {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}
            for rule, (level, text) in _RULES.items()
        ],
        "notifications": [
            {"id": _SKIPPED, "shortDescription": {"text": "A module with weights was not examined."}},
        ],
    }


def _notification(part: Skipped) -> dict[str, Any]:
    text = _literal(f"{part.name or 'the network itself'}: {part.reason}")
    level = "warning" if part.missed else "note"
    return {"descriptor": {"id": _SKIPPED, "index": 0}, "level": level, "message": {"text": text}}


def _digest(found: Altered, mine: np.ndarray) -> str:
    """The same for the same alteration, whatever else is in the network."""
    parts = found.index[mine].astype("<i8").tobytes() + found.was[mine].astype("<f8").tobytes()
    return hashlib.sha256(parts).hexdigest()


def _literal(text: str) -> str:
    """Text that means itself: in SARIF, brackets can make links and braces stand for arguments."""
    for sign in ("\\", "[", "]"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("{", "{{").replace("}", "}}")


def _address(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
