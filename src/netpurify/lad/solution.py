"""The answer of the solver."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.loss import Loss
from netpurify.lad.status import Status, certified
from netpurify.lad.verifier.certificate import Claim


@dataclass(frozen=True, slots=True)
class Statistics:
    """Where the work went.

    Attributes:
        finished: Columns finished by each stage.
        seconds: Processor seconds spent in each step, summed over threads.
        pivots: Simplex pivots, all columns together.
    """

    finished: dict[str, int]
    seconds: dict[str, float]
    pivots: int


@dataclass(frozen=True, slots=True, repr=False)
class Solution:
    """Minimisers of |B - A U|_1, or of another loss, column by column, with what is needed to prove them.

    Arrays are of the caller's kind (numpy, or torch on the caller's device) and always float64: rounded to less, an
    answer would no longer satisfy its own certificate. For a right-hand side [k] the last axis is absent.

    Attributes:
        coefficients: U, [q, p]; zero for the columns of A that depend on others.
        residual: B - A U, [k, p]; exactly zero where it is at most the column's noise floor, NaN where B is missing.
        dual: Y, [k, p], with A'Y = 0, |Y| <= 1 and Y = sign(residual) off zero. For a quantile tau Y lies between
            -2 (1 - tau) and 2 tau and takes these values off zero; with weights A'(weights x Y) = 0.
        status: ``Status`` codes, [p], always numpy.
        noise_floor: Largest residual that was called zero, [p], always numpy.
        missing: How many entries of the column were missing, [p], always numpy.
        stage: Number of the stage that finished the column, in the order of ``statistics.finished``, [p], always numpy.
        rank: Rank of the design.
        loss: The quantile and the weights.
        statistics: Where the work went.
    """

    coefficients: ArrayLike
    residual: ArrayLike
    dual: ArrayLike
    status: NDArray[np.int8]
    noise_floor: NDArray[np.float64]
    missing: NDArray[np.int64]
    stage: NDArray[np.int8]
    rank: int
    loss: Loss
    statistics: Statistics

    def __repr__(self) -> str:
        found = [f"{self.count(status)} {status.name}" for status in Status if self.count(status)]
        return f"Solution(columns={np.size(self.status)}, rank={self.rank}: {', '.join(found) or 'none'})"

    @property
    def claim(self) -> Claim:
        """What ``verify`` is to check."""
        return Claim(self.coefficients, self.dual, self.noise_floor)

    @property
    def objective(self) -> NDArray[np.float64]:
        """What was minimised, [p]: |residual|_1, or the sum of other losses; always numpy."""
        return self.loss.of(to_numpy(self.residual, "residual"))

    @property
    def outcomes(self) -> NDArray[np.str_]:
        """The status of each column by its name, [p], such as ``"RECOVERED"``."""
        return np.array([status.name for status in Status])[self.status]

    def count(self, status: Status) -> int:
        """Number of columns with this status."""
        return int(np.count_nonzero(self.status == status))

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Which columns are proven minima, [p]."""
        return certified(self.status)
