"""numpy arrays and torch tensors in, the same kind out."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from netpurify.errors import InputError

ArrayLike = np.ndarray | torch.Tensor
"""What the solver takes and returns."""


def to_numpy(values: ArrayLike, name: str) -> NDArray:
    """View or copy ``values`` as a numpy array of real numbers; bfloat16 becomes float32, which holds it exactly."""
    if isinstance(values, torch.Tensor):
        if values.dtype == torch.bfloat16:
            values = values.float()
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers; got dtype {array.dtype}")
    return array


def kind_of(values: ArrayLike) -> Callable[[NDArray], ArrayLike]:
    """Return the function that turns a numpy answer into the caller's kind: numpy, or torch on the same device."""
    if isinstance(values, torch.Tensor):
        device = values.device
        return lambda array: torch.from_numpy(array).to(device)
    return lambda array: array
