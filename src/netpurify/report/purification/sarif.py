"""A purification as SARIF 2.1.0, for code scanning and pipelines: one result for each finding in a tensor."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.lad import Status
from netpurify.network import Altered, Grade, LayerRecord, Purification
from netpurify.report.kit.context import Context
from netpurify.report.kit.json_values import to_json
from netpurify.report.kit.numbers import count, exact, number, plural
from netpurify.report.kit.sarif import Alert, AlertRule, digest_entries, named_file, sarif_log, unexamined
from netpurify.report.purification.advice import advise_layer, status_label
from netpurify.report.purification.entries import change
from netpurify.report.purification.summary import summarise_purification

_HELP = "What the status of an L1 fit says about a unit that was not recovered, and what to do. " + " ".join(
    f"{status_label(status).capitalize()}: {status.meaning}. Remedy: {status.remedy}."
    for status in Status
    if status not in (Status.CLEAN, Status.RECOVERED)
)
RULES = {
    "altered-weights": AlertRule(
        "error", "Weights were altered after training; they are proven and replaced, exact to rounding."
    ),
    "restored-weights": AlertRule(
        "error", "Weights that were never trained differ from the initial ones; they were set back to the initial bits."
    ),
    "impossible-weights": AlertRule(
        "error",
        "A trained tensor has entries that are NaN, infinite or absurdly large: no training leaves them so.",
        "In a tensor that is not part of a layer, recover gives them their initial values, which are about right.",
    ),
    "outlying-weights": AlertRule(
        "warning",
        "Entries of a trained tensor changed far more than all others of this tensor.",
        "They were left as they are. Look at them, and name the tensor with --frozen if it was never trained.",
    ),
    "low-rank-repair": AlertRule(
        "warning", "Weights differ from a low-rank change that was estimated from the layer itself."
    ),
    "approximate-repair": AlertRule(
        "warning", "Weights stand far out of the fit and were replaced by it, without a proof.", _HELP
    ),
    "unit-left-alone": AlertRule("warning", "Units could not be judged; nothing was changed in them.", _HELP),
    "weights-unjudged": AlertRule(
        "warning", "Weights differ from the fit in a pattern that training may have made, and were left."
    ),
    "weights-suspicious": AlertRule(
        "note", "Weights stand far out of a fit that is not exact; training may have made them."
    ),
    "layer-projected": AlertRule(
        "note", "Every weight took the fitted value; which ones had been altered is not said."
    ),
}
"""Every kind of finding of a purification, by its name."""
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
_OF_OTHERS = {Grade.RESTORED: "restored-weights", Grade.APPROXIMATE: "impossible-weights"}
_HOW_OTHERS = _HOW | {Grade.APPROXIMATE: "replaced by the initial values: no training leaves such values"}
_OUTLYING = "changed far more than all others of this tensor, and left unchanged"


def purification_sarif(result: Purification, context: Context) -> dict[str, Any]:
    """A SARIF log with one run.

    Raises:
        InputError: The context does not name the file of the contaminated weights.
    """
    summary = summarise_purification(result)
    properties = {
        "policy": summary.policy,
        "verdict": summary.headline,
        "statements": summary.texts,
        "contaminated": result.provenance["model"],
        "initial": result.provenance["initial"],
        "data": result.provenance["data"],
        "coverage": to_json(result.coverage),
    }
    return sarif_log(
        purification_alerts(result),
        rules=RULES,
        file=named_file(context, "contaminated"),
        unexamined=unexamined(result.skipped),
        properties=properties,
    )


def purification_alerts(result: Purification) -> Iterator[Alert]:
    """What was found: layer by layer, then in tensors that are not part of a layer, then what stands far out."""
    yield from layer_alerts(result)
    for grade, rule in _OF_OTHERS.items():
        yield from _by_tensor(result.restored, grade, rule, _HOW_OTHERS[grade], result)
    if len(result.outlying) and result.initial is not None:
        table = _beside_initial(result.outlying, result.initial)
        yield from _by_tensor(table, Grade.LEFT_ALONE, "outlying-weights", _OUTLYING, result)


def _beside_initial(table: Altered, initial: Mapping[str, Tensor]) -> Altered:
    """The table with initial values in the place of the present ones."""
    now = table.now.copy()
    for position, name in enumerate(table.names):
        chosen = table.tensor == position
        index = torch.from_numpy(table.index[chosen])
        now[chosen] = initial[name].detach().cpu().reshape(-1)[index].double().numpy()
    return replace(table, now=now)


def layer_alerts(result: Purification) -> Iterator[Alert]:
    """What the fits have shown, layer by layer."""
    for layer in result.layers:
        yield from _findings(layer, result)


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
    for grade, rule in _OF_GRADE.items():
        yield from _by_tensor(layer.altered, grade, rule, _HOW[grade], result)


def _by_tensor(table: Altered, grade: Grade, rule: str, how: str, result: Purification) -> Iterator[Alert]:
    """The entries of a grade, one alert for each tensor."""
    for position, tensor in enumerate(table.names):
        chosen = np.flatnonzero((table.tensor == position) & (table.grade == grade))
        chosen = chosen[np.argsort(table.index[chosen], kind="stable")]
        if chosen.size:
            message = _message(table, chosen, tuple(result.contaminated[tensor].shape), how)
            yield Alert(rule, tensor, message, digest_entries(table.index[chosen], table.was[chosen]))


def _message(table: Altered, chosen: NDArray[np.intp], shape: tuple[int, ...], how: str) -> str:
    was, now = table.was[chosen], table.now[chosen]
    sizes = change(was, now)
    largest = int(sizes.argmax())
    index = ", ".join(str(int(axis)) for axis in np.unravel_index(table.index[chosen[largest]], shape))
    at = f" at index {index}" if index else ""
    where = f"largest change {number(float(sizes[largest]))}{at}"
    first, second = ("is", "initial") if how == _OUTLYING else ("was", "now")
    values = f"{first} {exact(float(was[largest]))}, {second} {exact(float(now[largest]))}"
    return f"{count(chosen.size)} of {plural(math.prod(shape), 'weight')} {how}; {where} ({values})"
