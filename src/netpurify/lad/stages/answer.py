"""Answers as they are gathered: for a panel, and for all columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design

_PER_COLUMN = ("coefficients", "residual", "dual", "status", "noise_floor", "missing", "stage")


@dataclass(slots=True)
class Answer:
    """Answers for some columns, one row each, and the work that they took; ``put`` changes them in place.

    Attributes:
        coefficients: [n, q]; this and the following as in ``Solution``, with one row for each column.
        residual: [n, k].
        dual: [n, k].
        status: [n].
        noise_floor: [n].
        missing: [n].
        stage: [n].
        seconds: Processor seconds in each step.
        pivots: Simplex pivots.
    """

    coefficients: NDArray[np.float64]
    residual: NDArray[np.float64]
    dual: NDArray[np.float64]
    status: NDArray[np.int8]
    noise_floor: NDArray[np.float64]
    missing: NDArray[np.int64]
    stage: NDArray[np.int8]
    seconds: dict[str, float]
    pivots: int

    @classmethod
    def empty(cls, design: Design, count: int, *, steps: tuple[str, ...]) -> "Answer":
        """Room for ``count`` columns."""
        return cls(
            coefficients=np.zeros((count, design.columns)),
            residual=np.empty((count, design.fan_in)),
            dual=np.empty((count, design.fan_in)),
            status=np.empty(count, np.int8),
            noise_floor=np.empty(count),
            missing=np.empty(count, np.int64),
            stage=np.empty(count, np.int8),
            seconds=dict.fromkeys(steps, 0.0),
            pivots=0,
        )

    def unweigh(self, weights: NDArray[np.float64], matrix: NDArray, right: NDArray) -> None:
        """Give back the residuals of the rows as they were before they were multiplied by weights [k]."""
        some = weights > 0.0
        self.residual[:, some] /= weights[some]
        self.residual[:, ~some] = np.atleast_2d(right.T)[:, ~some] - self.coefficients @ matrix[~some].T

    def put(self, chosen: slice | NDArray[np.intp], answer: "Answer") -> None:
        """Take over the columns of another answer as the ``chosen`` ones, and add its work."""
        for name in _PER_COLUMN:
            getattr(self, name)[chosen] = getattr(answer, name)
        for step, seconds in answer.seconds.items():
            self.seconds[step] += seconds
        self.pivots += answer.pivots
