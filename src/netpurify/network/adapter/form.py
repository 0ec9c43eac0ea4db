"""The matrix form of a layer: which tensors of a state dict make up its weight matrix, and where each entry stands.

The matrix is [groups, fan-in, units of a group]; each bias is one more coordinate of the fan-in, after the weights. A
form is plain data, so that a proof file can hold it and a proof can be checked without the network.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LAYOUTS = ("plain", "transposed")
"""How a weight is stored: *plain* is [units, ...], *transposed* is [channels of the input, units of a group, ...]."""


@dataclass(frozen=True, slots=True)
class Form:
    """How tensors of a state dict become a layer's weight matrix.

    Attributes:
        weight: Name of the weight.
        biases: Names of the biases. Linear layers that share a weight may each have a bias of their own.
        layout: How the weight is stored, one of ``LAYOUTS``.
        groups: How many independent regressions the layer is.
        first: Which entry of a bias belongs to the first unit; the projections of an attention share one bias.
        tied: Further names of these tensors in a state dict, each with the name of the tensor that it is.
    """

    weight: str
    biases: tuple[str, ...] = ()
    layout: str = "plain"
    groups: int = 1
    first: int = 0
    tied: tuple[tuple[str, str], ...] = ()

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors that make up the matrix: the weight, then the biases."""
        return self.weight, *self.biases

    def units(self, shape: Sequence[int]) -> int:
        """Units of all groups, if the weight has this shape."""
        return shape[0] if self.layout == "plain" else self.groups * shape[1]

    def fan_in(self, shape: Sequence[int]) -> int:
        """Length of a unit's weight vector, biases included, if the weight has this shape."""
        return math.prod(shape) // self.units(shape) + len(self.biases)

    def matrix(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The matrix [groups, fan-in, units of a group]. A plain one without a bias is a view of the weight."""
        weight = tensors[self.weight]
        units = self.units(weight.shape)
        if self.layout == "plain":
            flat = weight.reshape(units, -1)
        else:
            flat = weight.reshape(self.groups, -1, units // self.groups, math.prod(weight.shape[2:]))
            flat = flat.transpose(1, 2).reshape(units, -1)
        biases = [tensors[name][self.first : self.first + units, None] for name in self.biases]
        flat = torch.cat([flat, *biases], dim=1) if biases else flat
        return flat.reshape(self.groups, -1, flat.shape[1]).transpose(1, 2)

    def split(self, matrix: Tensor, shape: Sequence[int]) -> tuple[Tensor, ...]:
        """The weight, of this shape, and the units' entries of each bias: the inverse of ``matrix``."""
        units = self.units(shape)
        flat = matrix.transpose(1, 2).reshape(units, -1)
        own = flat.shape[1] - len(self.biases)
        weight = flat[:, :own]
        if self.layout == "transposed":
            weight = weight.reshape(self.groups, units // self.groups, -1, math.prod(shape[2:])).transpose(1, 2)
        return weight.reshape(tuple(shape)), *(flat[:, own + number] for number in range(len(self.biases)))

    def places(
        self, shape: Sequence[int], group: NDArray[np.intp], row: NDArray[np.intp], column: NDArray[np.intp]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Where entries of the matrix stand: the position of the tensor in ``tensors``, the index in that tensor."""
        per_group = self.units(shape) // self.groups
        own = self.fan_in(shape) - len(self.biases)
        unit = group * per_group + column
        if self.layout == "plain":
            index = unit * own + row
        else:
            taps = math.prod(shape[2:])
            channel, tap = np.divmod(row, taps)
            index = ((group * (own // taps) + channel) * per_group + column) * taps + tap
        tensor = np.maximum(row - own + 1, 0)
        return tensor.astype(np.int32), np.where(tensor > 0, self.first + unit, index).astype(np.int64)

    def units_at(
        self, shape: Sequence[int], tensor: NDArray[np.int32], index: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The unit and the row of entries that stand at these places: the inverse of ``places``."""
        per_group, own = self.units(shape) // self.groups, self.fan_in(shape) - len(self.biases)
        if self.layout == "plain":
            unit, row = np.divmod(index, own)
        else:
            taps = math.prod(shape[2:])
            rest, tap = np.divmod(index, taps)
            channel, column = np.divmod(rest, per_group)
            group, channel = np.divmod(channel, own // taps)
            unit, row = group * per_group + column, channel * taps + tap
        is_bias = tensor > 0
        return np.where(is_bias, index - self.first, unit), np.where(is_bias, own + tensor - 1, row)


def module_form(name: str, *, bias: bool, layout: str = "plain", groups: int = 1) -> Form:
    """The form of a module that has a ``weight`` and perhaps a ``bias``."""
    weight, *biases = tensor_names(name, bias=bias)
    return Form(weight, tuple(biases), layout, groups)


def tensor_names(name: str, *, bias: bool) -> tuple[str, ...]:
    """Names of a module's weight and bias in a state dict."""
    prefix = f"{name}." if name else ""
    return (f"{prefix}weight", f"{prefix}bias") if bias else (f"{prefix}weight",)
