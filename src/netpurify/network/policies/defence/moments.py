"""Second moments of a layer's clean inputs, and the ridge regression that they determine."""

import math

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.errors import InputError
from netpurify.network.adapter.layers import Layer
from netpurify.threads import one_blas_thread

Array = NDArray[np.float64]
ROWS = 10
"""Rows that a fit uses for each coordinate of the fan-in. More would add little: patches of one image are alike."""
_FEWEST = 10_000
"""Rows that a fit uses at least, if there are as many, however small the fan-in."""
_AT_ONCE = 1 << 24
"""How many numbers of a layer's rows are held in memory at a time."""


class Moments:
    """Sums over the rows x that a layer sees in the purified network, and x0 that it sees in the contaminated one.

    For each group S = sum x x' and C = sum x0 x'. Products are computed in the layer's own dtype and added in float64.

    Attributes:
        count: How many rows were used.
    """

    def __init__(self, layer: Layer, now: Tensor, before: Tensor) -> None:
        """``now`` and ``before`` are the layer's inputs in the purified and in the contaminated network."""
        self._second = torch.zeros(layer.groups, layer.fan_in, layer.fan_in, dtype=torch.float64)
        self._cross = torch.zeros_like(self._second)
        self.count = 0
        self._layer = layer
        probe = layer.rows(now[:1])
        every = _stride(probe.shape[1] * len(now) // max(ROWS * layer.fan_in, _FEWEST), probe.shape[1])
        size = max(1, _AT_ONCE // probe.numel())
        for new, old in zip(now.split(size), before.split(size), strict=True):
            self._add(layer.rows(new)[:, ::every], layer.rows(old)[:, ::every])

    def _add(self, now: Tensor, before: Tensor) -> None:
        self._second += (now.mT @ now).double().cpu()
        self._cross += (before.mT @ now).double().cpu()
        self.count += now.shape[1]

    def fit(self, matrix: Array, strength: float) -> tuple[Array, Array]:
        """Ridge regression: weights W~ whose outputs on x are close to those of the contaminated weights W on x0.

        W~ = W C (S + lambda I)^-1 with lambda = strength * mean diagonal of S; all matrices are transposed here.

        Args:
            matrix: The contaminated weights, [groups, fan-in, units].
            strength: The ridge, relative to the mean energy of the layer's inputs.

        Returns:
            The new weights, and the share of the response that is kept in each direction, [groups, fan-in]:
            s / (s + lambda) for the eigenvalues s of S, from the largest on.

        Raises:
            InputError: Weights or inputs are not finite, or the strength is lost in rounding.
        """
        fitted, kept = np.empty_like(matrix), np.ones(matrix.shape[:2])
        with one_blas_thread():
            for group in range(len(matrix)):
                second, cross = self._second[group].numpy(), self._cross[group].numpy()
                if not all(np.isfinite(values).all() for values in (second, cross, matrix[group])):
                    raise InputError(
                        f"{self._name}: weights and what layers see must be finite, and their squares too; NaN or "
                        "infinity is in this layer, or reached it from an earlier one; if weights were altered after "
                        "training, recover them first"
                    )
                ridge = strength * float(np.diagonal(second).mean())
                if ridge == 0.0:  # all inputs are zero
                    fitted[group] = matrix[group]
                    continue
                fitted[group] = self._solve(second, ridge, cross.T @ matrix[group], strength)
                values = np.maximum(np.linalg.eigvalsh(second)[::-1], 0.0)
                kept[group] = values / (values + ridge)
        return fitted, kept

    def _solve(self, second: Array, ridge: float, right: Array, strength: float) -> Array:
        dtype = self._layer.module.weight.dtype
        if not math.isfinite(ridge):
            raise InputError(
                f"{self._name}: strength must leave a finite ridge; {strength} does not; give less, such as 0.1"
            )
        try:
            factor = scipy.linalg.cho_factor(second + ridge * np.eye(len(second)), lower=True)
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"{self._name}: strength must be above the rounding of {dtype}; {strength} is not, in a layer whose "
                "clean inputs leave directions without energy; give more, such as 0.01"
                + ("" if dtype == torch.float64 else ", or the network in float64")
            ) from error
        return scipy.linalg.cho_solve(factor, right)

    @property
    def _name(self) -> str:
        return self._layer.name or "the network"


def _stride(wanted: int, positions: int) -> int:
    """A distance between rows close to ``wanted`` that has no factor in common with the positions of an image.

    With a common factor, only some columns of an image would ever be used, such as every seventh of 28.
    """
    every = max(1, wanted)
    every += 1 - every % 2
    while math.gcd(every, positions) > 1:
        every += 2
    return every
