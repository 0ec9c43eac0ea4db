"""A purification as JSON, for programs: everything that is known but the weights, under a versioned schema.

``null`` means that there is nothing to say; numbers that JSON does not have are strings, see ``kit.json_values``.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netpurify.lad import Certificate, Status
from netpurify.network import EDGES, Grade, LayerRecord, Purification
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import number, to_json
from netpurify.report.purification.advice import advise_layer
from netpurify.report.purification.counts import Counts
from netpurify.report.purification.entries import entries
from netpurify.report.purification.summary import summarise_purification
from netpurify.report.records.plan import plan_content
from netpurify.report.records.schemas import head
from netpurify.report.records.tensors import comparison_record


def purification_record(result: Purification, context: Context) -> dict[str, Any]:
    """Everything about a purification but the weights."""
    counts, summary = Counts.of(result), summarise_purification(result)
    return {
        **head("purification"),
        "policy": summary.policy,
        "verdict": summary.headline,
        "statements": summary.texts,
        "advice": to_json(summary.advice),
        "exit_code": summary.exit_code,
        "weights": counts.weights,
        "changed": counts.changed,
        "rebuilt": counts.rebuilt,
        "unjudged": counts.unjudged,
        "grades": _grades(np.concatenate([np.zeros(0, np.int8), *(layer.grade for layer in result.layers)])),
        "statuses": _statuses(np.concatenate([np.zeros(0, np.int8), *(layer.status for layer in result.layers)])),
        "agreement": to_json(result.agreement),
        "run": {"seconds": result.seconds, "peak_bytes": result.peak_bytes},
        "provenance": to_json(result.provenance),
        "layers": [_layer(layer) for layer in result.layers],
        "compared": [comparison_record(one) for one in result.compared],
        "coverage": to_json(result.coverage),
        "skipped": to_json(result.skipped),
        "altered": [
            {
                "tensor": entry.tensor,
                "index": list(entry.index),
                "was": number(entry.was),
                "now": number(entry.now),
                "grade": entry.grade.name.lower(),
            }
            for entry in entries(result, result.altered)
        ],
        "suspicious": [
            {"tensor": entry.tensor, "index": list(entry.index), "value": number(entry.was)}
            for entry in entries(result, result.suspicious)
        ],
        "plan": None if context.plan is None else plan_content(context.plan),
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
        "low_rank": layer.low_rank,
        "singular_values": to_json(layer.singular_values.tolist()),
        "tolerance": to_json(layer.tolerance),
        "altered": len(layer.altered),
        "share_altered": layer.share_altered,
        "changed": layer.changed,
        "rebuilt": layer.rebuilt,
        "unjudged": layer.unjudged,
        "suspicious": len(layer.suspicious),
        "zeros": layer.zeros,
        "reason": layer.reason,
        "advice": to_json(advise_layer(layer)),
        "run": {"seconds": layer.seconds},
        "grades": _grades(layer.grade),
        "statuses": _statuses(layer.status),
        "certificate": None if layer.certificate is None else _certificate(layer.certificate),
        "per_unit": _units(layer),
        "residuals": [
            {"from": float(EDGES[bin_]), "to": float(EDGES[bin_ + 1]), "count": int(layer.histogram[bin_])}
            for bin_ in np.flatnonzero(layer.histogram)
        ],
        "energies": to_json(layer.energies.tolist()),
    }


def _certificate(certificate: Certificate) -> dict[str, Any]:
    """The weakest point of all certificates of a layer."""
    return {
        "units": int(certificate.status.size),
        "certified": int(certificate.certified.sum()),
        "largest_relative_gap": number(float(certificate.relative_gap.max(initial=0.0))),
        "largest_infeasibility": number(float(certificate.infeasibility.max(initial=0.0))),
        "smallest_surplus": int(certificate.surplus.min()) if certificate.surplus.size else None,
        "unique": int(certificate.unique.sum()),
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


def _grades(codes: NDArray[np.int8]) -> dict[str, int]:
    return {grade.name.lower(): int((codes == grade).sum()) for grade in Grade}


def _statuses(codes: NDArray[np.int8]) -> dict[str, int]:
    named = {status.name.lower(): int((codes == status).sum()) for status in Status}
    return {**named, "no_fit": int((codes < 0).sum())}
