"""Half precision: the grid on which weights are stored, and networks that are computed in float32 and returned in half.

A stored weight is off by at most half a step of its grid. The step doubles with every binade: in bfloat16 it is 1/128
of the binade's lower end, in float16 1/1024; below the smallest normal number it stays as it is there.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Array = NDArray[np.float64]
HALF = (torch.bfloat16, torch.float16)
"""Dtypes whose rounding is larger than most of what fine-tuning changes, so that it must be known weight by weight."""


@dataclass(frozen=True, slots=True)
class HalfGrid:
    """In which dtypes the matrix of a layer is stored: its last rows are the biases, if there are any.

    Attributes:
        weights: Dtypes of the contaminated weight and of its biases.
        initial: Dtypes of the initial weight and biases; empty if there are no initial weights.
    """

    weights: tuple[torch.dtype, ...]
    initial: tuple[torch.dtype, ...] = ()

    @property
    def half(self) -> bool:
        """Whether some of the contaminated weights are stored in half precision."""
        return any(dtype in HALF for dtype in self.weights)

    @property
    def words(self) -> str:
        """The dtypes in half precision by name."""
        return " and ".join(dict.fromkeys(str(dtype).removeprefix("torch.") for dtype in self.weights if dtype in HALF))

    def to_grid(self, matrix: NDArray) -> NDArray:
        """The numbers [..., fan-in, units] that are stored in place of these; too large ones become the largest."""
        return _by_row(matrix, self.weights, round_to)

    def half_steps(self, matrix: NDArray) -> Array:
        """Half a step of the grid of the contaminated weights at each of these numbers [..., fan-in, units]."""
        return _by_row(matrix.astype(np.float64), self.weights, half_step)

    def initial_half_steps(self, matrix: NDArray) -> Array:
        """The same for the initial weights; zero where these are float32 or float64, whose rounding is negligible."""
        if not self.initial:
            return np.zeros(matrix.shape)
        return _by_row(
            matrix.astype(np.float64), self.initial, lambda rows, dtype: half_step(rows, dtype) * (dtype in HALF)
        )


def _by_row(matrix, dtypes, function):  # arrays of any float type
    first, *biases = dtypes
    values = function(matrix, first)
    for number, dtype in enumerate(biases):
        row = matrix.shape[-2] - len(biases) + number
        if dtype != first:
            values[..., row, :] = function(matrix[..., row, :], dtype)
    return values


def half_step(values: Array, dtype: torch.dtype) -> Array:
    """Half the distance of a number of this dtype to the next one, for numbers of this size."""
    limits = torch.finfo(dtype)
    sizes = np.abs(values)
    sizes = np.where(np.isfinite(sizes), np.clip(sizes, limits.smallest_normal, limits.max), limits.max)
    return 0.5 * limits.eps * np.exp2(np.floor(np.log2(sizes)))


def round_to(values: NDArray, dtype: torch.dtype) -> NDArray:
    """The nearest numbers of this dtype, in the array's own; finite numbers stay finite."""
    limits = torch.finfo(dtype)
    bounded = np.where(np.isfinite(values), np.clip(values, limits.min, limits.max), values)
    return torch.from_numpy(bounded).to(dtype).double().numpy().astype(values.dtype)


def in_float32(model: nn.Module) -> dict[str, torch.dtype]:
    """Convert a network's tensors of half precision to float32, in place; gives the dtypes that they had, by name.

    Every half-precision number is a float32 number, so no weight changes. Activations are then as exact as those of a
    float32 network, which the span of a layer's inputs needs.
    """
    dtypes = {name: value.dtype for name, value in _tensors(model) if value.dtype in HALF}
    if dtypes:
        for _, value in _tensors(model):
            if value.dtype in HALF:
                value.grad = None
                value.data = value.data.float()
    return dtypes


def without_rounding(
    model: nn.Module, dtypes: Mapping[str, torch.dtype], initial: Mapping[str, Tensor], left_out: Collection[str]
) -> set[str]:
    """Give tensors that were never trained the numbers that they were rounded from, in place; gives their names.

    Training saw the network before it was rounded. If a frozen part is rounded, what it passes on is off by a share of
    1/256 in bfloat16, and later layers would be judged by inputs that they never had.

    Args:
        model: The network, after ``in_float32``.
        dtypes: What ``in_float32`` gave.
        initial: The initial weights; those in half precision are as exact as the tensors themselves.
        left_out: Names of tensors that keep their numbers.
    """
    exact = set()
    for name, value in _tensors(model):
        given = initial.get(name)
        if name not in dtypes or name in left_out or given is None or given.shape != value.shape:
            continue
        if given.dtype in (torch.float32, torch.float64):
            given = given.to(value)
            if torch.equal(given.to(dtypes[name]).float(), value.detach()):
                value.data = given.clone()
                exact.add(name)
    return exact


def as_stored(model: nn.Module, dtypes: Mapping[str, torch.dtype], weights: Mapping[str, Tensor]) -> nn.Module:
    """Undo ``in_float32``, in place; gives the network.

    Args:
        model: The network, or a copy of it to which guards were added; a guard takes the dtype of its module.
        dtypes: What ``in_float32`` gave.
        weights: The tensors as they came: where a number is the same as before, it gets its own bits back, also a NaN.
    """
    if not dtypes:
        return model
    owners = {name.rpartition(".")[0]: dtype for name, dtype in reversed(list(dtypes.items()))}
    known = dict(_tensors(model))
    for name, value in known.items():
        guarded = name.rpartition(".")[0].removesuffix("guard").removesuffix(".")
        is_guard = name not in weights and name.rpartition(".")[0].endswith("guard")
        dtype = dtypes.get(name, owners.get(guarded) if is_guard else None)
        if dtype is None:
            continue
        limits = torch.finfo(dtype)
        finite = value.detach().clamp(limits.min, limits.max)
        stored = torch.where(value.detach().isfinite(), finite, value.detach()).to(dtype)
        if name in weights:
            before = weights[name].to(value.device)
            same = (before.float() == value.detach()) | (before.isnan() & value.detach().isnan())
            stored = torch.where(same, before, stored)
        value.data = stored
    return model


def _tensors(model: nn.Module) -> list[tuple[str, Tensor]]:
    """Parameters and buffers by their names, each under every name that it has; lazy ones are left out."""
    named = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    lazy = nn.UninitializedParameter | nn.UninitializedBuffer
    return [(name, value) for name, value in named if not isinstance(value, lazy)]
