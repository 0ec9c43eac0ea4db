"""One panel of columns through all stages."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.clock import Clock
from netpurify.lad.kernels.product import product
from netpurify.lad.stages.identify import Estimate, iterate, schedule
from netpurify.lad.stages.judge import OPEN, PROVEN
from netpurify.lad.stages.polish import Polish, polish, settle, suspect
from netpurify.lad.stages.simplex import walk
from netpurify.lad.status import Status
from netpurify.lad.verifier.check import check
from netpurify.lad.verifier.residuals import Candidate

_CLIP = 256.0
"""Data beyond this many times the typical size are pulled in: L1 feels their sign only, but rounding their size."""
_SAMPLE = 128
"""Rows that are enough to tell the typical size of a column."""
_ROUNDING = 32.0 * np.finfo(np.float64).eps
"""Residuals up to this share of the largest (clipped) datum are zero whatever the caller says."""
_DENSE = 1e-4
"""Dense noise up to this share of the typical datum may be taken for rounding."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answers for the columns of a panel, one row each; fields as in ``Solution``."""

    coefficients: NDArray[np.float64]
    residual: NDArray[np.float64]
    dual: NDArray[np.float64]
    status: NDArray[np.int8]
    noise_floor: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PanelAnswer:
    """Answers for the columns of a panel and how they were found; fields as in ``Solution``."""

    answer: Answer
    erased: NDArray[np.int64]
    stage: NDArray[np.int8]
    spent: dict[str, float]
    pivots: int

    def replaced(self, chosen: NDArray[np.intp], part: "PanelAnswer") -> "PanelAnswer":
        """This panel with the chosen columns answered by ``part``."""
        for name in Answer.__slots__:
            getattr(self.answer, name)[chosen] = getattr(part.answer, name)
        self.stage[chosen] = part.stage
        spent = {step: seconds + part.spent[step] for step, seconds in self.spent.items()}
        return replace(self, spent=spent, pivots=self.pivots + part.pivots)


Identify = Callable[[Polish, Design, Clock], NDArray[np.float64]]
"""Work on the columns of a panel that are not proven, in place, and return estimates of their residuals."""


def solve_panel(
    design: Design,
    data: NDArray[np.float64],
    floor: NDArray[np.float64],
    *,
    accuracy: float,
    identify: Identify | None,
    clip: bool = True,
) -> PanelAnswer:
    """Solve for the columns given as rows of ``data`` [n, k], NaN where erased.

    Args:
        design: The design.
        data: The columns.
        floor: Noise floor of each, NaN where it is to be detected.
        accuracy: Largest relative gap that counts as proven.
        identify: The stages that find and polish; ``None`` leaves everything to the simplex walk.
        clip: Whether wild entries may be pulled in at first.
    """
    clock = Clock()
    count = data.shape[0]
    start, work = _least_squares(design, data, floor, clip=clip and not design.full)
    stage = np.zeros(count, np.int8)
    clock.book("least squares")
    guess = work.data
    if identify is not None and (work.state != PROVEN).any():
        todo = work.state[:count] != PROVEN
        guess = identify(work, design, clock)
        stage[todo & (work.state[:count] == PROVEN)] = 1
    answer = _finish(design, data, start, work, accuracy)
    clock.book("prove")
    # Only the verifier's word counts: what it does not accept is walked, as is what no stage has finished.
    left = np.flatnonzero((work.state[:count] != PROVEN) | _refused(answer))
    pivots = 0
    if left.size:
        # A design that spans everything has one vertex for each column: there is nowhere to walk.
        if not (design.full and (work.state[left] == PROVEN).all()):
            stage[left] = 2
            # Ties can end a walk before the minimum; from least squares it takes another way.
            for estimate in (guess,) if guess is work.data else (guess, work.data):
                pivots += _walk(design, work, estimate, left)
                settle(work, design, left)
                clock.book("simplex")
                answer = _finish(design, data, start, work, accuracy)
                left = np.flatnonzero(_refused(answer))
                if not left.size:
                    break
        if _refused(answer).any():
            _widen(design, start, work, np.flatnonzero(_refused(answer)))
            answer = _finish(design, data, start, work, accuracy)
        clock.book("prove")
    panel = PanelAnswer(answer, erased=np.isnan(data).sum(axis=1), stage=stage, spent=clock.spent, pivots=pivots)
    refused = np.flatnonzero(_refused(answer))
    if clip and refused.size:
        # Pulling in changes the problem where the fit itself is wild; these columns are solved as they are.
        again = solve_panel(design, data[refused], floor[refused], accuracy=accuracy, identify=identify, clip=False)
        return panel.replaced(refused, again)
    for i in refused[panel.erased[refused] > 0]:
        panel = panel.replaced(np.array([i]), _solve_alone(design, data[i], floor[i : i + 1], accuracy, identify))
    return panel


def _refused(answer: Answer) -> NDArray[np.bool_]:
    """Columns that the verifier does not accept."""
    return (answer.status == Status.WITHIN_GAP) | (answer.status == Status.FAILED)


def _solve_alone(
    design: Design, column: NDArray[np.float64], floor: NDArray[np.float64], accuracy: float, identify: Identify | None
) -> PanelAnswer:
    """Solve a column whose erased rows leave a design of lower rank, on the rows that are left."""
    present = ~np.isnan(column)
    rest = Design.prepare(design.matrix[present])
    part = solve_panel(rest, column[None, present], floor, accuracy=accuracy, identify=identify and identify_compiled)
    residual, dual = np.full((1, column.size), np.nan), np.zeros((1, column.size))
    residual[0, present], dual[0, present] = part.answer.residual[0], part.answer.dual[0]
    status = part.answer.status
    if rest.rank < design.rank:
        # Some coefficients have lost all their rows: the fit may be the truth where there are rows, but not they.
        status = np.where(status == Status.RECOVERED, Status.OPTIMAL, status).astype(np.int8)
    if np.count_nonzero(present[design.live]) <= design.rank:
        status = np.where(status == Status.CLEAN, Status.RANK_FULL, status).astype(np.int8)
    answer = replace(part.answer, residual=residual, dual=dual, status=status)
    return replace(part, answer=answer, erased=np.array([np.count_nonzero(~present)]))


def identify_compiled(work: Polish, design: Design, clock: Clock) -> NDArray[np.float64]:
    """Alternate identification and polishing, on ever fewer columns.

    A column's estimate stays what it was when the column was proven, or least squares had sufficed: how long a proven
    column is carried along depends on its neighbours, on which no answer may depend.
    """
    guess = work.data.copy()
    todo = np.flatnonzero(work.state != PROVEN)
    part = work.take(todo, design.width(todo.size))
    mean = np.abs(work.data).sum(axis=1, keepdims=True) / design.live.size
    scale = np.where(mean > 0.0, mean, 1.0)
    scaled = np.zeros(part.data.shape, np.float32)
    scaled[: todo.size] = part.data[: todo.size] / scale[todo]
    estimate = Estimate.start(scaled)
    for attempt, steps in enumerate(schedule(design.live.size, design.rank)):
        carried = np.flatnonzero(part.state[: todo.size] != PROVEN)
        part.state[carried] = OPEN
        iterate(estimate, *design.single, part.erased, steps)
        clock.book("identify")
        suspect(part, design, estimate, anchored=attempt > 0)
        part.state[todo.size :] = PROVEN
        polish(part, design, anchored=attempt > 0)
        clock.book("polish")
        work.put(todo, part)
        guess[todo[carried]] = estimate.residual[carried] * scale[todo[carried]]
        open_still = np.flatnonzero(part.state[: todo.size] != PROVEN)
        width = design.width(open_still.size)
        if not open_still.size:
            break
        if 2 * width <= part.state.size:
            todo = todo[open_still]
            part = work.take(todo, width)
            estimate = estimate.take(open_still, width)
    return guess


def _least_squares(
    design: Design, data: NDArray[np.float64], floor: NDArray[np.float64], *, clip: bool
) -> tuple[NDArray[np.float64], Polish]:
    """Regress by least squares; columns without a residual are done."""
    count, rows = data.shape[0], design.live.size
    width = design.width(count)
    columns = np.zeros((width, design.basis.shape[0]))
    columns[:count, :rows] = data[:, design.live_index]
    erased = np.isnan(columns)
    columns[erased] = 0.0
    typical = _pull_in(columns, design.rows.norms, clip=clip)
    coordinates = design.coordinates(columns)
    residual = columns - design.fitted(coordinates)
    largest = np.abs(columns).max(axis=1)
    lowest = _ROUNDING * (largest if design.full else np.minimum(largest, _CLIP * typical))
    lowest[:count] = np.fmax(lowest[:count], floor)
    detectable = _DENSE * typical
    detectable[:count][~np.isnan(floor)] = 0.0
    work = Polish.start(design, residual, erased, lowest, detectable)
    clean = (np.abs(residual).max(axis=1) <= lowest) & ~erased.any(axis=1)
    work.state[clean] = PROVEN
    work.state[count:] = PROVEN
    return coordinates, work


def _widen(design: Design, start: NDArray[np.float64], work: Polish, chosen: NDArray[np.intp]) -> None:
    """Raise floors to the rounding of what is really added up in the fit: the design's entries times coefficients."""
    coefficients = _to_coefficients(design, start + work.coordinates)
    sizes = product(np.abs(coefficients), np.abs(design.independent)).max(axis=1)
    work.floor[chosen] = np.maximum(work.floor[chosen], _ROUNDING * sizes[chosen])


def _walk(design: Design, work: Polish, guess: NDArray[np.float64], left: NDArray[np.intp]) -> int:
    """Finish the columns that are left by pivoting; returns the number of pivots."""
    pivots = 0
    order = np.argsort(np.abs(guess[left, : design.live.size]), axis=1, kind="stable")
    for i, rows in zip(left, order, strict=True):
        pivots += int(
            walk(
                design.compact, work.data[i], guess[i], rows, work.erased[i], 20 * design.rank + 1000,
                work.coordinates[i], work.dual[i],
            )
        )  # fmt: skip
    return pivots


def _finish(
    design: Design, data: NDArray[np.float64], start: NDArray[np.float64], work: Polish, accuracy: float
) -> Answer:
    """From coordinates in the basis to coefficients, residuals, duals, status and floors, proven on the data given."""
    (count, rows), live = data.shape, design.live.size
    # Padding counts as erased.
    padded_data = np.full((start.shape[0], design.independent.shape[1]), np.nan)
    padded_data[:count, :rows] = data
    dual = np.zeros_like(padded_data)
    if live < rows:
        dual = np.sign(np.nan_to_num(padded_data))  # right for dead rows: their residual is the datum itself
    dual[:, design.live_index] = work.dual[:, :live]
    independent = _to_coefficients(design, start + work.coordinates)
    fitted = product(independent, design.independent)
    candidate = Candidate(padded_data, fitted, dual, work.floor)
    checked = check(design, candidate, accuracy=accuracy, redundant=work.vouched)
    residual = np.where(np.abs(checked.residual) <= work.floor[:, None], 0.0, checked.residual)
    coefficients = np.zeros((count, design.columns))
    coefficients[:, design.pivots] = independent[:count, : design.rank]
    return Answer(
        coefficients,
        residual[:count, :rows],
        checked.dual[:count, :rows],
        checked.status[:count],
        work.floor[:count].copy(),
    )


def _to_coefficients(design: Design, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """From coordinates in the basis to coefficients of the independent columns."""
    coefficients = product(coordinates, design.to_coefficients)
    if design.condition > 1e6:
        # The inverse of an ill-conditioned triangle loses digits that one step of refinement brings back.
        missing = np.zeros((coordinates.shape[0], design.basis.shape[0]))
        missing[:, : design.live.size] = product(coefficients, design.independent)[:, design.live_index]
        correction = design.coordinates(design.fitted(coordinates) - missing)
        coefficients += product(correction, design.to_coefficients)
    return coefficients


def _pull_in(columns: NDArray[np.float64], norms: NDArray[np.float64], *, clip: bool) -> NDArray[np.float64]:
    """Clip wild entries in place, in proportion to their row's size; returns the usual size of each column."""
    rows = norms.size
    if not rows:
        return np.zeros(columns.shape[0])
    jump = int(0.6180339887498949 * rows) | 1  # visits the rows irregularly, so that no pattern of theirs can fool it
    visited = np.arange(rows) * jump % rows
    sizes = np.abs(columns[:, visited]) / norms[visited]
    counted = sizes > 0.0
    counted &= np.cumsum(counted, axis=1) <= _SAMPLE
    sizes[~counted] = np.inf
    middle = counted.sum(axis=1)[:, None] // 2
    typical = np.take_along_axis(np.sort(sizes, axis=1), middle, axis=1)
    typical[~counted.any(axis=1)] = 0.0
    if clip:
        bound = _CLIP * typical * norms
        np.clip(columns[:, :rows], -bound, bound, out=columns[:, :rows])
    return typical[:, 0] * float(np.median(norms))
