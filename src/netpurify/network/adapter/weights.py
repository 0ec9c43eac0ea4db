"""A layer's contaminated and initial weights, and which of them are missing."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.network.adapter.grid import HALF, HalfGrid

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_ABSURD = 1e6
"""A weight that is this many times as large as usual in its layer is certainly wrong, and counts as missing."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Contaminated and initial weights of a layer, in the layer's dtype; in float32 if it is half precision.

    Attributes:
        contaminated: [groups, fan-in, units].
        initial: [groups, fan-in, units].
        missing: Contaminated weights that are NaN, infinite or absurdly large, [groups, fan-in, units].
        bias: How many of the last rows are biases.
        grid: In which dtypes they are stored, if some of them are in half precision; else ``None``.
        frozen: Whether the layer is known to be never trained, so that any difference is an alteration.
        rounded_away: Whether steps of training were rounded away in the network, so that a trained layer may have most
            of its initial bits.
    """

    contaminated: NDArray
    initial: NDArray
    missing: Mask
    bias: int
    grid: HalfGrid | None = None
    frozen: bool = False
    rounded_away: bool = False

    @classmethod
    def of(cls, matrix: Tensor, reference: Tensor, *, bias: int, grid: HalfGrid | None = None) -> "Weights":
        """From two matrices of a layer, the contaminated and the initial one."""
        # Copies, because without a bias a matrix is a view of the network's own memory, which is overwritten later.
        contaminated, initial = (
            value.to("cpu", torch.float32 if value.dtype in HALF else None, copy=True).numpy()
            for value in (matrix, reference)
        )
        sizes = np.maximum(np.abs(contaminated), np.abs(initial))
        # If all initial weights are 0, the lower decile of the layer's sizes is usual, since nine in ten weights may be
        # altered. Weights that are still 0 are not counted: no training input reached them, or they were pruned.
        present = sizes[sizes != 0.0]
        tenth = present.size // 10
        lower = float(np.partition(present, tenth)[tenth]) if present.size else 0.0
        usual = max(float(np.abs(initial).max()), lower if np.isfinite(lower) else 0.0)
        with np.errstate(invalid="ignore"):
            missing = ~(sizes <= _ABSURD * usual)
        return cls(contaminated, initial, missing, bias, grid if grid is not None and grid.half else None)

    @property
    def groups(self) -> int:
        """How many independent regressions the layer is."""
        return self.contaminated.shape[0]

    @property
    def units(self) -> int:
        """Units of one group."""
        return self.contaminated.shape[2]

    def start(self, group: int, units: slice | NDArray, decay: float = 1.0) -> Array:
        """The initial weights, shrunk by weight decay, [fan-in, units]."""
        return decay * self.initial[group][:, units].astype(np.float64)

    def difference(self, group: int, units: slice | NDArray, decay: float = 1.0) -> Array:
        """Contaminated minus shrunk initial weights, [fan-in, units]; NaN where missing."""
        with np.errstate(over="ignore", invalid="ignore"):
            difference = self.contaminated[group][:, units] - self.start(group, units, decay)
        difference[self.missing[group][:, units]] = np.nan
        return difference

    @property
    def stored_initial(self) -> NDArray:
        """The initial weights as they would be stored in the layer's own dtype, [groups, fan-in, units]."""
        return self.initial if self.grid is None else self.grid.to_grid(self.initial)

    @property
    def bias_row(self) -> Mask:
        """A mask of the rows that are biases, [fan-in]; all False without a bias."""
        rows = np.zeros(self.contaminated.shape[1], np.bool_)
        rows[rows.size - self.bias :] = True
        return rows

    def rounding(self, group: int) -> Array:
        """The noise floor of each unit of a group, [units]: the rounding of a few hundred steps of training, added up.

        In half precision it is that of each single weight, [fan-in, units]: half a step of its grid is added, or of the
        initial weight's if that is larger, and half a step more if the initial weight is in half precision too.
        """
        sizes = np.maximum(np.abs(self.contaminated[group]), np.abs(self.initial[group])).astype(np.float64)
        sizes[self.missing[group]] = np.abs(self.initial[group]).astype(np.float64)[self.missing[group]]
        typical = np.median(sizes, axis=0)
        typical = np.minimum(typical, np.median(typical))  # a unit that is all noise must not raise its own floor
        steps = 256.0 * np.finfo(self.contaminated.dtype).eps * typical
        if self.grid is None:
            return steps
        # The larger of both, since a weight that was set to zero must not count as the most exact of all.
        return steps + self.grid.half_steps(sizes) + self.grid.initial_half_steps(self.initial[group])

    def untouched(self, group: int, units: slice | NDArray) -> Mask:
        """Units of which every weight is stored as the initial one would be, [units]."""
        return (self.contaminated[group][:, units] == self.stored_initial[group][:, units]).all(axis=0)

    def few_steps(self, count: int) -> Mask:
        """Weights in half precision that are at most ``count`` steps of the grid away from the initial ones."""
        assert self.grid is not None, "only half precision has a grid that is coarse enough to count steps"
        start = self.stored_initial
        larger = np.maximum(np.abs(self.contaminated), np.abs(start))
        return np.abs(self.contaminated - start) <= 2.0 * count * self.grid.half_steps(larger)


def part_of(weights: Weights, units: NDArray[np.int64] | NDArray[np.bool_]) -> Weights:
    """The weights of some units alone, counted within their group."""
    arrays = (values[:, :, units] for values in (weights.contaminated, weights.initial, weights.missing))
    return Weights(*arrays, bias=weights.bias, grid=weights.grid, rounded_away=weights.rounded_away)


def to_tensor(matrix: NDArray, like: Tensor) -> Tensor:
    """A layer's matrix as a tensor of the dtype and on the device of ``like``."""
    return torch.from_numpy(matrix).to(like)
