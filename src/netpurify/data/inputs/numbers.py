"""Arrays of any dtype as new tensors of the dtype in which a network takes them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.data.inputs.naming import Dtype, target
from netpurify.errors import DataError

_LARGEST = 2**63 - 1
_UNSIGNED = getattr(torch, "uint64", None)  # older versions of torch do not have it


def to_target(path: Path, values: Any, dtype: Dtype, *, name: str | None) -> Tensor:
    """A copy of an array or tensor, row by row, in the dtype that ``naming.target`` says.

    Raises:
        DataError: It holds complex numbers, whole numbers beyond int64, or fractions where whole numbers are wanted.
    """
    if isinstance(values, Tensor):
        return _from_tensor(path, values, dtype, name)
    return _from_array(path, values, dtype, name)


def _from_array(path: Path, array: NDArray, dtype: Dtype, name: str | None) -> Tensor:
    wanted = target(array.dtype.kind, array.dtype.itemsize, dtype, name=name)
    if wanted == "int64":
        _require_whole(path, array.dtype.kind, lambda: bool((array == np.trunc(array)).all()))
        if array.size and array.dtype.kind in "uf" and float(array.max()) > _LARGEST:
            raise _beyond(path)
    with np.errstate(over="ignore", invalid="ignore"):  # of longer floats; what becomes infinite is refused later
        return torch.from_numpy(array.astype(wanted, order="C"))


def _from_tensor(path: Path, tensor: Tensor, dtype: Dtype, name: str | None) -> Tensor:
    if tensor.is_complex():
        raise DataError(f"{path}: expected whole or real numbers; got {tensor.dtype}; save real numbers")
    kind = "f" if tensor.is_floating_point() else "b" if tensor.dtype == torch.bool else "i"
    wanted = target(kind, tensor.element_size(), dtype, name=name)
    copy = tensor.to(getattr(torch, wanted), copy=True).contiguous()
    if wanted == "int64":
        _require_whole(path, kind, lambda: bool((tensor == tensor.trunc()).all()))
        if (tensor.dtype == _UNSIGNED and bool((copy < 0).any())) or (
            kind == "f" and bool((tensor.abs() > _LARGEST).any())
        ):
            raise _beyond(path)
    return copy


def _require_whole(path: Path, kind: str, whole: Any) -> None:
    if kind == "f" and not whole():
        raise DataError(f"{path}: expected whole numbers for the dtype int64; got fractions; leave the dtype out")


def _beyond(path: Path) -> DataError:
    return DataError(f"{path}: expected whole numbers up to {_LARGEST}; got larger ones, which are no token ids")
