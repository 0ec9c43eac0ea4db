"""Which differences from a fit count as alterations, and which may come from training."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, pdtrc

from netpurify import lad

FAR = 8.0
"""In robust standard deviations: without a proof, no smaller residual is called altered."""
CLEAR = 4.0
"""Half of the weights that are called altered must lie this many times farther out than the border (see ``border``)."""
_SINGLE = 64.0
"""A single weight must lie this many times farther out than the border. For n weights it is the n-th root of this
number, or ``CLEAR`` if that is larger."""
_COMMON = 0.75
"""If at least this share of the units differ on the same row, the cause is the row and not single weights: an input
that training saw and the clean inputs lack, or a unit of an earlier layer that could not be repaired."""
FEW = 4
"""With fewer units than this, or fewer rows, no pattern can be told from chance."""
UNLIKELY = 0.001
"""Probability below which a pattern is not taken for chance, where a false alarm costs little."""
_STRUCTURED = 1e-4
"""Differences count as structured (training, not tampering) if chance puts so many of them into one row or unit, or so
many pairs of them into the same rows or units, with a probability below this."""
_EXCESS = 1.25
"""Pairs count as structure only if there are this many times as many as expected. A few more are no structure: training
often treats the bias, which is one row, in its own way."""

_EQUAL = 0.03
"""Two changes are steps of equal size if they differ by no more than this share of their size."""
NEAR = 32.0
"""Two changes are also of equal size if they differ by no more than rounding, unless changes of about this size are so
common that the range of 32 times rounding holds more than four times as many."""
SURPLUS = 5
"""Redundancy: how many weights must agree on a fit beyond its rank. One agrees by chance in a few of a hundred units,
five in none of a billion."""
_REDUNDANCY = 0.75
"""For each weight that differs from the fit, this many must agree on it beyond the rank. L1 regression finds the truth
up to about this ratio. With less redundancy the agreement may come from the inputs themselves, such as the equal
neighbouring pixels of a smooth image: what training did outside the span cancels there too."""

_SAME = 1.0 / 16.0
"""Two values are the same if they differ by no more than this share of the noise floor, about 16 rounding units."""
BEYOND = 64.0
"""A residual is no step of training if it is this many times the median change of the unit that changed most."""


def proven(
    certificate: lad.Certificate,
    design: lad.Design,
    altered: NDArray[np.bool_],
    missing: NDArray[np.bool_],
    *,
    decayed: bool = False,
) -> NDArray[np.bool_]:
    """Units whose fit is the truth: enough weights agree on it, or all do, so that there is nothing to repair.

    Args:
        certificate: The certificate of the units' fits.
        design: The design of these fits.
        altered: Weights that differ from the fit or are missing, [fan-in, units].
        missing: Weights that are missing, [fan-in, units].
        decayed: Whether a factor of decay was found: it is one more free number, which makes all weights of a unit
            agree where the rank is one below the fan-in, altered or not.
    """
    agreeing, differing = (mask[design.live].sum(axis=0) for mask in (~altered, altered & ~missing))
    enough = np.isin(certificate.status, (lad.Status.CLEAN, lad.Status.RECOVERED)) & (certificate.surplus >= SURPLUS)
    enough &= agreeing - design.rank >= _REDUNDANCY * differing
    if decayed:
        return enough
    return enough | ((certificate.status == lad.Status.CLEAN) & (certificate.zeros == design.fan_in))


def equal_steps(
    difference: NDArray[np.float64], floor: NDArray[np.float64], altered: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Weights that changed by as much as other weights of their unit that agree on the fit, as an optimiser moves them.

    The first step of Adam, RMSprop, Adagrad or Rprop has the same size wherever there is a gradient, and later steps of
    Rprop have few sizes. If many inputs are equal too, most weights agree on a fit nevertheless, and the others look
    altered. If most changes of a unit are of one size, smaller changes are no evidence of an alteration either: their
    gradients were tiny.

    Args:
        difference: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        floor: Differences up to this are rounding, [units] or [fan-in, units].
        altered: Weights that would be called altered, [fan-in, units].
    """
    sizes = np.abs(difference)
    changed = sizes > floor
    usual = middle(np.where(changed, sizes, np.inf), 0)
    equal = changed & (np.abs(sizes - usual) <= _EQUAL * usual)
    agreeing = (equal & ~altered).sum(axis=0) >= SURPLUS  # otherwise they may be alterations of equal size
    steps = (sizes <= (1.0 + _EQUAL) * usual) & agreeing & (2 * equal.sum(axis=0) > changed.sum(axis=0))
    for unit in np.flatnonzero((changed & altered).any(axis=0)):
        rows = np.flatnonzero(changed[:, unit] & altered[:, unit])
        ordered = np.sort(sizes[changed[:, unit] & ~altered[:, unit], unit])
        own = floor[unit] if floor.ndim == 1 else floor[rows, unit]
        close, near = (count_within(ordered, sizes[rows, unit], reach * own) for reach in (1.0, NEAR))
        # Where sizes lie densely, some are close to one another by chance.
        steps[rows, unit] |= (close >= SURPLUS) & (4 * close >= near)
    return steps


def count_within(
    ordered: NDArray[np.float64], sizes: NDArray[np.float64], reach: NDArray[np.float64] | float
) -> NDArray[np.int64]:
    """How many entries of ``ordered`` lie within ``reach`` of each size."""
    return np.searchsorted(ordered, sizes + reach, side="right") - np.searchsorted(ordered, sizes - reach)


def repeated(
    change: NDArray[np.float64],
    residual: NDArray[np.float64],
    floor: NDArray[np.float64],
    altered: NDArray[np.bool_],
    rank: int,
) -> NDArray[np.bool_]:
    """Units whose weights repeat one another, so that their agreement on a fit is no evidence.

    If inputs are zeros and ones, and few of them drive a unit, training changes many of its weights by the same amount.
    There are two signs of this. First, the changes that agree on the fit have hardly more distinct values than the fit
    has directions: then any training agrees with the fit. Second, most residuals have the same value as another
    residual: then they are steps of equal size, or come from an input that training saw and the clean inputs lack.
    Values that are powers of two are exempt from the second sign, because flipped bits make them. In a unit whose
    agreeing weights are the initial ones, only the second sign applies.

    Args:
        change: Contaminated minus initial weights, [fan-in, units]; NaN where missing.
        residual: Change minus fit, [fan-in, units]; only used where altered; NaN where missing.
        floor: Differences up to this are rounding, [units].
        altered: Weights that would be called altered, [fan-in, units].
        rank: How many directions the fit has.
    """
    apart = _SAME * floor
    changed = np.where(~altered & (np.abs(change) > floor), change, np.nan)
    different = (np.diff(np.sort(changed, axis=0), axis=0) > apart).sum(axis=0) + 1
    few = (different < rank + SURPLUS) & (2 * different <= np.isfinite(changed).sum(axis=0))
    residuals = np.sort(np.where(altered, residual, np.nan), axis=0)
    same = np.pad(np.diff(residuals, axis=0) <= apart, ((1, 1), (0, 0)))
    repeats = (same[1:] | same[:-1]) & ~is_power_of_two(residuals, floor)
    count = repeats.sum(axis=0)
    return few | ((count >= SURPLUS) & (2 * count > np.isfinite(residuals).sum(axis=0)))


def is_power_of_two(values: NDArray[np.float64], floor: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether values are powers of two up to rounding, which is how a flipped mantissa bit changes a weight."""
    sizes = np.abs(np.where(np.isfinite(values) & (values != 0.0), values, 1.0))
    return np.abs(sizes - np.exp2(np.rint(np.log2(sizes)))) <= floor


def largest_usual(change: NDArray[np.float64], floor: NDArray[np.float64], altered: NDArray[np.bool_]) -> float:
    """The median change of the unit that training changed most; 0 if there is none. Arguments as in ``repeated``."""
    sizes = np.abs(change)
    return float(middle(np.where((sizes > floor) & ~altered, sizes, np.inf), 0).max(initial=0.0))


def middle(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The lower median of the finite values along an axis; 0 where no value is finite."""
    last = np.isfinite(values).sum(axis=axis, keepdims=True) - 1
    median = np.take_along_axis(np.sort(values, axis=axis), np.maximum(last, 0) // 2, axis=axis)
    return np.where(last < 0, 0.0, median).squeeze(axis)


def border(sizes: NDArray[np.float64]) -> float:
    """The border beyond which residuals stand out from the rest, in robust standard deviations; infinite if none do.

    A heavy tail thins out gradually: with every factor of four in size there are many times fewer residuals.
    Alterations do not thin out like this: most of them lie far beyond the border. So half of the residuals beyond the
    border must be ``CLEAR`` times as large as the border, and still larger if there are few of them. With this rule,
    residuals as heavy-tailed as Student's t with 3 degrees of freedom pass for alterations in one of 10^5 layers.

    Args:
        sizes: Sizes of all residuals of a layer that exceed ``FAR``, divided by the scale of their units.
    """
    ordered = np.sort(sizes[sizes > FAR])
    for first in range(ordered.size):
        count = ordered.size - first
        edge = max(FAR, ordered[first - 1]) if first else FAR
        clear = max(CLEAR, _SINGLE ** (1.0 / count)) * edge
        if 2 * (ordered.size - np.searchsorted(ordered, clear, side="right")) >= count:
            return edge
    return np.inf


def common_rows(
    altered: NDArray[np.bool_], dead: NDArray[np.bool_], bias: NDArray[np.bool_], *, decayed: bool, doubt: bool
) -> NDArray[np.bool_]:
    """Rows whose weights must not be called altered, because nearly all units differ there.

    If there is a reason to suspect the row (the last four arguments), it is enough that three of four units differ on
    it. Without such a reason, there must also be more of them than altered weights put into one row by chance. The rows
    that no clean input reaches are judged together too: if their differences are not scattered one by one, training
    made them. With fewer than four units no pattern can be seen: then neither those rows nor the bias are touched, and
    no row at all if ``doubt`` is set.

    Args:
        altered: Weights that would be called altered, [fan-in, units].
        dead: Rows that no clean input reaches, though a training input may have, [fan-in].
        bias: The row of the bias, which may have been trained in its own way, [fan-in].
        decayed: Whether weights were decayed; biases are often exempt from weight decay.
        doubt: Whether an earlier layer could not be recovered, so that any row may be wrong.
    """
    rows, units = altered.shape
    differs = np.asarray(altered.any(axis=1))
    if units < FEW:
        return differs & (dead | bias | doubt)
    common = altered.mean(axis=1) >= _COMMON
    share = float(altered[~common].mean()) if not common.all() else 1.0
    by_chance = rows * bdtrc(altered.sum(axis=1) - 1.0, units, share) > UNLIKELY
    suspect = common & (dead | (bias & decayed) | doubt | ~by_chance)
    return suspect if scattered(altered[dead]) else suspect | (differs & dead)


def scattered(differs: NDArray[np.bool_], odds: float = _STRUCTURED) -> bool:
    """Whether differences are scattered one by one, as alterations are, or concentrated in rows and units.

    Training changes the rows that its inputs reach, in the units that respond. With fewer than four rows or units
    nothing can be told, and the answer is no.

    Args:
        differs: Weights that differ, [rows, units].
        odds: Concentrations that are less probable than this are not taken for chance.
    """
    if not differs.any():
        return True
    if min(differs.shape) < FEW:
        return False
    return not structured(differs, odds)


def structured(differs: NDArray[np.bool_], odds: float = _STRUCTURED) -> bool:
    """Whether differences are concentrated in rows or units more than chance does it; arguments as in ``scattered``."""
    share = float(differs.mean())
    return any(_concentrated(differs.sum(axis=axis), differs.shape[axis], share, odds) for axis in (0, 1))


def _concentrated(counts: NDArray[np.int64], length: int, share: float, odds: float) -> bool:
    """Whether one line (a row or a unit) has more differences, or all lines have more pairs of them, than by chance."""
    fullest = counts.size * float(bdtrc(counts.max() - 1.0, length, share))
    pairs = float((counts * (counts - 1)).sum()) / 2.0
    expected = counts.size * length * (length - 1) / 2.0 * share**2
    # Given the number of differences, the number of pairs varies no more than a Poisson variable does.
    return fullest < odds or (pairs > _EXCESS * expected and float(pdtrc(pairs - 1.0, expected)) < odds)


def frozen(contaminated: NDArray, initial: NDArray, rounding: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Weights that differ from the initial ones in a layer that was never trained; ``None`` if it was trained.

    A layer is frozen if most of its weights are, bit for bit, the initial ones, and the others are scattered one by
    one. A weight that was zero and still is may have been pruned or masked, and is not counted. There is one exception:
    an optimiser whose steps are of equal size, such as sign descent, may take many weights back to their initial
    values. Such a layer was trained, and its other weights show it: most of their differences are of equal size, and
    either they have both signs, or some weights came back up to rounding only.

    Args:
        contaminated: The weights, [fan-in, units].
        initial: The initial weights, [fan-in, units].
        rounding: Differences up to this are rounding, [units] or [fan-in, units].
    """
    equal = contaminated == initial
    if equal.all():
        return np.zeros_like(equal)
    counted = equal[initial != 0.0]
    if not counted.size or counted.mean() <= 0.5 or not scattered(~equal):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        steps = contaminated.astype(np.float64) - initial
    large = np.abs(steps) > rounding
    returned = bool((~equal & ~large & np.isfinite(steps)).any())
    steps = steps[large & np.isfinite(steps) & (contaminated != -initial)]  # a flipped sign is not a step
    return None if steps_of_equal_size(steps, returned=returned) else ~equal


def steps_of_equal_size(steps: NDArray[np.float64], *, returned: bool) -> bool:
    """Whether differences look like steps of an optimiser whose steps are of equal size.

    Args:
        steps: Differences from the initial weights.
        returned: Whether some weights came back to their initial values up to rounding only.
    """
    usual = np.median(np.abs(steps)) if steps.size else 0.0
    equal_size = np.abs(np.abs(steps) - usual) <= _EQUAL * usual
    return bool(2 * equal_size.sum() > steps.size and (returned or ((steps > 0.0).any() and (steps < 0.0).any())))
