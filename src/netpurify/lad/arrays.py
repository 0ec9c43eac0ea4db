"""numpy arrays and torch tensors in, the same kind out; torch is never imported here, only recognised."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, Union

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError

if TYPE_CHECKING:
    import torch

ArrayLike: TypeAlias = Union[np.ndarray, "torch.Tensor"]
"""What the solver takes and returns."""

_SMALLEST, _LARGEST = 1e-150, 1e150
"""Bounds for the sizes of a design's entries, within which squares neither vanish nor overflow."""


def is_tensor(values: Any) -> "TypeGuard[torch.Tensor]":
    """Whether ``values`` is a torch tensor; nobody has one before torch is imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def to_numpy(values: ArrayLike, name: str) -> NDArray:
    """View or copy ``values`` as a numpy array of real numbers; bfloat16 becomes float32, which holds it exactly."""
    if is_tensor(values):
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers; got dtype {array.dtype}")
    return array


def to_matrix(matrix: ArrayLike) -> tuple[NDArray[np.float64], float]:
    """A design as float64, C-ordered, and the rounding unit of the dtype in which it was given.

    Raises:
        InputError: The matrix is not two-dimensional, not real or not finite, or its entries are too large or small.
    """
    values = to_numpy(matrix, "the design")
    if values.ndim != 2:
        raise InputError(f"the design must be a matrix [k, q]; got shape {list(values.shape)}")
    unit = np.finfo(values.dtype).eps if values.dtype.kind == "f" else np.finfo(np.float64).eps
    values = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InputError(
            f"the design must be finite; entry [{row}, {column}] is {values[row, column]}; "
            "drop that row, or that column, first"
        )
    sizes = np.abs(values[values != 0.0])
    if sizes.size and not (sizes.min() > _SMALLEST and sizes.max() < _LARGEST):
        raise InputError(
            f"the design's entries must lie between {_SMALLEST:g} and {_LARGEST:g} in size, so that squares "
            f"neither vanish nor overflow; got {sizes.min():g} to {sizes.max():g}; rescale its columns"
        )
    return values, float(unit)


def kind_of(values: ArrayLike) -> Callable[[NDArray], ArrayLike]:
    """Return the function that turns a numpy answer into the caller's kind: numpy, or torch on the same device."""
    if not is_tensor(values):
        return lambda array: array
    import torch

    device = values.device
    return lambda array: torch.from_numpy(array).to(device)
