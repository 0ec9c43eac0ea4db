"""Why units were not recovered, by the status of their L1 fits, and what a user can do about it."""

import numpy as np

from netpurify.lad import Status
from netpurify.network import Grade, LayerRecord, Purification
from netpurify.report.kit.names import module_name
from netpurify.report.kit.summary import Advice

_NO_FIT = "no fit"
_NO_FIT_REMEDY = "use clean inputs like those of training; fewer of them span fewer directions and leave more evidence"
_WEAK = (
    "the L1 fit is a proven minimum, but too few weights beyond the rank agree on it to tell altered weights from "
    "trained ones"
)
_WEAK_REMEDY = "use fewer clean inputs, so that they span fewer directions, or inputs closer to those of training"


def status_label(code: int) -> str:
    """The status of an L1 fit in words; a fit without residuals says nothing about the network as a whole."""
    if code < 0:
        return _NO_FIT
    return "no residual" if code == Status.CLEAN else Status(code).name.lower().replace("_", " ")


def advise_layer(layer: LayerRecord) -> list[Advice]:
    """Advice about the units of a layer that were not recovered, one entry for each status.

    Projected units were not meant to be recovered; among them, only those without a proven minimum are listed.
    """
    unproven = ~np.isin(layer.status, [status for status in Status if status.certified])
    concerned = np.isin(layer.grade, (Grade.APPROXIMATE, Grade.LEFT_ALONE))
    concerned |= (layer.grade == Grade.PROJECTED) & unproven
    codes, counts = np.unique(layer.status[concerned], return_counts=True)
    return [_advice(layer, code, units) for code, units in zip(codes.tolist(), counts.tolist(), strict=True)]


def advise(result: Purification) -> tuple[Advice, ...]:
    """Advice about all units that were not recovered; layers with the same advice share an entry."""
    joined: dict[tuple[str, str], Advice] = {}
    for layer in result.layers:
        for advice in advise_layer(layer):
            key = advice.status, advice.meaning
            joined[key] = joined[key].join(advice) if key in joined else advice
    return tuple(joined.values())


def _advice(layer: LayerRecord, code: int, units: int) -> Advice:
    layers = (module_name(layer.name),)
    if code < 0 and layer.rank >= layer.live:
        code = Status.RANK_FULL  # the solver is not asked where the clean inputs span every direction
    if code < 0:
        return Advice(_NO_FIT, units, layer.reason or "no L1 fit was made", _NO_FIT_REMEDY, layers)
    status = Status(code)
    if status in (Status.CLEAN, Status.RECOVERED):
        # A network needs more evidence than a regression by itself: the remedy "use the fit" would be wrong here.
        return Advice(status_label(code), units, _WEAK, _WEAK_REMEDY, layers)
    return Advice(status_label(code), units, status.meaning, status.remedy, layers)
