"""The loss of a residual: quantiles and weights, brought to the form that solver and verifier share.

For the quantile tau a residual r costs 2 tau r above zero and -2 (1 - tau) r below, which is |r| + tilt r with the tilt
2 tau - 1. A weight multiplies a row of the design and the datum beside it.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.verifier.column_space import ColumnSpace

_LARGEST_TILT = 1.0 - 1e-6
"""Quantiles closer to 0 or 1 than this allows are those of no finite sample, and rounding would decide them."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a fit minimises: the sum over rows of weight x (|r| + (2 quantile - 1) r).

    Attributes:
        quantile: 0.5 for least absolute deviations.
        weights: Weights of the rows, [k]; ``None`` if all are 1.
    """

    quantile: float = 0.5
    weights: NDArray[np.float64] | None = None

    def of(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """The loss of residuals [k, p] or [k], summed over rows, [p] or []; missing ones (NaN) cost nothing."""
        known = np.nan_to_num(residual, nan=0.0)
        losses = np.abs(known) + tilt_of(self.quantile) * known
        return losses.sum(axis=0) if self.weights is None else self.weights @ losses


def tilt_of(quantile: float) -> float:
    """2 ``quantile`` - 1.

    Raises:
        InputError: The quantile does not lie between 0 and 1.
    """
    known = isinstance(quantile, float | int | np.floating | np.integer) and math.isfinite(quantile)
    if not known or abs(2.0 * quantile - 1.0) > _LARGEST_TILT:
        raise InputError(
            f"quantile must lie strictly between 0 and 1, such as 0.5 for the median; got {quantile!r}; for several "
            "quantiles, solve once for each"
        )
    return 2.0 * float(quantile) - 1.0


def weights_of(weights: ArrayLike, rows: int) -> NDArray[np.float64]:
    """Weights of the rows as float64 [rows].

    Raises:
        InputError: They are not finite numbers >= 0, one for each row, and one of them above 0.
    """
    values = to_numpy(weights, "weights").astype(np.float64)
    if values.shape != (rows,) or not (np.isfinite(values) & (values >= 0.0)).all():
        raise InputError(
            f"weights must be {rows} finite numbers >= 0, one for each row of the design; got {list(values.shape)} "
            f"from {values.min(initial=np.inf):g} to {values.max(initial=-np.inf):g}"
        )
    if not values.any():
        raise InputError("some weight must be above 0; all weights are zero, so that there is nothing to fit")
    return values


def weighted(
    matrix: ArrayLike | ColumnSpace, right: ArrayLike, weights: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Design [k, q] and right-hand sides [k, p] or [k], each row multiplied by its weight.

    Raises:
        InputError: The weights do not fit, or the design was prepared without them.
    """
    if isinstance(matrix, ColumnSpace):
        raise InputError(
            "weights must be known when a design is prepared; give the matrix itself, or prepare weights[:, None] * A "
            "and solve for weights[:, None] * B"
        )
    design, values = to_numpy(matrix, "the design"), to_numpy(right, "the right-hand side")
    if design.ndim != 2 or values.ndim not in (1, 2) or len(values) != len(design):
        raise InputError(
            f"the design must be a matrix [k, q], and the right-hand side [k] or [k, p]; got {list(design.shape)} and "
            f"{list(values.shape)}"
        )
    known = weights_of(weights, len(design))
    return known[:, None] * design, (known[:, None] if values.ndim == 2 else known) * values
