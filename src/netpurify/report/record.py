"""A purification as JSON, for programs: everything that is known, under a versioned schema.

JSON has no NaN and no infinities: wherever a number may be one, it is the string "nan", "inf" or "-inf". ``null`` means
that there is nothing to say. The schema itself is ``purification.schema.json`` beside this file.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import fields
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netpurify.lad import Certificate, Status
from netpurify.network import Grade, LayerRecord, Plan, Purification, Skipped
from netpurify.network.records import EDGES
from netpurify.report.entries import entries
from netpurify.report.summary import Summary

SCHEMA = 1
"""Raised when a field goes or changes its meaning; new fields alone do not raise it."""


def record(result: Purification, *, plan: Plan | None = None) -> dict[str, Any]:
    """Everything about a purification but the weights that were kept.

    Args:
        result: What ``purify`` gave.
        plan: What ``check`` had said of the same network, if it was asked.

    Returns:
        Numbers, strings, lists and dictionaries, which ``json.dumps(..., allow_nan=False)`` takes.
    """
    summary = Summary.of(result)
    return {
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
        "agreement": _plain(result.agreement),
        "seconds": result.seconds,
        "peak_bytes": result.peak_bytes,
        "provenance": _safe(result.provenance),
        "layers": [_layer(layer) for layer in result.layers],
        "skipped": _skipped(result.skipped),
        "altered": [
            {
                "tensor": one.tensor,
                "index": list(one.index),
                "was": _number(one.was),
                "now": _number(one.now),
                "grade": one.grade.name.lower(),
            }
            for one in entries(result)
        ],
        "plan": None if plan is None else _plan(plan),
    }


def schema() -> dict[str, Any]:
    """The JSON Schema that every ``record`` fits."""
    return json.loads(resources.files("netpurify.report").joinpath("purification.schema.json").read_text("utf-8"))


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
        "ratio": _number(layer.live / layer.rank) if layer.rank else None,
        "frozen": layer.frozen,
        "decay": _number(layer.decay),
        "tolerance": None if layer.frozen else _number(layer.tolerance),
        "altered": len(layer.altered),
        "share_altered": layer.share_altered,
        "changed": layer.changed,
        "rebuilt": layer.rebuilt,
        "unjudged": layer.unjudged,
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
        "energies": _numbers(layer.energies),
    }


def _certificate(found: Certificate) -> dict[str, Any]:
    """The weakest point of all certificates of a layer."""
    return {
        "units": int(found.status.size),
        "certified": int(found.certified.sum()),
        "largest_relative_gap": _number(float(found.relative_gap.max(initial=0.0))),
        "largest_infeasibility": _number(float(found.infeasibility.max(initial=0.0))),
        "smallest_surplus": int(found.surplus.min()) if found.surplus.size else None,
        "unique": int(found.unique.sum()),
    }


def _units(layer: LayerRecord) -> dict[str, list[Any]]:
    """One list for each fact, a place for each unit; ``null`` where a unit has no L1 fit."""
    columns: dict[str, list[Any]] = {
        "grade": [Grade(code).name.lower() for code in layer.grade.tolist()],
        "status": [None if code < 0 else Status(code).name.lower() for code in layer.status.tolist()],
        "noise_floor": [None if math.isnan(value) else _number(value) for value in layer.noise_floor.tolist()],
        "error_scale": [None if math.isnan(value) else _number(value) for value in layer.error_scale.tolist()],
    }
    facts = ("relative_gap", "objective", "infeasibility", "surplus", "unique", "stability")
    for fact in facts:
        places: list[Any] = [None] * layer.units
        if layer.certificate is not None:
            values = getattr(layer.certificate, fact).tolist()
            for unit, value in zip(layer.certified_units.tolist(), values, strict=True):
                places[unit] = _number(value) if isinstance(value, float) else value
        columns[fact] = places
    return columns


def _plan(plan: Plan) -> dict[str, Any]:
    layers = [_plain(layer) | {"ratio": _number(layer.ratio)} for layer in plan.layers]
    return {"seconds": plan.seconds, "bytes": plan.bytes, "layers": layers, "skipped": _skipped(plan.skipped)}


def _skipped(skipped: Iterable[Skipped]) -> list[dict[str, str]]:
    return [{"name": one.name, "kind": one.kind, "reason": one.reason} for one in skipped]


def _grades(codes: NDArray[np.int8]) -> dict[str, int]:
    return {grade.name.lower(): int((codes == grade).sum()) for grade in Grade}


def _statuses(codes: NDArray[np.int8]) -> dict[str, int]:
    named = {status.name.lower(): int((codes == status).sum()) for status in Status}
    return {**named, "no_fit": int((codes < 0).sum())}


def _plain(one: Any) -> dict[str, Any]:
    """A flat dataclass as a dictionary."""
    return {field.name: _safe(getattr(one, field.name)) for field in fields(one)}


def _safe(value: Any) -> Any:
    """The same with numbers that JSON has, however deep."""
    if isinstance(value, dict):
        return {str(name): _safe(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(part) for part in value]
    return _number(value) if isinstance(value, float) else value


def _numbers(values: NDArray[np.float64]) -> list[float | str]:
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0.0 else "-inf"
