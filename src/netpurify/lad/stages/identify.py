"""Second stage: alternate identification (``admm``) and polishing (``polish``), on ever fewer columns."""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.stages.admm import Estimate, iterate, schedule
from netpurify.lad.stages.columns import OPEN, SOLVED
from netpurify.lad.stages.panel import Panel
from netpurify.lad.stages.polish import leave_out_suspects, polish


def run(panel: Panel, unsolved: NDArray[np.intp]) -> NDArray[np.intp]:
    """Solve what can be recovered; returns the columns that were solved.

    A column's estimate stays as it was when the column was solved: how long a solved column is carried along depends on
    its neighbours, on which no answer may depend.
    """
    design, columns = panel.design, panel.columns
    panel.estimate = columns.data.copy()
    left = unsolved
    everything = left.size == panel.stage.size
    current = columns if everything else columns.take(left, design.width(left.size))
    mean = np.abs(columns.data).sum(axis=1, keepdims=True) / design.live.size
    scale = np.where(mean > 0.0, mean, 1.0)
    scaled = np.zeros(current.data.shape, np.float32)
    scaled[: left.size] = current.data[: left.size] / scale[left]
    estimate = Estimate.start(scaled, current.missing, panel.tilt)
    for attempt, steps in enumerate(schedule(design.live.size, design.rank)):
        open_before = np.flatnonzero(current.state[: left.size] != SOLVED)
        current.state[open_before], current.state[left.size :] = OPEN, SOLVED
        iterate(estimate, design, missing=current.missing, steps=steps, tilt=panel.tilt)
        with panel.clock.step("polish"):
            leave_out_suspects(current, design, estimate=estimate, with_guess=attempt > 0)
            polish(current, design, with_guess=attempt > 0)
        if current is not columns:
            columns.put(left, current)
        panel.estimate[left[open_before]] = estimate.residual[open_before] * scale[left[open_before]]
        still_open = np.flatnonzero(current.state[: left.size] != SOLVED)
        width = design.width(still_open.size)
        if not still_open.size:
            break
        if 2 * width <= current.state.size:
            left = left[still_open]
            current = columns.take(left, width)
            estimate = estimate.take(still_open, width)
    return unsolved[columns.state[unsolved] == SOLVED]
