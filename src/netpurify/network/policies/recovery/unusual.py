"""What no training could have done: changes beyond anything in a layer's own distribution of changes.

Whatever stands out of a fit that is not exact may be what training did: rows that it never lit, steps of the same size
everywhere, heavy tails. So weights are replaced without a proof only if, besides,

- their changes are many times what is usual in their row, their unit and the layer; a weight that changed little is
  never evidence, however far it lies from the fit;
- half of them lie beyond the layer's own distribution by a margin that is wider the fewer they are;
- the rest of the layer has no heavy tail, of which they might be the end;
- they lie one by one, and not in the rows and units that training works on.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from netpurify.network.policies.recovery.evidence import CLEAR, FAR, UNLIKELY, middle, one_by_one

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_SAMPLE = 512
"""Units that say what is usual in a layer; of more, so many that are evenly spread."""
_FEWEST = 8
"""Changes without which nothing is usual."""
_TAIL = 3.2
"""Largest ratio of the ninth decile to the median of what is not far out; 2.4 for normal changes, 3.3 for Laplace."""
_SPREADS = 5.0
"""Power of the median over the first quartile by which a change must exceed the median: 42 times, for normal ones."""
_BITS = 32.0
"""Factors of two that all weights together must lie beyond the border: one alone all of them, 32 weights one each."""
_BLOCK = 256


def beyond_training(changes: Callable[[NDArray[np.intp]], Array], far: Mask) -> Mask:
    """Those of a layer's weights that training cannot have made; all that are clearly out, or none.

    Training multiplies what a row brings by what a unit answers. So a change is measured by what its row and its unit
    have in common, and by the layer where that is less.

    Args:
        changes: Gives sizes of the changes of some units, [fan-in, units]; NaN where a weight is missing.
        far: What stands far out of the fit, [fan-in, units of all groups].
    """
    out = np.zeros_like(far)
    sample = np.unique(np.linspace(0, far.shape[1] - 1, min(far.shape[1], _SAMPLE)).astype(np.intp))
    some = changes(sample)
    told = (some > 0.0) & ~far[:, sample]
    if not far.any() or np.count_nonzero(told) < _FEWEST:
        return out
    usual = float(np.median(some[told]))
    rows, all_rows = (middle(np.where(chosen, some, np.inf), 1) for chosen in (told, np.isfinite(some)))
    units = middle(np.where(told, some, np.inf), 0)
    common = _common(rows[:, None], units, usual)
    lower, half, tail = np.quantile((some / common)[told], [0.25, 0.5, 0.9])
    most = float(np.quantile((some / np.maximum(common, usual))[told], 0.99))
    if tail > _TAIL * half:
        return out
    ratios: list[Array] = []
    hit = np.flatnonzero(far.any(axis=0))
    for start in range(0, hit.size, _BLOCK):
        place = hit[start : start + _BLOCK]
        part = changes(place)
        row, column = np.nonzero(far[:, place] & np.isfinite(part))
        sizes = part[row, column]
        all_units = middle(np.where(np.isfinite(part), part, np.inf), 0)
        clear = sizes > FAR * np.maximum(usual, np.maximum(all_rows[row], all_units[column]))
        units = middle(np.where((part > 0.0) & ~far[:, place], part, np.inf), 0)
        ratios.append((sizes / np.maximum(_common(rows[row], units[column], usual), usual))[clear])
        out[row[clear], place[column[clear]]] = True
    count = int(out.sum())
    edge = max(half * (half / lower) ** _SPREADS, CLEAR * most) * 2.0 ** (_BITS / max(1, count))
    beyond = sum(int((part > edge).sum()) for part in ratios)
    return out if 2 * beyond >= count and one_by_one(out, UNLIKELY) else np.zeros_like(far)


def _common(rows: Array, units: Array, usual: float) -> Array:
    """What is usual for a row and a unit; for the layer where either has nothing to say."""
    found = rows * units / usual
    return np.where(found > 0.0, found, usual)
