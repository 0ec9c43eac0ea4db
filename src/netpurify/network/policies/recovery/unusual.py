"""Changes that training cannot have made: far outside the distribution of all changes in the layer.

A large residual of a fit that is not exact may come from training: from rows that few inputs reach, from steps of equal
size, from a heavy tail of changes. So weights are replaced without a proof only if all of this holds as well:

- Their changes are many times as large as usual in their row, in their unit and in the layer. A weight that changed
  little is never evidence, however far it lies from the fit.
- Half of them lie outside the layer's distribution of changes by a margin, which is wider the fewer they are.
- The other changes of the layer have no heavy tail, whose end they might be.
- They are scattered one by one, and not concentrated in the rows and units that training works on.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from netpurify.network.policies.recovery.evidence import CLEAR, FAR, UNLIKELY, middle, scattered

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_SAMPLE = 512
"""How many units of a layer are sampled, at equal distances, to find the usual size of a change."""
_FEWEST = 8
"""With fewer changes than this in the sample, no size is usual, and nothing is replaced."""
HEAVY_TAIL = 3.2
"""A layer has a heavy tail if the 0.9 quantile of its changes, those far out excluded, is more than this many times
their median. The ratio is 2.4 for normal changes and 3.3 for Laplacian ones."""
_SPREADS = 5.0
"""A change must exceed the median by the factor (median / first quartile) to this power: 42 for normal changes."""
_BITS = 32.0
"""The margin is 2 to the power of this number divided by the number of weights: 2^32 for one, 2 for 32 of them."""
_BLOCK = 256
"""Units whose changes are held at a time."""


def beyond_training(changes: Callable[[NDArray[np.intp]], Array], far: Mask, *, each: bool = False) -> Mask:
    """Weights of a layer whose changes training cannot have made: all that are far outside, or none.

    A gradient is a product of a row's input and a unit's response. So the size that is expected of a change is the
    product of the usual sizes in its row and in its unit, divided by the usual size in the layer; if the usual size in
    the layer is larger, the change is compared with that.

    Args:
        changes: Gives sizes of the changes of the chosen units, [fan-in, units]; NaN where a weight is missing.
        far: Weights that lie far from the fit, [fan-in, units of all groups].
        each: Whether each weight by itself must lie outside by the margin, and not only half of them.
    """
    outside = np.zeros_like(far)
    sample = np.unique(np.linspace(0, far.shape[1] - 1, min(far.shape[1], _SAMPLE)).astype(np.intp))
    sampled = changes(sample)
    ordinary = (sampled > 0.0) & ~far[:, sample]
    if not far.any() or np.count_nonzero(ordinary) < _FEWEST:
        return outside
    usual = float(np.median(sampled[ordinary]))
    rows, all_rows = (middle(np.where(chosen, sampled, np.inf), 1) for chosen in (ordinary, np.isfinite(sampled)))
    units = middle(np.where(ordinary, sampled, np.inf), 0)
    expected = _expected(rows[:, None], units, usual)
    quartile, median, tail = np.quantile((sampled / expected)[ordinary], [0.25, 0.5, 0.9])
    largest = float(np.quantile((sampled / np.maximum(expected, usual))[ordinary], 0.99))
    if tail > HEAVY_TAIL * median:
        return outside
    ratios: list[Array] = []
    positions: list[NDArray[np.intp]] = []
    units_with_far = np.flatnonzero(far.any(axis=0))
    for start in range(0, units_with_far.size, _BLOCK):
        block = units_with_far[start : start + _BLOCK]
        changed = changes(block)
        row, column = np.nonzero(far[:, block] & np.isfinite(changed))
        sizes = changed[row, column]
        all_units = middle(np.where(np.isfinite(changed), changed, np.inf), 0)
        clear = sizes > FAR * np.maximum(usual, np.maximum(all_rows[row], all_units[column]))
        units = middle(np.where((changed > 0.0) & ~far[:, block], changed, np.inf), 0)
        ratios.append((sizes / np.maximum(_expected(rows[row], units[column], usual), usual))[clear])
        positions.append(np.stack([row[clear], block[column[clear]]]))
        outside[row[clear], block[column[clear]]] = True
    count = int(outside.sum())
    margin = 2.0 ** (_BITS / max(1, count))
    edge = max(median * (median / quartile) ** _SPREADS, CLEAR * largest) * margin
    if each and count:
        places = np.concatenate(positions, axis=1)
        outside[tuple(places[:, np.concatenate(ratios) <= edge])] = False
        return outside if scattered(outside, UNLIKELY) else np.zeros_like(far)
    beyond = sum(int((ratio > edge).sum()) for ratio in ratios)
    return outside if 2 * beyond >= count and scattered(outside, UNLIKELY) else np.zeros_like(far)


def _expected(rows: Array, units: Array, usual: float) -> Array:
    """The expected size of a change in a row and a unit; the layer's usual size where either has no changes."""
    sizes = rows * units / usual
    return np.where(sizes > 0.0, sizes, usual)
