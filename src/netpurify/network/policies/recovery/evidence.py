"""What counts as altered where no proof is to be had, and what must not."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, pdtrc

from netpurify import lad

FAR = 8.0
"""In robust standard deviations: nothing nearer is called altered without proof."""
CLEAR = 4.0
_LONELY = 64.0
"""How many times farther out than the border most of what is called altered must lie; a single weight much more."""
_COMMON = 0.75
FEW = 4
"""A row on which at least three of four units differ is a matter of the row, not of weights: inputs that training saw
and the clean inputs do not show, or a unit before it that could not be repaired. Fewer than four units cannot tell."""
UNLIKELY = 0.001
_STRUCTURED = 1e-4
_EXCESS = 1.25
"""At lower odds than these, for the fullest line or for so many pairs in the same lines, weights differ by rows and
units. Some pairs more than chance makes are no structure: the bias, a line of its own, is often spared."""

_EVEN = 0.03
_NEAR = 32.0
"""Changes are of the same size if they differ by no more than this share of it; or by no more than rounding, if there
are few more within so many times that."""
_SURPLUS = 5
"""Weights that must agree beyond the rank: one does by chance in some of a hundred units, five in none of a billion."""
_VOUCHING = 0.75
"""As many must agree beyond the rank for each that differs. L1 fits find the truth where hardly fewer do; elsewhere it
is inputs that agree, such as the pixels of a smooth image: what training did beyond the fit vanishes there too."""

_SAME = 1.0 / 16.0
"""Values are the same if they differ by no more than this share of the noise floor, some sixteen rounding units."""
BEYOND = 64.0
"""A residual that is so many times what is usual in the unit that training changed most is no step of training."""


def proven(
    certificate: lad.Certificate, design: lad.Design, altered: NDArray[np.bool_], missing: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Units whose fit is the truth: enough weights agree on it, or all do, so that there is nothing to repair.

    Args:
        certificate: Of the units' fits.
        design: What was fitted.
        altered: Weights that differ from the fit or are missing, [fan-in, units].
        missing: Which are missing, [fan-in, units].
    """
    agreeing, differing = (part[design.live].sum(axis=0) for part in (~altered, altered & ~missing))
    enough = np.isin(certificate.status, (lad.Status.CLEAN, lad.Status.RECOVERED)) & (certificate.surplus >= _SURPLUS)
    enough &= agreeing - design.rank >= _VOUCHING * differing
    return enough | ((certificate.status == lad.Status.CLEAN) & (certificate.zeros == design.fan_in))


def even_steps(
    difference: NDArray[np.float64], floor: NDArray[np.float64], altered: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Weights that changed by as much as others of their unit that agree on the fit: an optimiser's steps like those.

    A first step of Adam, RMSprop, Adagrad or Rprop has the same size wherever there is a gradient, and later ones of
    Rprop have few sizes. Where inputs are even too, most weights agree on a fit all the same, and the others look
    altered. If most changes of a unit are of one size, smaller ones are no evidence either: gradients were tiny there.

    Args:
        difference: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        floor: Differences up to this are rounding, [units].
        altered: What would be called altered, [fan-in, units].
    """
    sizes = np.abs(difference)
    changed = sizes > floor
    usual = middle(np.where(changed, sizes, np.inf), 0)
    even = changed & (np.abs(sizes - usual) <= _EVEN * usual)
    vouched = (even & ~altered).sum(axis=0) >= _SURPLUS  # else they may be alterations of the same size
    found = (sizes <= (1.0 + _EVEN) * usual) & vouched & (2 * even.sum(axis=0) > changed.sum(axis=0))
    for unit in np.flatnonzero((changed & altered).any(axis=0)):
        place = np.flatnonzero(changed[:, unit] & altered[:, unit])
        ordered = np.sort(sizes[changed[:, unit] & ~altered[:, unit], unit])
        close, near = (_company(ordered, sizes[place, unit], reach * floor[unit]) for reach in (1.0, _NEAR))
        found[place, unit] |= (close >= _SURPLUS) & (
            4 * close >= near
        )  # where sizes lie dense, some are close by chance
    return found


def _company(ordered: NDArray[np.float64], sizes: NDArray[np.float64], reach: float) -> NDArray[np.int64]:
    """How many of ``ordered`` lie within reach of each size."""
    return np.searchsorted(ordered, sizes + reach, side="right") - np.searchsorted(ordered, sizes - reach)


def repeated(
    change: NDArray[np.float64],
    residual: NDArray[np.float64],
    floor: NDArray[np.float64],
    altered: NDArray[np.bool_],
    rank: int,
) -> NDArray[np.bool_]:
    """Units whose weights repeat one another, so that their agreement on a fit is no evidence.

    Where inputs are zeros and ones, and few of them drive a unit, training changes many of its weights alike. If the
    changes that agree on the fit repeat one another, and have hardly more different values than the fit has
    directions, any training agrees. If most of the residuals have the same value as another one, they are an input that
    training saw and the clean inputs do not show, or steps of equal size; but not if that value is a power of two, as
    flipped bits make it. A unit that agrees on its initial weights is judged by its residuals alone.

    Args:
        change: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        residual: Change minus fit where altered, [fan-in, units]; NaN where missing, and anything elsewhere.
        floor: Differences up to this are rounding, [units].
        altered: What would be called altered, [fan-in, units].
        rank: Directions of the fit.
    """
    apart = _SAME * floor
    changed = np.where(~altered & (np.abs(change) > floor), change, np.nan)
    different = (np.diff(np.sort(changed, axis=0), axis=0) > apart).sum(axis=0) + 1
    few = (different < rank + _SURPLUS) & (2 * different <= np.isfinite(changed).sum(axis=0))
    told = np.sort(np.where(altered, residual, np.nan), axis=0)
    same = np.pad(np.diff(told, axis=0) <= apart, ((1, 1), (0, 0)))
    repeats = (same[1:] | same[:-1]) & ~_is_power_of_two(told, floor)
    count = repeats.sum(axis=0)
    return few | ((count >= _SURPLUS) & (2 * count > np.isfinite(told).sum(axis=0)))


def _is_power_of_two(values: NDArray[np.float64], floor: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether values are powers of two but for rounding, as a flipped bit of a fraction changes a weight by one."""
    sizes = np.abs(np.where(np.isfinite(values) & (values != 0.0), values, 1.0))
    return np.abs(sizes - np.exp2(np.rint(np.log2(sizes)))) <= floor


def largest_usual(change: NDArray[np.float64], floor: NDArray[np.float64], altered: NDArray[np.bool_]) -> float:
    """What is usual in the unit that training changed most; 0 if it changed none. Arguments as in ``repeated``."""
    sizes = np.abs(change)
    return float(middle(np.where((sizes > floor) & ~altered, sizes, np.inf), 0).max(initial=0.0))


def middle(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The lower median along an axis of what is finite; 0 where nothing is."""
    last = np.isfinite(values).sum(axis=axis, keepdims=True) - 1
    found = np.take_along_axis(np.sort(values, axis=axis), np.maximum(last, 0) // 2, axis=axis)
    return np.where(last < 0, 0.0, found).squeeze(axis)


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
        clear = max(CLEAR, _LONELY ** (1.0 / count)) * edge
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
    if units < FEW:
        return differs & (dead | bias | doubt)
    common = altered.mean(axis=1) >= _COMMON
    share = float(altered[~common].mean()) if not common.all() else 1.0
    by_chance = rows * bdtrc(altered.sum(axis=1) - 1.0, units, share) > UNLIKELY
    found = common & (dead | (bias & decayed) | doubt | ~by_chance)
    return found if one_by_one(altered[dead]) else found | (differs & dead)


def one_by_one(differs: NDArray[np.bool_], odds: float = _STRUCTURED) -> bool:
    """Whether weights differ one by one, as alterations do, and not by rows and units, as training makes them.

    Training changes the rows that its inputs light, in the units that answer. Fewer than four of either cannot tell.

    Args:
        differs: Which weights differ, [rows, units].
        odds: Lines that chance makes more rarely than this are no chance.
    """
    if not differs.any():
        return True
    if min(differs.shape) < FEW:
        return False
    share = float(differs.mean())
    return not any(_in_lines(differs.sum(axis=axis), differs.shape[axis], share, odds) for axis in (0, 1))


def _in_lines(counts: NDArray[np.int64], length: int, share: float, odds: float) -> bool:
    """Whether one line has more entries that differ, or all have more pairs of them, than chance makes."""
    fullest = counts.size * float(bdtrc(counts.max() - 1.0, length, share))
    pairs = float((counts * (counts - 1)).sum()) / 2.0
    expected = counts.size * length * (length - 1) / 2.0 * share**2
    # Given the total, pairs vary no more than a Poisson number does.
    return fullest < odds or (pairs > _EXCESS * expected and float(pdtrc(pairs - 1.0, expected)) < odds)


def frozen(contaminated: NDArray, initial: NDArray, rounding: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Weights of a layer that was never trained but differ from the initial ones; ``None`` if it was trained.

    A layer is frozen if most of its weights are, bit for bit, the initial ones, and the others differ one by one. A
    weight that was zero and still is may have been pruned or masked, and tells nothing. Steps of one size, as sign
    descent takes them, may return to the initial weights. Where they do not, they leave differences, most of one size,
    in both directions, or in one beside weights that returned but for rounding: such a layer was trained.

    Args:
        contaminated: The weights, [fan-in, units].
        initial: The initial weights, [fan-in, units].
        rounding: Differences up to this are rounding, [units].
    """
    equal = contaminated == initial
    if equal.all():
        return np.zeros_like(equal)
    told = equal[initial != 0.0]
    if not told.size or told.mean() <= 0.5 or not one_by_one(~equal):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        steps = contaminated.astype(np.float64) - initial
    large = np.abs(steps) > rounding
    returned = bool((~equal & ~large & np.isfinite(steps)).any())
    steps = steps[large & np.isfinite(steps) & (contaminated != -initial)]  # flipped signs are no steps
    usual = np.median(np.abs(steps)) if steps.size else 0.0
    even = np.abs(np.abs(steps) - usual) <= _EVEN * usual
    if 2 * even.sum() > steps.size and (returned or ((steps > 0.0).any() and (steps < 0.0).any())):
        return None
    return ~equal
