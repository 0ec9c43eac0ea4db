"""Floats as the integers with the same bits: only so can -0.0 and 0.0, and one NaN and another, be told apart."""

import torch
from torch import Tensor

from netpurify.errors import InputError

_WORD = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


def check_float(values: Tensor, name: str) -> None:
    """Refuses a tensor of any other dtype than float64, float32, float16 or bfloat16."""
    if values.dtype not in _WORD:
        raise InputError(
            f"{name} must be float64, float32, float16 or bfloat16; got {values.dtype}; leave it out or convert it"
        )


def to_bits(values: Tensor) -> Tensor:
    """The same memory seen as signed integers of the same width."""
    return values.view(_WORD[values.dtype])


def from_bits(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """The same memory seen as floats again."""
    return bits.view(dtype)
