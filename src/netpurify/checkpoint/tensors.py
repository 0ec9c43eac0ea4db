"""A tensor as plain bytes, and digests of them: the same for the same values, however they lie in memory."""

import hashlib
import json
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.errors import InputError


def digest(state: Mapping[str, Tensor]) -> str:
    """The SHA-256 digest of weights: of their names, dtypes, shapes and bits.

    The order of the names, the device and the memory layout do not matter; a sign of zero or a payload of NaN does.
    It is the digest of one line for each name in sorted order: the name as JSON, a space, ``digest_tensor``, a line
    feed.

    Args:
        state: Name -> tensor of any shape and dtype.

    Raises:
        InputError: A name is not text, or a tensor is sparse, quantised, nested or has no values (meta).
    """
    require_plain(state)
    return join_digests({name: digest_tensor(tensor) for name, tensor in state.items()})


def join_digests(digests: Mapping[str, str]) -> str:
    """The digest of weights from the ``digest_tensor`` of each of them, by name."""
    total = hashlib.sha256()
    for name in sorted(digests):
        total.update(f"{json.dumps(name)} {digests[name]}\n".encode())
    return total.hexdigest()


def digest_tensor(tensor: Tensor) -> str:
    """The SHA-256 digest of one tensor: of a line such as ``float32 [2, 3]`` and of its bytes, row by row.

    Raises:
        InputError: The tensor is sparse, quantised, nested or has no values (meta).
    """
    kind = unusual(tensor)
    if kind:
        raise InputError(f"a digest needs a dense tensor with values; got a {kind} tensor; make it dense first")
    dtype = str(tensor.dtype).removeprefix("torch.")
    total = hashlib.sha256(f"{dtype} {list(tensor.shape)}\n".encode())
    total.update(raw_bytes(tensor).data)
    return total.hexdigest()


def raw_bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """The values of a dense tensor, row by row, as bytes; a view if they lie in that order in memory, else a copy."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    # Not reshape: a tensor with a single entry may have any stride and is contiguous all the same.
    return plain.as_strided((plain.numel(),), (1,)).view(torch.uint8).numpy()


def unusual(tensor: Tensor) -> str | None:
    """The kind of a tensor that is not a dense array of values (``"sparse"``, ``"meta"``...), or else ``None``."""
    if tensor.is_nested:
        return "nested"
    if tensor.layout != torch.strided:
        return "sparse"
    if tensor.is_quantized:
        return "quantised"
    return "meta" if tensor.is_meta else None


def require_plain(state: Mapping[str, Tensor]) -> None:
    """Refuses anything but names with dense tensors, by name.

    Raises:
        InputError: A name is not text, a value is no tensor, or a tensor is sparse, quantised, nested or meta.
    """
    for name, tensor in state.items():
        if not isinstance(name, str):
            raise InputError(f"the names of weights must be text; got {name!r}; give a model's state_dict()")
        if not isinstance(tensor, Tensor):
            raise InputError(f"{name} must be a tensor; got {type(tensor).__name__}; leave it out or make it a tensor")
        kind = unusual(tensor)
        if kind:
            remedy = "load its values" if kind == "meta" else "make it dense"
            raise InputError(
                f"{name} must be a dense tensor with values; got a {kind} tensor; {remedy} or leave it out"
            )
