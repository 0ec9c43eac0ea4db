"""Compares two states bit for bit: which tensors differ, and in which entries."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from netpurify.checkpoint import raw_bytes, require_plain


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """How one tensor differs between two states.

    Attributes:
        name: Its name in both.
        dtypes: In the first and the second state.
        shapes: In the first and the second state.
        entries: How many it has, in the first state.
        changed: Entries whose bits differ; all of them if dtype or shape do.
        largest: Largest change of an entry; infinite or NaN if a changed entry is, NaN if dtype or shape differ.
        first: Positions of the first few changed entries in the flattened tensor.
    """

    name: str
    dtypes: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    entries: int
    changed: int
    largest: float
    first: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """How two states differ.

    Attributes:
        tensors: The tensors that are in both and differ, in the order of the first state.
        only_first: Names that only the first state has.
        only_second: Names that only the second state has.
        compared: Tensors that are in both.
    """

    tensors: tuple[TensorDifference, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    compared: int

    @property
    def same(self) -> bool:
        """Whether both have the same names, dtypes, shapes and bits."""
        return not (self.tensors or self.only_first or self.only_second)


def difference(first: Mapping[str, Tensor], second: Mapping[str, Tensor], *, shown: int = 5) -> Difference:
    """Compare two states bit for bit: 0.0 and -0.0 differ, a NaN equals a NaN of the same bits.

    Args:
        first: A ``state_dict``, or any other mapping; each tensor is asked for once, and at most one pair is kept, so
            that models larger than memory can be compared (``checkpoint.open_weights(path).state``).
        second: Another one.
        shown: How many changed entries of a tensor to name.

    Raises:
        InputError: A tensor is sparse, quantised, nested or meta.
    """
    shared = [name for name in first if name in second]
    only_first = tuple(name for name in first if name not in second)
    only_second = tuple(name for name in second if name not in first)
    for state, alone in ((first, only_first), (second, only_second)):
        for name in alone:
            require_plain({name: state[name]})
    compared = (_compare(name, first[name], second[name], shown) for name in shared)
    found = tuple(tensor for tensor in compared if tensor is not None)
    return Difference(tensors=found, only_first=only_first, only_second=only_second, compared=len(shared))


def _compare(name: str, first: Tensor, second: Tensor, shown: int) -> TensorDifference | None:
    for tensor in (first, second):
        require_plain({name: tensor})
    entries = first.numel()
    comparable = first.dtype == second.dtype and first.shape == second.shape
    positions: np.ndarray = np.zeros(0, np.int64)
    changed, largest = entries, math.nan
    if comparable:
        pair = (raw_bytes(tensor).reshape(entries, -1) for tensor in (first, second))
        positions = np.flatnonzero((next(pair) != next(pair)).any(axis=1)) if entries else positions
        changed, largest = positions.size, _largest(first, second, positions)
        if not changed:
            return None
    return TensorDifference(
        name=name,
        dtypes=(_dtype_name(first), _dtype_name(second)),
        shapes=(tuple(first.shape), tuple(second.shape)),
        entries=entries,
        changed=changed,
        largest=largest,
        first=tuple(positions[:shown].tolist()),
    )


def _largest(first: Tensor, second: Tensor, positions: np.ndarray) -> float:
    if not positions.size:
        return 0.0
    wide = torch.complex128 if first.is_complex() else torch.float64
    old, new = (tensor.detach().cpu().reshape(-1)[torch.from_numpy(positions)].to(wide) for tensor in (first, second))
    return float((new - old).abs().max())


def _dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
