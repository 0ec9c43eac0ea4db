"""First stage: regress all columns by least squares; those without a residual are done."""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.stages.columns import SOLVED
from netpurify.lad.stages.panel import ROUNDING, Panel

_CLIP = 256.0
"""Entries beyond this many times the typical size are pulled in: to L1 only their sign matters, but rounding errors
grow with their size."""
_SAMPLE = 128
"""Rows that are enough to estimate the typical size of a column."""
_DENSE = 1e-4
"""Dense noise up to this share of the typical entry may be taken for rounding."""


def run(panel: Panel, _unsolved: NDArray[np.intp]) -> NDArray[np.intp]:
    """Fit every column, keep the residuals as the data of the next stages, and set the noise floors."""
    design, columns, count = panel.design, panel.columns, panel.stage.size
    typical = _pull_in(columns.data, design.rows.norms, clip=panel.clip)
    panel.origin = design.coordinates(columns.data)
    largest = np.abs(columns.data).max(axis=1)
    columns.data -= design.fitted(panel.origin)
    columns.residual[:] = columns.data
    columns.noise_floor[:] = ROUNDING * (largest if design.full else np.minimum(largest, _CLIP * typical))
    columns.noise_floor[:count] = np.fmax(columns.noise_floor[:count], panel.floor)
    columns.largest_floor[:] = _DENSE * typical
    columns.largest_floor[:count][~np.isnan(panel.floor)] = 0.0
    clean = (np.abs(columns.data).max(axis=1) <= columns.noise_floor) & ~columns.missing.any(axis=1)
    columns.state[clean] = SOLVED
    columns.dual[clean] = -panel.tilt  # so that the dual of the loss is 0
    return np.flatnonzero(clean[:count])


def _pull_in(data: NDArray[np.float64], norms: NDArray[np.float64], *, clip: bool) -> NDArray[np.float64]:
    """Clip wild entries in place, in proportion to the norm of their row; returns the typical size of each column."""
    rows = norms.size
    if not rows:
        return np.zeros(data.shape[0])
    stride = int(0.6180339887498949 * rows) | 1  # visits the rows irregularly, so that no pattern in them can mislead
    visited = np.arange(rows) * stride % rows
    sizes = np.abs(data[:, visited[:_SAMPLE]]) / norms[visited[:_SAMPLE]]
    if (sizes > 0.0).all():
        middle = sizes.shape[1] // 2
        typical = np.partition(sizes, middle, axis=1)[:, middle, None]
    else:
        typical = _typical(np.abs(data[:, visited]) / norms[visited])
    if clip:
        bound = _CLIP * typical * norms
        np.clip(data[:, :rows], -bound, bound, out=data[:, :rows])
    return typical[:, 0] * float(np.median(norms))


def _typical(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of the first ``_SAMPLE`` sizes of each column that are not zero, [n, 1]; 0 where all are."""
    counted = sizes > 0.0
    counted &= np.cumsum(counted, axis=1) <= _SAMPLE
    sizes[~counted] = np.inf
    middle = counted.sum(axis=1)[:, None] // 2
    typical = np.take_along_axis(np.sort(sizes, axis=1), middle, axis=1)
    typical[~counted.any(axis=1)] = 0.0
    return typical
