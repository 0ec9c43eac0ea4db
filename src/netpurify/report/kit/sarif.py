"""What every SARIF 2.1.0 log of netpurify has: one run, one result for each finding in a tensor, fingerprints."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import PurePath
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.network import Skipped
from netpurify.report.kit.context import Context
from netpurify.report.kit.names import module_name

Level = Literal["error", "warning", "note"]
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SKIPPED = "not-examined"


class AlertRule(NamedTuple):
    """A kind of finding.

    Attributes:
        level: How grave it is.
        text: What it means, in a sentence.
        help: More about it, and what to do; may be empty.
    """

    level: Level
    text: str
    help: str = ""


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


@dataclass(frozen=True, slots=True)
class Unexamined:
    """Something that was not examined, which a log says beside its results.

    Attributes:
        name: Of a module or tensor.
        reason: Why not.
        level: How grave it is.
    """

    name: str
    reason: str
    level: Level


def unexamined(skipped: Iterable[Skipped]) -> list[Unexamined]:
    """Modules that were not examined."""
    return [Unexamined(module_name(one.name), one.reason, "warning" if one.missed else "note") for one in skipped]


def sarif_log(
    alerts: Iterable[Alert],
    *,
    rules: Mapping[str, AlertRule],
    file: str,
    unexamined: Iterable[Unexamined] = (),
    properties: Mapping[str, Any],
) -> dict[str, Any]:
    """A SARIF log with one run.

    Args:
        alerts: What was found.
        rules: Every kind of finding that there may be, by its name.
        file: The file of weights, as the reader of the log should see it.
        unexamined: What was not examined.
        properties: What else is known about the run.
    """
    address, order = _address(file), list(rules)
    run = {
        "tool": {"driver": _driver(rules)},
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": [_notification(one) for one in unexamined]}
        ],
        "artifacts": [{"location": {"uri": address}}],
        "results": [_result(address, alert, rules[alert.rule], order.index(alert.rule)) for alert in alerts],
        "columnKind": "unicodeCodePoints",
        "properties": dict(properties),
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def named_file(context: Context, role: str) -> str:
    """The file that a log is about.

    Raises:
        InputError: The context does not name it.
    """
    if role not in context.files:
        raise InputError(f"a SARIF log names the file of weights; give files={{'{role}': 'model.safetensors'}}")
    return context.files[role]


def digest_entries(index: NDArray[np.int64], was: NDArray[np.float64]) -> str:
    """The same for the same entries with the same values, whatever else is in the network."""
    return hashlib.sha256(index.astype("<i8").tobytes() + was.astype("<f8").tobytes()).hexdigest()


def _result(address: str, alert: Alert, rule: AlertRule, position: int) -> dict[str, Any]:
    place = hashlib.sha256(f"{alert.rule}\n{alert.tensor}".encode("utf-8", "surrogatepass")).hexdigest()
    prints = {"tensor/v1": place} | ({"weights/v1": alert.digest} if alert.digest else {})
    # A line, because some readers refuse results without one; a file of weights has no other.
    physical = {"artifactLocation": {"uri": address, "index": 0}, "region": {"startLine": 1}}
    return {
        "ruleId": alert.rule,
        "ruleIndex": position,
        "level": rule.level,
        "message": {"text": _literal(f"{alert.tensor}: {alert.message}")},
        "locations": [{"physicalLocation": physical, "logicalLocations": [{"fullyQualifiedName": alert.tensor}]}],
        "partialFingerprints": prints,
    }


def _driver(rules: Mapping[str, AlertRule]) -> dict[str, Any]:
    return {
        "name": "netpurify",
        "version": version("netpurify"),
        "rules": [_described(name, rule) for name, rule in rules.items()],
        "notifications": [
            {"id": _SKIPPED, "shortDescription": {"text": "A module with weights was not examined."}},
        ],
    }


def _described(name: str, rule: AlertRule) -> dict[str, Any]:
    known = {"id": name, "shortDescription": {"text": rule.text}, "defaultConfiguration": {"level": rule.level}}
    return known | ({"help": {"text": rule.help}} if rule.help else {})


def _notification(one: Unexamined) -> dict[str, Any]:
    text = _literal(f"{one.name}: {one.reason}")
    return {"descriptor": {"id": _SKIPPED, "index": 0}, "level": one.level, "message": {"text": text}}


def _literal(text: str) -> str:
    """Text that means itself: in SARIF, brackets can make links and braces stand for arguments."""
    for sign in ("\\", "[", "]"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("{", "{{").replace("}", "}}")


def _address(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
