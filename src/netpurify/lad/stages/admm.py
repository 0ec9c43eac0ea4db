"""Identification: find which rows are outliers, cheaply and without converging.

Over-relaxed ADMM on min |z|_1 + tilt 1'z subject to z = b - A u, in float32; the tilt is 0 for the median. Per step two
matrix products for the whole panel and one fused pass over its entries. A dozen steps are enough to tell outliers from
the rest wherever L1 recovers; running a first-order method to convergence would cost 10 to 100 times as much and still
prove nothing.

Reference: Boyd et al., Distributed Optimization and Statistical Learning via ADMM (2011), section 6.1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.product import add_product

THRESHOLD = np.float32(0.7)
"""Soft threshold, for residuals scaled to mean 1 (0.5 is better far from the limit of recovery, 1 close to it)."""
RELAXATION = np.float32(1.7)
_COLUMNS = 32
"""Columns that are iterated together; a multiple of 8."""


def schedule(rows: int, rank: int) -> tuple[int, ...]:
    """Steps before each attempt to polish.

    Fewer at first where more rows than the rank make it easy, and at last where hardly more make the walk that follows
    cheap.
    """
    last = min(30 + rank // 4, 20 * rows // max(rank, 1), 120)
    return min(max(4 + 48 * rank * rank // (rows * rows), 6), 16), 24, last


@dataclass(frozen=True, slots=True)
class Estimate:
    """State of the iteration for a panel; all arrays [panel, rows] in float32, in units of each column's scale.

    Attributes:
        data: What is regressed: the least-squares residual over its scale.
        residual: Current residual of the regression.
        sparse: Soft-thresholded residual: not zero where a row is taken for an outlier.
        dual: Scaled dual; ``dual / THRESHOLD`` lies in [-1, 1].
        shift: sparse - dual, less the pull of the tilt: the input of the next step.
    """

    data: NDArray[np.float32]
    residual: NDArray[np.float32]
    sparse: NDArray[np.float32]
    dual: NDArray[np.float32]
    shift: NDArray[np.float32]

    @classmethod
    def start(cls, data: NDArray[np.float32], missing: NDArray[np.bool_], tilt: float) -> "Estimate":
        """Start from least squares: nothing is an outlier yet."""
        shift = np.where(missing, np.float32(0.0), np.float32(-tilt) * THRESHOLD)
        return cls(data, data.copy(), np.zeros_like(data), np.zeros_like(data), shift)

    def take(self, chosen: NDArray[np.intp], width: int) -> "Estimate":
        """Copy of the chosen columns, followed by idle ones up to ``width``."""
        picked = np.zeros(width, np.intp)
        picked[: chosen.size] = chosen
        return Estimate(*(getattr(self, name)[picked] for name in self.__slots__))


def iterate(
    estimate: Estimate,
    design: Design,
    *,
    missing: NDArray[np.bool_],
    steps: int,
    tilt: float,
) -> None:
    """Advance ``estimate`` in place by ``steps`` steps; missing entries are free to take any value.

    The number of columns must be a multiple of 8.
    """
    null = design.single_null
    basis, transposed = design.single if null is None else null
    _iterate(
        estimate.data, missing, np.float32(tilt) * THRESHOLD, basis, transposed, null is not None, steps,
        estimate.residual, estimate.sparse, estimate.dual, estimate.shift,
    )  # fmt: skip


@kernel
def _iterate(
    data, missing, pull, basis, transposed, is_null, steps, residual, sparse, dual, shift
):  # fmt: skip
    """Some columns after the others, because what belongs to them stays in the cache through all steps.

    The shift is projected on the columns of the design; a basis of what is orthogonal to them ``is_null``.
    """
    for low in range(0, data.shape[0], _COLUMNS):
        some = slice(low, min(low + _COLUMNS, data.shape[0]))
        width = some.stop - some.start
        coordinates, fitted = (
            np.empty((width, basis.shape[1]), data.dtype),
            np.empty((width, data.shape[1]), data.dtype),
        )
        for _ in range(steps):
            _clear(coordinates)
            _clear(fitted)
            add_product(shift[some], basis, coordinates)
            add_product(coordinates, transposed, fitted)
            _step(
                fitted, data[some], missing[some], pull, is_null, residual[some], sparse[some], dual[some], shift[some]
            )


@inner
def _clear(values):
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = 0.0


@inner
def _step(fitted, data, missing, pull, is_null, residual, sparse, dual, shift):
    for i in range(data.shape[0]):
        for j in range(data.shape[1]):
            value = data[i, j] + (shift[i, j] - fitted[i, j] if is_null else fitted[i, j])
            residual[i, j] = value
            value = RELAXATION * value + (np.float32(1.0) - RELAXATION) * sparse[i, j] + dual[i, j]
            bound = np.float32(0.0) if missing[i, j] else THRESHOLD
            kept = max(value - bound, np.float32(0.0)) + min(value + bound, np.float32(0.0))
            sparse[i, j] = kept
            dual[i, j] = value - kept
            shift[i, j] = kept - dual[i, j] - (np.float32(0.0) if missing[i, j] else pull)
