"""The columns of a panel, as identification, polishing and the simplex walk change them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design

ACTIVE, SOLVED, OPEN = 0, 1, 2
"""State of a column: being worked on; fitted with a dual that proves it; or left to the next attempt or stage."""


@dataclass(slots=True)
class Columns:
    """What the stages know about the columns of a panel. They change the arrays in place.

    Arrays are [panel, rows] unless said otherwise; S are the rows that are left out of a column's fit, F those kept.

    Attributes:
        data: Right-hand sides; after least squares their residuals, which are orthogonal to the basis.
        missing: Which entries are missing.
        left_out: The set S; missing entries always belong to it.
        dual_guess: An estimate of the dual from identification; 0 where there is none.
        dual_target: Values that the dual must take on S; on F, the values from which it is to differ least.
        residual: Residuals of the last fit.
        dual: The dual of the last fit.
        coordinates: The last fit, as coefficients of the basis, [panel, padded rank].
        slope: What the tilt of the loss adds to Q'y = 0: Q'y + slope = 0, [panel, padded rank]; 0 for the median.
        noise_floor: Residuals up to this count as zero, [panel]; raised where dense rounding noise is detected.
        largest_floor: The largest noise floor that may be detected, [panel]; 0 where none may.
        noise: Noise seen in the round before, [panel].
        reached_floor: Whether all residuals on F were at most the noise floor in the round before, [panel].
        redundant: Whether every fitted row was seen to be predicted by the other fitted rows, [panel].
        state: ``ACTIVE``, ``SOLVED`` or ``OPEN``, [panel].
    """

    data: NDArray[np.float64]
    missing: NDArray[np.bool_]
    left_out: NDArray[np.bool_]
    dual_guess: NDArray[np.float64]
    dual_target: NDArray[np.float64]
    residual: NDArray[np.float64]
    dual: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    slope: NDArray[np.float64]
    noise_floor: NDArray[np.float64]
    largest_floor: NDArray[np.float64]
    noise: NDArray[np.float64]
    reached_floor: NDArray[np.bool_]
    redundant: NDArray[np.bool_]
    state: NDArray[np.int8]

    @classmethod
    def load(cls, design: Design, given: NDArray[np.float64], tilt: float) -> "Columns":
        """Right-hand sides [n, k], NaN where missing, on the live rows, followed by idle columns up to a whole tile."""
        count = given.shape[0]
        width = design.width(count)
        data = np.zeros((width, design.basis.shape[0]))
        data[:count, : design.live.size] = given[:, design.live_index]
        missing = np.isnan(data)
        data[missing] = 0.0
        slope = np.zeros((width, design.basis.shape[1]))
        if tilt:
            slope = design.coordinates(np.where(missing, 0.0, tilt))
        return cls(
            data=data,
            missing=missing,
            left_out=np.zeros(data.shape, np.bool_),
            dual_guess=np.zeros(data.shape),
            dual_target=np.zeros(data.shape),
            residual=np.zeros(data.shape),
            dual=np.zeros(data.shape),
            coordinates=np.zeros((width, design.basis.shape[1])),
            slope=slope,
            noise_floor=np.zeros(width),
            largest_floor=np.zeros(width),
            noise=np.full(width, np.inf),
            reached_floor=np.zeros(width, np.bool_),
            redundant=np.zeros(width, np.bool_),
            state=np.where(np.arange(width) < count, ACTIVE, SOLVED).astype(np.int8),
        )

    def take(self, chosen: NDArray[np.intp], width: int) -> "Columns":
        """Copy of the chosen columns, followed by idle ones up to ``width``."""
        picked = np.zeros(width, np.intp)
        picked[: chosen.size] = chosen
        taken = Columns(*(getattr(self, name)[picked] for name in self.__slots__))
        taken.state[chosen.size :] = OPEN
        return taken

    def put(self, chosen: NDArray[np.intp], taken: "Columns") -> None:
        """Write back what ``take`` took."""
        for name in self.__slots__:
            if name not in ("data", "missing", "dual_guess", "slope", "largest_floor"):
                getattr(self, name)[chosen] = getattr(taken, name)[: chosen.size]
