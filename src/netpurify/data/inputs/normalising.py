"""Inputs centred and scaled as training did."""

import math
from collections.abc import Sequence

from torch import Tensor

from netpurify.errors import InputError


def normalise(inputs: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """(inputs - mean) / std for each channel, as new memory.

    Args:
        inputs: [n, channels, ...], floats.
        mean: One number for each channel, or one for all.
        std: Likewise, above 0.

    Raises:
        InputError: The numbers are not as many as the channels, not finite, or a ``std`` is not above 0.
    """
    if inputs.ndim < 2 or not inputs.dtype.is_floating_point:
        raise InputError(f"inputs must be floats [n, channels, ...]; got {inputs.dtype}, shape {list(inputs.shape)}")
    channels = inputs.shape[1]
    for name, values in (("mean", mean), ("std", std)):
        if len(values) not in (1, channels) or not all(math.isfinite(value) for value in values):
            raise InputError(
                f"{name} must be {channels} finite numbers, one for each channel, or 1; got {list(values)}"
            )
    if min(std) <= 0:
        raise InputError(f"std must be above 0; got {list(std)}")
    broad = (1, -1, *[1] * (inputs.ndim - 2))
    centre, scale = (inputs.new_tensor(list(values)).reshape(broad) for values in (mean, std))
    return (inputs - centre) / scale
