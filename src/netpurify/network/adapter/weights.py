"""A layer's weights as they came and as training began, and what of them is missing."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_ABSURD = 1e6
"""A weight this many times what is usual in its layer tells nothing but that it is wrong."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Contaminated and initial weights of a layer in their own dtype, [groups, fan-in, units], and what is missing."""

    contaminated: NDArray
    initial: NDArray
    missing: Mask
    bias: bool

    @classmethod
    def of(cls, matrix: Tensor, reference: Tensor, *, bias: bool) -> "Weights":
        """Both as matrices of a layer; NaN, infinite and absurd weights are missing."""
        # Copies: without a bias, a matrix is a view of the network's own memory, which is written over later.
        contaminated, initial = (value.to("cpu", copy=True).numpy() for value in (matrix, reference))
        sizes = np.maximum(np.abs(contaminated), np.abs(initial))
        # Where initial weights are 0, the small ones of the layer say what is usual: nine in ten may be altered. Those
        # that are 0 still say nothing: rows that training never lit, weights that were pruned.
        present = np.sort(sizes[sizes != 0.0])
        lower = float(present[present.size // 10]) if present.size else 0.0
        usual = max(float(np.abs(initial).max()), lower if np.isfinite(lower) else 0.0)
        with np.errstate(invalid="ignore"):
            missing = ~(sizes <= _ABSURD * usual)
        return cls(contaminated, initial, missing, bias)

    @property
    def groups(self) -> int:
        """Independent regressions."""
        return self.contaminated.shape[0]

    @property
    def units(self) -> int:
        """Units of one group."""
        return self.contaminated.shape[2]

    def start(self, group: int, units: slice | NDArray, decay: float = 1.0) -> Array:
        """What training started from, less what decay took: [fan-in, units]."""
        return decay * self.initial[group][:, units].astype(np.float64)

    def difference(self, group: int, units: slice | NDArray, decay: float = 1.0) -> Array:
        """Contaminated minus what training started from, [fan-in, units]; NaN where missing."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.contaminated[group][:, units] - self.start(group, units, decay)
        found[self.missing[group][:, units]] = np.nan
        return found

    @property
    def bias_row(self) -> Mask:
        """Which row is the bias, [fan-in]; none if there is no bias."""
        rows = np.zeros(self.contaminated.shape[1], np.bool_)
        rows[-1] = self.bias
        return rows

    def rounding(self, group: int) -> Array:
        """What some hundred steps of training round away, for each unit of a group."""
        sizes = np.maximum(np.abs(self.contaminated[group]), np.abs(self.initial[group])).astype(np.float64)
        sizes[self.missing[group]] = np.abs(self.initial[group]).astype(np.float64)[self.missing[group]]
        typical = np.median(sizes, axis=0)
        typical = np.minimum(typical, np.median(typical))  # a unit that is all noise has no say in its own floor
        return 256.0 * np.finfo(self.contaminated.dtype).eps * typical


def to_tensor(matrix: NDArray, like: Tensor) -> Tensor:
    """A layer's matrix as a tensor of the dtype and on the device of ``like``."""
    return torch.from_numpy(matrix).to(like)
