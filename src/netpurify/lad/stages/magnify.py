"""A closer look at columns in which most rows fit nearly, but not to the noise floor.

Data rounded to float32, of which every digit is meant, fit to 1e-8 of the alterations. Identification in float32 does
not see below that, so the walk would start from any of the vertices that look alike. Seen 1e8 times larger, what is
left of the nearly fitted rows is a regression with dense noise like any other; the other rows lie so far out that only
their signs matter.
"""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.stages.admm import Estimate, iterate, schedule
from netpurify.lad.stages.columns import Columns

_NEAR = 1e-3
"""Rows fit nearly if their residual is below this share of the column's mean least-squares residual."""
_FAR = 30.0
"""Other rows are pulled in to this many times the mean of the nearly fitted ones."""


def magnify(
    design: Design, columns: Columns, estimate: NDArray[np.float64], unsolved: NDArray[np.intp], tilt: float
) -> None:
    """Estimate the residuals of such columns anew, from the last trimmed fit, in place."""
    rows, residual = design.live.size, columns.residual[unsolved]
    present = ~columns.missing[unsolved]
    present[:, rows:] = False
    sizes = np.abs(residual)
    typical = np.abs(columns.data[unsolved]).sum(axis=1, keepdims=True) / rows
    near = present & (sizes <= _NEAR * typical)
    count = near.sum(axis=1)
    scale = np.where(near, sizes, 0.0).sum(axis=1) / np.maximum(count, 1)
    chosen = np.flatnonzero(
        (count > design.rank + 2 + design.rank // 8) & (scale > 0.0) & np.isfinite(sizes).all(axis=1)
    )
    if not chosen.size:
        return
    idle = np.zeros(-chosen.size % 8, np.intp)  # the iteration takes whole tiles of columns
    chosen = np.concatenate((chosen, chosen[idle]))
    unit, missing = scale[chosen, None], columns.missing[unsolved[chosen]]
    seen = np.clip(residual[chosen] / unit, -_FAR, _FAR)
    orthogonal = seen - design.fitted(design.coordinates(seen))
    start = Estimate.start(orthogonal.astype(np.float32), missing, tilt)
    iterate(start, design, missing=missing, steps=sum(schedule(rows, design.rank)), tilt=tilt)
    estimate[unsolved[chosen]] = residual[chosen] + unit * (start.residual - seen)
