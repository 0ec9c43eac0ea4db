"""Vertices of columns at or beyond the limit of recovery: found in float32, then computed in float64.

The walk (``kernels.tableau``) leaves an inverse that is good to five digits or so. That is enough to refine fit and
dual in float64, for all columns together: r = b - Q x, x += Q_Z^-1 r_Z. What the walk got wrong shows in float64: a
dual beyond 1, or a row whose residual has another sign than was assumed. Then the column is walked again from where it
stands.
"""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.stages.columns import SOLVED, Columns
from netpurify.lad.stages.magnify import magnify
from netpurify.lad.stages.panel import ROUNDING, Panel
from netpurify.lad.stages.vertices import Batch, Vertices, walk_near_batch, walk_turned_batch

_WALKS = 3
"""How often a column is walked before it is left to the walk in float64."""
_REFINEMENTS = 3
_BYTES = 32 << 20
"""Memory for the inverses of the columns that are worked on together."""
_DUAL = 1e-9
"""By so much a dual may exceed 1."""


def solve_near(panel: Panel, unsolved: NDArray[np.intp]) -> NDArray[np.intp]:
    """Find optimal vertices; returns the columns for which that succeeded, and improves the estimate of the others."""
    design, columns = panel.design, panel.columns
    size = max(8, min(design.panel, _BYTES // (4 * design.basis.shape[1] ** 2) // 8 * 8))
    left, panel.estimate = unsolved, panel.estimate.copy()
    magnify(design, columns, panel.estimate, unsolved, panel.tilt)
    turned = np.zeros(columns.state.size, np.bool_)
    if design.single_null is not None:
        turned[:] = ~columns.missing.any(axis=1)
    for number in range(_WALKS):
        for some in (left[turned[left]], left[~turned[left]]):
            for start in range(0, some.size, size):
                chosen = some[start : start + size]
                batch = Batch.start(design, columns, panel.estimate[chosen], chosen)
                on_null = bool(turned[chosen[0]])
                found = walk_turned_batch(batch, panel.tilt) if on_null else walk_near_batch(batch, wide=number > 0)
                panel.pivots += int(np.maximum(found.pivots, 0).sum())
                better = _refine(batch, found, columns, chosen)
                panel.estimate[chosen[better]] = batch.residual[better]
        left = left[columns.state[left] != SOLVED]
        if not left.size:
            break
    return unsolved[columns.state[unsolved] == SOLVED]


def _refine(batch: Batch, found: Vertices, columns: Columns, chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Compute fits and duals in float64, and keep those that are optimal; returns which fits have improved."""
    design, before = batch.design, np.abs(batch.residual).sum(axis=1)
    for _ in range(_REFINEMENTS):
        batch.coordinates[:] += found.change_of_fit(batch)
        batch.residual[:] = batch.data - design.fitted(batch.coordinates)
    dual = batch.sign.copy()
    for _ in range(_REFINEMENTS):
        found.bend(dual, design.coordinates(dual) + batch.slope, design)
    zero = np.abs(batch.residual) <= ROUNDING * np.abs(batch.data).max(axis=1, keepdims=True)
    agree = (zero | (batch.residual * batch.sign > 0.0) | batch.missing)[:, : design.live.size].all(axis=1)
    exact = np.take_along_axis(zero, found.vertex, axis=1).all(axis=1)
    solved = (found.pivots >= 0) & exact & agree & (np.abs(dual).max(axis=1) <= 1.0 + _DUAL)
    columns.coordinates[chosen[solved]] = batch.coordinates[solved]
    columns.dual[chosen[solved]] = dual[solved]
    columns.state[chosen[solved]] = SOLVED
    return np.abs(batch.residual).sum(axis=1) < before
