"""What counts as altered where no proof is to be had, and what must not."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from netpurify import lad

FAR = 8.0
"""In robust standard deviations: nothing nearer is called altered without proof."""
_CLEAR = 4.0
_LONELY = 64.0
"""How many times farther out than the border most of what is called altered must lie; a single weight much more."""
_COMMON = 0.75
_FEW = 4
"""A row on which at least three of four units differ is a matter of the row, not of weights: inputs that training saw
and the clean inputs do not show, or a unit before it that could not be repaired. Fewer than four units cannot tell."""
_UNLIKELY = 0.001
_STRUCTURED = 1e-4
_SPREADS, _PAIRS = 6.0, 10.0
"""Beyond these odds for the fullest line, or this many standard deviations and pairs in the same lines, weights differ
by rows and units."""

_SURPLUS = 5
"""Weights that must agree beyond the rank: one does by chance in some of a hundred units, five in none of a billion."""


def proven(certificate: lad.Certificate, fan_in: int) -> NDArray[np.bool_]:
    """Units whose fit is the truth: enough weights agree on it, or all do, so that there is nothing to repair."""
    enough = np.isin(certificate.status, (lad.Status.CLEAN, lad.Status.RECOVERED)) & (certificate.surplus >= _SURPLUS)
    return enough | ((certificate.status == lad.Status.CLEAN) & (certificate.zeros == fan_in))


def border(sizes: NDArray[np.float64]) -> float:
    """The size beyond which sizes stand out from the rest, in robust standard deviations; infinite if none do.

    A heavy tail thins out by degrees: with every factor of four in size there are many times fewer. Alterations do not:
    most of them lie far beyond the border. So half of what is beyond it must be four times as far out, and more if it
    is few weights. A power law as heavy as t with 3 degrees of freedom passes for an alteration once in 10^5 layers.

    Args:
        sizes: Sizes of all residuals of a layer that exceed ``FAR``, over the scale of their units.
    """
    ordered = np.sort(sizes[sizes > FAR])
    for first in range(ordered.size):
        count = ordered.size - first
        edge = max(FAR, ordered[first - 1]) if first else FAR
        clear = max(_CLEAR, _LONELY ** (1.0 / count)) * edge
        if 2 * (ordered.size - np.searchsorted(ordered, clear, side="right")) >= count:
            return edge
    return np.inf


def common_rows(
    altered: NDArray[np.bool_], dead: NDArray[np.bool_], bias: NDArray[np.bool_], *, decayed: bool, doubt: bool
) -> NDArray[np.bool_]:
    """Rows whose weights must not be called altered, because nearly all units differ there.

    Where there is a reason to suspect a row, that is enough; elsewhere it must be more than chance makes of altered
    weights. Dead rows are judged together: if they differ by rows and units, training did it. Fewer than four units
    cannot tell: then neither dead rows nor the bias are touched, and if any row may be wrong, none is.

    Args:
        altered: What would be called altered, [fan-in, units].
        dead: Rows that clean inputs never light, though training's may have, [fan-in].
        bias: The row of the bias, which may have been trained in its own way, [fan-in].
        decayed: Whether weights were decayed, which biases are often spared.
        doubt: Whether something before could not be recovered, so that any row may be wrong.
    """
    rows, units = altered.shape
    differs = np.asarray(altered.any(axis=1))
    if units < _FEW:
        return differs & (dead | bias | doubt)
    common = altered.mean(axis=1) >= _COMMON
    share = float(altered[~common].mean()) if not common.all() else 1.0
    by_chance = rows * bdtrc(altered.sum(axis=1) - 1.0, units, share) > _UNLIKELY
    found = common & (dead | (bias & decayed) | doubt | ~by_chance)
    return found if one_by_one(altered[dead]) else found | (differs & dead)


def one_by_one(differs: NDArray[np.bool_]) -> bool:
    """Whether weights differ one by one, as alterations do, and not by rows and units, as training makes them.

    Training changes the rows that its inputs light, in the units that answer. Fewer than four of either cannot tell.

    Args:
        differs: Which weights differ, [rows, units].
    """
    if not differs.any():
        return True
    if min(differs.shape) < _FEW:
        return False
    share = float(differs.mean())
    return not any(_in_lines(differs.sum(axis=axis), differs.shape[axis], share) for axis in (0, 1))


def _in_lines(counts: NDArray[np.int64], length: int, share: float) -> bool:
    """Whether one line has more entries that differ, or all have more pairs of them, than chance makes."""
    fullest = counts.size * float(bdtrc(counts.max() - 1.0, length, share))
    mean = length * share
    pairs = float((counts * (counts - 1)).sum()) / 2.0 - counts.size * mean**2 / 2.0
    spread = np.sqrt(counts.size * (mean**3 + mean**2 / 2.0))
    return fullest < _STRUCTURED or pairs > _SPREADS * spread + _PAIRS


def frozen(equal: NDArray[np.bool_], zero: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Weights of a layer that was never trained but differ from the initial ones; ``None`` if it was trained.

    A layer is frozen if most of its weights are, bit for bit, the initial ones, and the others differ one by one. A
    weight that was zero and still is may have been pruned or masked, and tells nothing.

    Args:
        equal: Which weights are the initial ones to the bit, [fan-in, units].
        zero: Which initial weights are zero, [fan-in, units].
    """
    if equal.all():
        return np.zeros_like(equal)
    told = equal[~zero]
    if not told.size or told.mean() <= 0.5 or not one_by_one(~equal):
        return None
    return ~equal
