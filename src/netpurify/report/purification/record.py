"""A purification or a defence as JSON, for programs: everything that is known, under a versioned schema.

JSON has no NaN and no infinities: wherever a number may be one, it is the string "nan", "inf" or "-inf". ``null`` means
that there is nothing to say. The schemas themselves are ``purification.schema.json`` and ``defence.schema.json`` beside
this file; a record names its own.
"""

import json
import math
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad import Certificate, Status
from netpurify.network import Defence, Grade, LayerFit, LayerRecord, Plan, Purification, Step
from netpurify.network.records import EDGES
from netpurify.report.defence.summary import DefenceSummary
from netpurify.report.kit.json_values import number, numbers, plain, safe, skipped
from netpurify.report.purification.entries import entries
from netpurify.report.purification.summary import Summary

SCHEMA = 1
"""Raised when a field goes or changes its meaning; new fields alone do not raise it."""


def record(result: Purification | Defence, *, plan: Plan | None = None) -> dict[str, Any]:
    """Everything about a purification or a defence but the weights.

    Args:
        result: What ``purify`` gave.
        plan: What ``check`` had said of the same network, if it was asked; of recovery, so there is none of a defence.

    Returns:
        Numbers, strings, lists and dictionaries, which ``json.dumps(..., allow_nan=False)`` takes.

    Raises:
        InputError: There is a plan of a defence.
    """
    if isinstance(result, Purification):
        return _purification(result, plan)
    if plan is not None:
        raise InputError("a plan says what can be recovered, and a defence recovers nothing; leave plan out")
    return _defence(result)


def schema(name: Literal["purification", "defence"] = "purification") -> dict[str, Any]:
    """The JSON Schema that every ``record`` with this ``schema_name`` fits."""
    return json.loads(resources.files("netpurify.report").joinpath("schemas", f"{name}.schema.json").read_text("utf-8"))


def _purification(result: Purification, plan: Plan | None) -> dict[str, Any]:
    summary = Summary.of(result)
    return {
        "schema_name": "purification",
        "schema": SCHEMA,
        "policy": result.policy,
        "verdict": summary.headline,
        "statements": [text for _, text in summary.statements],
        "weights": summary.weights,
        "changed": summary.changed,
        "rebuilt": summary.rebuilt,
        "unjudged": summary.unjudged,
        "grades": _grades(np.concatenate([np.zeros(0, np.int8), *(layer.grade for layer in result.layers)])),
        "statuses": _statuses(np.concatenate([np.zeros(0, np.int8), *(layer.status for layer in result.layers)])),
        "agreement": plain(result.agreement),
        "seconds": result.seconds,
        "peak_bytes": result.peak_bytes,
        "provenance": safe(result.provenance),
        "layers": [_layer(layer) for layer in result.layers],
        "skipped": skipped(result.skipped),
        "altered": [
            {
                "tensor": one.tensor,
                "index": list(one.index),
                "was": number(one.was),
                "now": number(one.now),
                "grade": one.grade.name.lower(),
            }
            for one in entries(result, result.altered)
        ],
        "suspicious": [
            {"tensor": one.tensor, "index": list(one.index), "value": number(one.was)}
            for one in entries(result, result.suspicious)
        ],
        "plan": None if plan is None else _plan(plan),
    }


def _defence(result: Defence) -> dict[str, Any]:
    summary = DefenceSummary.of(result)
    return {
        "schema_name": "defence",
        "schema": SCHEMA,
        "policy": result.policy,
        "verdict": summary.headline,
        "statements": [text for _, text in summary.statements],
        "strength": result.strength,
        "automatic": summary.automatic,
        "confidence": number(result.confidence),
        "allowed": number(summary.allowed) if summary.automatic else None,
        "guard": result.guard,
        "chosen": _step(result.chosen, summary.level),
        "curve": [_step(step, summary.level) for step in result.curve],
        "agreement": plain(result.agreement),
        "seconds": result.seconds,
        "provenance": safe(result.provenance),
        "layers": [_fit(layer, guard=result.guard) for layer in result.layers],
        "skipped": skipped(result.skipped),
    }


def _step(step: Step, level: float) -> dict[str, Any]:
    return plain(step) | {"disagreement": number(step.disagreement), "bound": number(step.bound(level))}


def _fit(layer: LayerFit, *, guard: bool) -> dict[str, Any]:
    return {
        "name": layer.name,
        "kind": layer.kind,
        "units": layer.units,
        "fan_in": layer.fan_in,
        "rows": layer.rows,
        "forgotten": number(layer.forgotten),
        "kept": numbers(layer.kept),
        "change": number(layer.change),
        "guarded": layer.guarded if guard else None,
        "clipped": number(layer.clipped),
    }


def _layer(layer: LayerRecord) -> dict[str, Any]:
    return {
        "name": layer.name,
        "kind": layer.kind,
        "shape": list(layer.shape),
        "groups": layer.groups,
        "units": layer.units,
        "fan_in": layer.fan_in,
        "live": layer.live,
        "rank": layer.rank,
        "ratio": number(layer.live / layer.rank) if layer.rank else None,
        "frozen": layer.frozen,
        "decay": number(layer.decay),
        "tolerance": None if layer.frozen else number(layer.tolerance),
        "altered": len(layer.altered),
        "share_altered": layer.share_altered,
        "changed": layer.changed,
        "rebuilt": layer.rebuilt,
        "unjudged": layer.unjudged,
        "suspicious": len(layer.suspicious),
        "zeros": layer.zeros,
        "reason": layer.reason,
        "seconds": layer.seconds,
        "grades": _grades(layer.grade),
        "statuses": _statuses(layer.status),
        "certificate": None if layer.certificate is None else _certificate(layer.certificate),
        "per_unit": _units(layer),
        "residuals": [
            {"from": float(EDGES[bin_]), "to": float(EDGES[bin_ + 1]), "count": int(layer.histogram[bin_])}
            for bin_ in np.flatnonzero(layer.histogram)
        ],
        "energies": numbers(layer.energies),
    }


def _certificate(found: Certificate) -> dict[str, Any]:
    """The weakest point of all certificates of a layer."""
    return {
        "units": int(found.status.size),
        "certified": int(found.certified.sum()),
        "largest_relative_gap": number(float(found.relative_gap.max(initial=0.0))),
        "largest_infeasibility": number(float(found.infeasibility.max(initial=0.0))),
        "smallest_surplus": int(found.surplus.min()) if found.surplus.size else None,
        "unique": int(found.unique.sum()),
    }


def _units(layer: LayerRecord) -> dict[str, list[Any]]:
    """One list for each fact, a place for each unit; ``null`` where a unit has no L1 fit."""
    columns: dict[str, list[Any]] = {
        "grade": [Grade(code).name.lower() for code in layer.grade.tolist()],
        "status": [None if code < 0 else Status(code).name.lower() for code in layer.status.tolist()],
        "noise_floor": [None if math.isnan(value) else number(value) for value in layer.noise_floor.tolist()],
        "error_scale": [None if math.isnan(value) else number(value) for value in layer.error_scale.tolist()],
    }
    facts = ("relative_gap", "objective", "infeasibility", "surplus", "unique", "stability")
    for fact in facts:
        places: list[Any] = [None] * layer.units
        if layer.certificate is not None:
            values = getattr(layer.certificate, fact).tolist()
            for unit, value in zip(layer.certified_units.tolist(), values, strict=True):
                places[unit] = number(value) if isinstance(value, float) else value
        columns[fact] = places
    return columns


def _plan(plan: Plan) -> dict[str, Any]:
    layers = [plain(layer) | {"ratio": number(layer.ratio)} for layer in plan.layers]
    return {"seconds": plan.seconds, "bytes": plan.bytes, "layers": layers, "skipped": skipped(plan.skipped)}


def _grades(codes: NDArray[np.int8]) -> dict[str, int]:
    return {grade.name.lower(): int((codes == grade).sum()) for grade in Grade}


def _statuses(codes: NDArray[np.int8]) -> dict[str, int]:
    named = {status.name.lower(): int((codes == status).sum()) for status in Status}
    return {**named, "no_fit": int((codes < 0).sum())}
