"""A panel of columns on its way through the stages, and what a stage is."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.clock import Clock
from netpurify.lad.kernels.product import product
from netpurify.lad.stages.answer import Answer
from netpurify.lad.stages.columns import SOLVED, Columns
from netpurify.lad.status import Status
from netpurify.lad.verifier.check import Checked, check
from netpurify.lad.verifier.residuals import Candidate

PROVE = "prove"
"""The step in which the time of the verifier's check is counted."""
ROUNDING = 32.0 * np.finfo(np.float64).eps
"""Residuals up to this share of the largest number that was added or subtracted count as zero in any case."""


@dataclass(slots=True)
class Panel:
    """Up to a few hundred columns that are solved together. Stages change ``columns`` and ``estimate``.

    Attributes:
        design: The design.
        given: Right-hand sides, one per row, [n, k]; NaN where missing.
        floor: Noise floor that was asked for, [n]; NaN where it is to be detected.
        accuracy: Largest relative gap that counts as proven.
        tilt: 2 quantile - 1: the loss of a residual r is |r| + tilt r. Stages keep the dual y of |r|, which lies in
            [-1, 1]; that of the loss is y + tilt.
        clip: Whether wild entries may be pulled in at first.
        clock: Where the time goes.
        columns: The columns as the stages see them; wider than n by idle ones.
        origin: The least-squares fit as coefficients of the basis, to which those of ``columns`` are added.
        estimate: Estimated residuals, from which the simplex walk chooses its first vertex.
        stage: Position in ``STAGES`` of the stage that finished each column, [n].
        pivots: Simplex pivots made.
    """

    design: Design
    given: NDArray[np.float64]
    floor: NDArray[np.float64]
    accuracy: float
    tilt: float
    clip: bool
    clock: Clock
    columns: Columns
    origin: NDArray[np.float64]
    estimate: NDArray[np.float64]
    stage: NDArray[np.int8]
    pivots: int = 0
    _coefficients: NDArray[np.float64] = field(init=False)
    _checked: Checked | None = field(init=False, default=None)

    @classmethod
    def start(
        cls,
        design: Design,
        given: NDArray[np.float64],
        *,
        floor: NDArray[np.float64],
        accuracy: float,
        tilt: float,
        clip: bool,
        steps: tuple[str, ...],
    ) -> "Panel":
        """Load the columns; nothing is fitted yet."""
        clock, columns = Clock(steps), Columns.load(design, given, tilt)
        origin, stage = np.zeros_like(columns.coordinates), np.zeros(given.shape[0], np.int8)
        return cls(design, given, floor, accuracy, tilt, clip, clock, columns, origin, columns.data, stage)

    def solved(self) -> NDArray[np.intp]:
        """Columns that some stage has solved."""
        return np.flatnonzero(self.columns.state[: self.stage.size] == SOLVED)

    def refused(self) -> NDArray[np.intp]:
        """Columns that were not checked yet, or that their last check did not accept; none before the first check."""
        if self._checked is None:
            return np.zeros(0, np.intp)
        return np.flatnonzero(np.isin(self._checked.status, (Status.WITHIN_GAP, Status.FAILED)))

    def unsolved(self) -> NDArray[np.intp]:
        """Columns that no stage has solved, or that the last check did not accept."""
        return np.union1d(np.flatnonzero(self.columns.state[: self.stage.size] != SOLVED), self.refused())

    def prove(self, chosen: NDArray[np.intp]) -> None:
        """Check the ``chosen`` columns as they are now with the verifier, against the data that were given."""
        if not chosen.size:
            return
        with self.clock.step(PROVE):
            design, columns, rows = self.design, self.columns, self.given.shape[1]
            # Padding counts as missing.
            data = np.full((chosen.size, design.independent.shape[1]), np.nan)
            data[:, :rows] = self.given[chosen]
            # On rows of zeros the residual is the datum itself, and the dual is its sign.
            dual = np.sign(np.nan_to_num(data)) if design.live.size < rows else np.zeros_like(data)
            dual[:, design.live_index] = columns.dual[chosen, : design.live.size]
            dual += self.tilt
            coefficients = design.coefficients(self.origin[chosen] + columns.coordinates[chosen])
            fitted = product(coefficients, design.independent)
            candidate = Candidate(data, fitted, dual, columns.noise_floor[chosen], self.tilt)
            checked = check(design, candidate, accuracy=self.accuracy, redundant=columns.redundant[chosen])
            if chosen.size == self.stage.size:
                self._coefficients, self._checked = coefficients, checked
                return
            if self._checked is None:
                self._coefficients = np.zeros((self.stage.size, coefficients.shape[1]))
                self._checked = Checked.nothing(self.stage.size, data.shape[1])
            self._coefficients[chosen] = coefficients
            self._checked.put(chosen, checked)

    def widen_floors(self, chosen: NDArray[np.intp]) -> None:
        """Raise noise floors to the rounding of the numbers that the fit adds up: design entries times coefficients."""
        sizes = product(np.abs(self._coefficients[chosen]), np.abs(self.design.independent)).max(axis=1)
        floor = self.columns.noise_floor
        floor[chosen] = np.maximum(floor[chosen], ROUNDING * sizes)

    def answer(self) -> Answer:
        """What the last check has seen, residuals up to the noise floor set to zero."""
        if self._checked is None:
            raise RuntimeError("a panel has an answer only after prove() was called")
        (count, rows), design, checked = self.given.shape, self.design, self._checked
        floor = self.columns.noise_floor[:count].copy()
        residual = checked.residual[:, :rows]
        coefficients = np.zeros((count, design.columns))
        coefficients[:, design.pivots] = self._coefficients[:, : design.rank]
        return Answer(
            coefficients=coefficients,
            residual=np.where(np.abs(residual) <= floor[:, None], 0.0, residual),
            dual=checked.dual[:, :rows],
            status=checked.status,
            noise_floor=floor,
            missing=np.isnan(self.given).sum(axis=1),
            stage=self.stage,
            seconds=self.clock.seconds,
            pivots=self.pivots,
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the solver.

    Attributes:
        name: Under this name ``Statistics.finished`` counts the columns that the stage finished.
        run: Called with a panel and the numbers of its unsolved columns, if there are any; works in place and returns
            the numbers of the columns that count as finished by this stage.
        steps: Names under which the time is counted; the first is that of ``run`` itself. None: ``name``.
        checked_first: Whether the verifier checks the solved columns before the stage, which also gets those refused.
    """

    name: str
    run: Callable[[Panel, NDArray[np.intp]], NDArray[np.intp]]
    steps: tuple[str, ...] = ()
    checked_first: bool = False
