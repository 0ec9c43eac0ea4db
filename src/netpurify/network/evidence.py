"""What counts as altered where no proof is to be had, and what must not."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, pdtrc

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
_UNLIKELY = 0.01
_SURPLUS = 5


def recovered(certificate: lad.Certificate, rank: int) -> NDArray[np.bool_]:
    """Which fits have the evidence that they are the truth, [units].

    Where the misfit is dense, a residual or two fall below the noise floor by chance. So the weights that agree must
    exceed the rank by five and a twentieth of it, not by one.
    """
    good = np.isin(certificate.status, (lad.Status.CLEAN, lad.Status.RECOVERED))
    return good & (certificate.surplus >= _SURPLUS + rank // 20)


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
    altered: NDArray[np.bool_], dead: NDArray[np.bool_], *, spared: NDArray[np.bool_], doubt: bool
) -> NDArray[np.bool_]:
    """Rows whose weights must not be called altered, because nearly all units differ there.

    Where there is a reason to suspect a row, that is enough; elsewhere it must be more than chance makes of altered
    weights. Fewer than four units cannot tell row by row: then dead rows count together, and if any row may be wrong,
    none is touched.

    Args:
        altered: What would be called altered, [fan-in, units].
        dead: Rows that clean inputs never light, though training's may have, [fan-in].
        spared: Rows that weight decay may have spared: the bias, where the weights were decayed, [fan-in].
        doubt: Whether a layer before could not be recovered, so that any row may be wrong.
    """
    rows, units = altered.shape
    if units < _FEW:
        if doubt:
            return np.asarray(altered.any(axis=1))
        trained = dead.any() and altered[dead].mean() >= _COMMON
        return (dead & trained) | (spared & altered.any(axis=1))
    common = altered.mean(axis=1) >= _COMMON
    share = float(altered[~common].mean()) if not common.all() else 1.0
    by_chance = rows * bdtrc(altered.sum(axis=1) - 1.0, units, share) > _UNLIKELY
    return common & (dead | spared | doubt | ~by_chance)


def frozen(equal: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Weights of a layer that was never trained but differ from the initial ones; ``None`` if it was trained.

    A layer is frozen if most of its weights are the initial ones. It is not if there are rows or units on
    which nearly all differ, more than chance makes: those were trained (rare inputs, a unit that was fine-tuned).

    Args:
        equal: Which weights are the initial ones up to rounding, [fan-in, units].
    """
    if equal.all():
        return np.zeros_like(equal)
    if min(equal.shape) < _FEW:
        return None
    differs = ~equal
    rows, units = differs.mean(axis=1) < _COMMON, differs.mean(axis=0) < _COMMON
    asked = rows[:, None] & units
    share = float(differs[asked].mean()) if asked.any() else 1.0
    if share >= 0.5:
        return None
    lines = (~rows, equal.shape[1]), (~units, equal.shape[0])
    trained = any(float(pdtrc(int(line.sum()) - 1, _expected(line.size, share, length))) < _UNLIKELY
                  for line, length in lines if line.any())  # fmt: skip
    return None if trained else differs


def _expected(lines: int, share: float, length: int) -> float:
    """How many lines of this length differ nearly everywhere, if each entry does so by itself."""
    return lines * float(bdtrc(np.ceil(_COMMON * length) - 1.0, length, share))
