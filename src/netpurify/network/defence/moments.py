"""Second moments of a layer's clean inputs, and the matched ridge fit that they decide."""

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.errors import InputError
from netpurify.lad.blas import one_thread

Array = NDArray[np.float64]


class Moments:
    """Sums over rows x that a layer sees in the purified network, and x0 that it saw in the contaminated one.

    One pair for each group, float64: S = sum x x', C = sum x0 x'.
    """

    def __init__(self, groups: int, fan_in: int) -> None:  # noqa: D107
        self._second = torch.zeros(groups, fan_in, fan_in, dtype=torch.float64)
        self._cross = torch.zeros_like(self._second)
        self.count = 0

    def add(self, now: Tensor, before: Tensor) -> None:
        """Rows of both networks for the same inputs, [groups, rows, fan-in] each."""
        now, before = now.double().cpu(), before.double().cpu()
        self._second += now.mT @ now
        self._cross += before.mT @ now
        self.count += now.shape[1]

    def fit(self, matrix: Array, strength: float) -> tuple[Array, Array]:
        """The layer that gives on x what the given one gave on x0, as far as clean inputs have the energy to say.

        W~ = W C (S + lambda I)^-1 with lambda = strength * mean diagonal of S; here transposed.

        Args:
            matrix: The contaminated weights, [groups, fan-in, units].
            strength: Of the ridge.

        Returns:
            The new weights, and the share of each direction's response that is kept, [groups, fan-in]: s / (s + lambda)
            for the eigenvalues s of S, from the largest on.
        """
        fitted, kept = np.empty_like(matrix), np.ones(matrix.shape[:2])
        with one_thread():
            for group in range(len(matrix)):
                second, cross = self._second[group].numpy(), self._cross[group].numpy()
                if not all(np.isfinite(part).all() for part in (second, cross, matrix[group])):
                    raise InputError(
                        "weights and what layers see must be finite; NaN or infinity is in this layer, or reached it "
                        "from one before; if weights were altered after training, recover them first"
                    )
                ridge = strength * float(np.diagonal(second).mean())
                if ridge == 0.0:  # no input, or nothing to forget
                    fitted[group] = matrix[group]
                    continue
                factor = scipy.linalg.cho_factor(second + ridge * np.eye(len(second)), lower=True)
                fitted[group] = scipy.linalg.cho_solve(factor, cross.T @ matrix[group])
                values = np.maximum(np.linalg.eigvalsh(second)[::-1], 0.0)
                kept[group] = values / (values + ridge)
        return fitted, kept
