"""The stages in their order, and a panel of columns through all of them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.stages import identify, least_squares, simplex
from netpurify.lad.stages.answer import Answer
from netpurify.lad.stages.panel import PROVE, Panel, Stage
from netpurify.lad.status import Status

STAGES = (
    Stage("least squares", least_squares.run),
    Stage("identify", identify.run, steps=("identify", "polish")),
    Stage("simplex", simplex.run, checked_first=True),
)
"""All stages, in the order in which they run. ``Solution.stage`` holds positions in this list.

A new stage is a module with a function ``run`` and an entry here.
"""
STEPS = (*(step for stage in STAGES for step in stage.steps or (stage.name,)), PROVE)
"""Names under which time is counted."""
_POSITION = {stage.name: number for number, stage in enumerate(STAGES)}


def solve_panel(
    design: Design,
    data: NDArray[np.float64],
    *,
    floor: NDArray[np.float64],
    accuracy: float,
    stages: tuple[Stage, ...],
    tilt: float = 0.0,
    clip: bool = True,
) -> Answer:
    """Solve for the columns given as rows of ``data`` [n, k], NaN where missing.

    Args:
        design: The design.
        data: The columns.
        floor: Noise floor of each, NaN where it is to be detected.
        accuracy: Largest relative gap that counts as proven.
        stages: ``STAGES``, or some of them, possibly with another ``run``.
        tilt: 2 quantile - 1.
        clip: Whether wild entries may be pulled in at first.
    """
    panel = Panel.start(
        design, data, floor=floor, accuracy=accuracy, tilt=tilt, clip=clip and not design.full, steps=STEPS
    )
    for stage in stages:
        if stage.checked_first:
            panel.prove(panel.solved())
        unsolved = panel.unsolved()
        if unsolved.size:
            with panel.clock.step((*stage.steps, stage.name)[0]):
                panel.stage[stage.run(panel, unsolved)] = _POSITION[stage.name]
    if panel.refused().size:
        panel.widen_floors(panel.refused())
        panel.prove(panel.refused())
    answer, refused = panel.answer(), panel.refused()
    if clip and refused.size:
        # Pulling in changes the problem where the fit itself is wild; these columns are solved as they are.
        again = solve_panel(
            design, data[refused], floor=floor[refused], accuracy=accuracy, tilt=tilt, stages=stages, clip=False
        )
        answer.put(refused, again)
        return answer
    for i in refused[answer.missing[refused] > 0]:
        one = slice(i, i + 1)
        answer.put(one, _solve_alone(design, data[i], floor=floor[one], accuracy=accuracy, tilt=tilt, stages=stages))
    return answer


def _solve_alone(
    design: Design,
    column: NDArray[np.float64],
    *,
    floor: NDArray[np.float64],
    accuracy: float,
    tilt: float,
    stages: tuple[Stage, ...],
) -> Answer:
    """Solve a column whose missing entries leave a design of lower rank, on the rows that are left."""
    present = ~np.isnan(column)
    rest = Design.prepare(design.matrix[present])
    # A stage with another ``run`` may have been prepared for the whole design.
    own = tuple(STAGES[_POSITION[stage.name]] for stage in stages)
    answer = solve_panel(rest, column[None, present], floor=floor, accuracy=accuracy, tilt=tilt, stages=own)
    residual, dual = np.full((1, column.size), np.nan), np.zeros((1, column.size))
    residual[0, present], dual[0, present] = answer.residual[0], answer.dual[0]
    status = answer.status
    if rest.rank < design.rank:
        # Some coefficients have lost all their rows: the fit may be right where there are rows, but these are unknown.
        status = np.where(status == Status.RECOVERED, Status.OPTIMAL, status).astype(np.int8)
    if np.count_nonzero(present[design.live]) <= design.rank:
        status = np.where(status == Status.CLEAN, Status.RANK_FULL, status).astype(np.int8)
    missing = np.array([np.count_nonzero(~present)])
    return replace(answer, residual=residual, dual=dual, status=status, missing=missing)
