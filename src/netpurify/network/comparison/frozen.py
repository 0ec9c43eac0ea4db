"""Tensors that were never trained: whether what differs from the base is altered, or may come from training."""

import math

import numpy as np
from numpy.typing import NDArray

from netpurify.network.policies.recovery import evidence

MOST_DIFFER = 0.5
"""A tensor of which more than this share of the entries have other bits than the base was trained."""
_FEW_STEPS = 4.0
"""Differences of up to so many steps of the dtype's grid are rounding: training with steps so short that most were
rounded away, or a conversion through another dtype."""


_FEWEST_STEPS = 5
"""Fewer differences than this are no steps of an optimiser, which moves every weight that has a gradient."""


def narrow(shape: tuple[int, ...]) -> bool:
    """Whether a matrix has too few rows or columns to tell scattered differences from structured ones."""
    return min(shape) < evidence.FEW


def same_value(was: NDArray[np.float64], base: NDArray[np.float64]) -> bool:
    """Whether several entries that differed in the base have one and the same value: training does not do that."""
    return was.size > 1 and bool((was == was[0]).all()) and bool((base != base[0]).any())


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
        return 2 * np.count_nonzero(np.abs(was - base) <= _FEW_STEPS * steps) > was.size


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of a tensor as a matrix: its first axis, and all others."""
    return (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (1, math.prod(shape))
