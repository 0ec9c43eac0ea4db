"""Tensors that were never trained: whether what differs from the base is altered, or may come from training."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.network.comparison.settling import joint_odds
from netpurify.network.policies.recovery import evidence

MOST_DIFFER = 0.5
"""A tensor of which more than this share of the entries have other bits than the base was trained."""
_FEW_STEPS = 4.0
"""Differences of up to so many steps of the dtype's grid are rounding: training with steps so short that most were
rounded away, or a conversion through another dtype."""
_SAMPLE = 20_000
"""Entries whose sizes are compared, at equal distances."""


_FEW_OF_A_VECTOR = 0.125
"""A vector without other tensors in its module is altered only if at most this share of its entries differ."""
_FEWEST_STEPS = 5
"""Fewer differences than this are no steps of an optimiser, which moves every weight that has a gradient."""


def narrow(shape: tuple[int, ...]) -> bool:
    """Whether a matrix has too few rows or columns to tell scattered differences from structured ones."""
    return min(shape) < evidence.FEW


def may_be_trained(differs: NDArray[np.bool_], dimensions: int) -> bool:
    """Whether training of a narrow tensor may have left most entries as they were, however scattered the others are.

    The entries of a matrix keep their bits where the inputs of training were zero, as those of a head with one unit
    behind a ReLU. Training changes nearly all entries of a bias or a norm.

    Args:
        differs: Entries that differ, as a matrix.
        dimensions: Of the tensor.
    """
    return narrow(differs.shape) and (dimensions > 1 or bool(differs.mean() > _FEW_OF_A_VECTOR))


def overwritten(was: Tensor, base: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether the entries that differ have one and the same value, and did not in the base: training does not do that.

    Args:
        was: The entries that differ.
        base: Their values in the base.
        shape: Of the tensor. If most of it differs, a bias or a norm may have been set to a constant anew.
    """
    if was.numel() < 2 or (was.numel() > MOST_DIFFER * math.prod(shape) and narrow(matrix_shape(shape))):
        return False
    return bool((was == was[0]).all()) and bool((base != base[0]).any())


def unchanged(base: Tensor, differs: Tensor) -> tuple[NDArray[np.float64], int]:
    """Sizes of entries that do not differ, and how many there are; of many, a sample at equal distances, ascending.

    An entry that was zero and still is may have been pruned or masked: it does not count.
    """
    total = int(torch.count_nonzero(~differs & (base != 0)))
    some, same = _sample(base.reshape(-1)), ~_sample(differs.reshape(-1))
    return np.sort(some[same & (some != 0)].double().abs().numpy()), total


def odds_of_small(sizes: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """The probability that entries at random places are together as small as these; low if steps were rounded away.

    A step of training is rounded away unless the entry is small, before and after the step. An alteration chooses its
    entry for another reason, or makes it large.

    Args:
        sizes: Of the entries that differ: before or after, whichever is larger.
        others: Sizes of the entries that do not differ, ascending.
    """
    if not others.size:
        return 1.0
    sizes = _sample(torch.from_numpy(np.nan_to_num(sizes, nan=np.inf))).numpy()
    left, right = (np.searchsorted(others, sizes, side=side) for side in ("left", "right"))
    ranks = (0.5 * (left + right) + 1.0) / (others.size + 1.0)
    return joint_odds(np.minimum(ranks, 1.0))


def _sample(values: Tensor) -> Tensor:
    return values[:: max(1, -(-values.numel() // _SAMPLE))]


def by_steps(was: NDArray[np.float64], base: NDArray[np.float64], steps: NDArray[np.float64]) -> bool:
    """Whether most differences are steps of equal size, as an optimiser makes them."""
    with np.errstate(over="ignore", invalid="ignore"):
        changes = was - base
    small = np.abs(changes) <= _FEW_STEPS * steps
    moved = np.isfinite(changes) & ~small & (was != -base)  # a flipped sign is not a step
    if np.count_nonzero(moved) < _FEWEST_STEPS:
        return False
    return evidence.steps_of_equal_size(changes[moved], returned=bool((small & np.isfinite(changes)).any()))


def by_rounding(was: NDArray[np.float64], base: NDArray[np.float64], steps: NDArray[np.float64]) -> bool:
    """Whether most differences are as small as rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(2 * np.count_nonzero(np.abs(was - base) <= _FEW_STEPS * steps) > was.size)


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of a tensor as a matrix: its first axis that is longer than 1, and all others."""
    while len(shape) > 1 and shape[0] == 1:  # as of positions, [1, positions, features]
        shape = shape[1:]
    return (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (1, math.prod(shape))


def in_lines(differs: NDArray[np.bool_]) -> bool:
    """Whether a matrix with few rows or columns differs in whole ones, as training does.

    An embedding of two token types has one row that training reached, and a head with two units has the columns of the
    inputs that are not zero.

    Args:
        differs: Entries that differ, as a matrix.
    """
    if min(differs.shape) < 2:
        return False
    lines = [differs.mean(axis=axis) for axis in (0, 1) if differs.shape[axis] >= evidence.FEW]
    return any(bool((shares > MOST_DIFFER).any()) for shares in lines) or evidence.structured(
        differs, evidence.UNLIKELY
    )
