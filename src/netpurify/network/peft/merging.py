"""Merged weights, checked against base and adapter: what they should be, and which entries are something else."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.errors import InputError
from netpurify.network.comparison.records import Entries
from netpurify.network.peft.folder import Adapter, Factors, load_adapter

_AT_ONCE = 1 << 22
"""Entries of a tensor that are worked on together, in float64; it bounds the memory and decides nothing."""


@dataclass(frozen=True, slots=True)
class MergeDifference:
    """Entries of one tensor that are not what base and adapter make.

    Attributes:
        tensor: Its name.
        shape: Its shape.
        adapted: Whether the adapter changes this tensor; if not, it must have the bits of the base.
        index: Positions of the entries in the flattened tensor, [n].
        was: Their values in the merged weights, [n].
        expected: What they should be, [n].
        left_out: How many further entries differ, by less, if only the largest differences were kept.
    """

    tensor: str
    shape: tuple[int, ...]
    adapted: bool
    index: NDArray[np.int64]
    was: NDArray[np.float64]
    expected: NDArray[np.float64]
    left_out: int = 0

    @property
    def count(self) -> int:
        """How many entries differ, kept or not."""
        return self.index.size + self.left_out


@dataclass(frozen=True, slots=True)
class MergeCheck:
    """Merged weights beside base and adapter.

    Attributes:
        differences: Tensors with entries that differ by more than the rounding of a merge.
        unmatched: Names that could not be compared, with the reason: not in the base, not in the weights, or of
            another shape.
        adapted: Names of the tensors that the adapter changes.
        tensors: How many tensors were compared.
        entries: How many entries they have.
    """

    differences: tuple[MergeDifference, ...]
    unmatched: Mapping[str, str]
    adapted: tuple[str, ...]
    tensors: int
    entries: int

    @property
    def agrees(self) -> bool:
        """Whether every tensor was compared, and none differs."""
        return not self.differences and not self.unmatched

    @property
    def differing(self) -> int:
        """How many entries differ."""
        return sum(found.count for found in self.differences)


def expected_merge(base: Mapping[str, Tensor], adapter: Adapter) -> Iterator[tuple[str, Tensor]]:
    """The tensors of the base with the adapter merged, one at a time; those it does not change are the base's own.

    Sums are made in float64 and rounded once, to the dtype of the base.

    Args:
        base: The weights before the adapter, by name.
        adapter: What ``load_adapter`` gave.

    Raises:
        InputError: The adapter changes a tensor that the base does not have, or that has another shape.
    """
    changes = _changes(base, adapter)
    for name, value in base.items():
        change = changes.get(name)
        if change is None:
            yield name, value
            continue
        parts = [part.expected.to(value.dtype) for part in _parts(value, change)]
        yield name, torch.cat(parts).reshape(value.shape)


def check_merged(
    weights: Mapping[str, Tensor],
    base: Mapping[str, Tensor],
    adapter: Adapter | str | Path,
    *,
    limit: int | None = None,
) -> MergeCheck:
    """Compare merged weights with base and adapter, entry by entry.

    An entry that the adapter changes may differ from base + scale * B A by what a merge rounds, in whatever order and
    in float32 or the weights' own dtype: one step of its own size and of the base's, and the rounding of the product. A
    tensor that the adapter does not change must have the bits of the base (rounded to the dtype of the weights, if
    that is another one).

    Args:
        weights: The merged weights, which are not trusted.
        base: The weights before the adapter.
        adapter: What ``load_adapter`` gave, or the folder.
        limit: How many entries are kept for each tensor, the largest differences first; ``None`` for all. With another
            adapter than the one that was merged, all entries of the tensors that it changes differ.

    Raises:
        CheckpointError: A file of the folder is not there or damaged.
        InputError: The adapter cannot be merged by a sum, or does not fit the base.
    """
    adapter = adapter if isinstance(adapter, Adapter) else load_adapter(adapter)
    changes = _changes(base, adapter)
    unmatched = {name: "not in the base" for name in weights if name not in base}
    differences, tensors, entries = [], 0, 0
    for name, start in base.items():
        merged = weights.get(name)
        if merged is None:
            unmatched[name] = "in the base, but not in the weights"
            continue
        if merged.shape != start.shape or merged.is_floating_point() != start.is_floating_point():
            unmatched[name] = f"{merged.dtype} {list(merged.shape)}, in the base {start.dtype} {list(start.shape)}"
            continue
        tensors, entries = tensors + 1, entries + merged.numel()
        change = changes.get(name)
        found = _bits(name, merged, start) if change is None else _sums(name, merged, start, change)
        differences += [_largest(found, limit)] if found.index.size else []
    return MergeCheck(tuple(differences), unmatched, tuple(changes), tensors, entries)


def _largest(found: MergeDifference, limit: int | None) -> MergeDifference:
    """The largest differences, at most so many."""
    if limit is None or found.index.size <= limit:
        return found
    kept = Entries(found.index, found.was, found.expected).largest(limit)
    left_out = found.index.size - limit
    return replace(found, index=kept.index, was=kept.was, expected=kept.base, left_out=left_out)


@dataclass(frozen=True, slots=True)
class _Change:
    """What an adapter does to one tensor: ``left @ right`` is added, or ``whole`` takes its place.

    Attributes:
        left: [entries of the first axis, rank], with the scale.
        right: [rank, entries of the other axes].
        precision: Relative rounding of the stored factors and of their product.
        whole: The tensor that takes the place of the base's; then there are no factors.
        square: Whether factors and their transposes both fit, so that the shape does not say which was meant.
    """

    left: Tensor
    right: Tensor
    precision: float
    whole: Tensor | None = None
    square: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows of a tensor, flattened, in float64: expected values and how far a merge may round away from them."""

    start: int
    expected: Tensor
    allowed: Tensor


def _changes(base: Mapping[str, Tensor], adapter: Adapter) -> dict[str, _Change]:
    """What the adapter does, by name of the tensor."""
    nothing = torch.zeros(0, 0)
    changes = {name: _Change(nothing, nothing, 0.0, value) for name, value in adapter.whole.items()}
    for module, factors in adapter.factors.items():
        name = f"{module}.weight"
        if name in changes:
            raise InputError(f"the adapter gives {name} as a whole and as factors; only one of them can be meant")
        changes[name] = _product(name, factors, base)
        if factors.bias is not None:
            column = factors.scale * factors.bias.double().reshape(-1, 1)
            changes[f"{module}.bias"] = _Change(column, torch.ones(1, 1).double(), _precision(factors))
    for name, change in changes.items():
        value = base.get(name)
        shape = None if value is None else tuple(value.shape)
        fits = change.whole.shape == shape if change.whole is not None else _fits(change, value)
        if not fits:
            raise InputError(
                f"the adapter changes {name}, for which the base must have a tensor that fits; "
                f"got {'nothing' if shape is None else list(shape)}; is it an adapter of another base?"
            )
    return changes


def _fits(change: _Change, value: Tensor | None) -> bool:
    return value is not None and value.dim() > 0 and value.is_floating_point() and (
        (change.left.shape[0], change.right.shape[1]) == (value.shape[0], value[:1].numel())
    )  # fmt: skip


def _product(name: str, factors: Factors, base: Mapping[str, Tensor]) -> _Change:
    """The product in the orientation of the base's weight; where the shape does not decide, that of the adapter."""
    up, down = factors.scale * factors.up.double().flatten(1), factors.down.double().flatten(1)
    change = _Change(up[:, : factors.rank], down, _precision(factors))
    value = base.get(name)
    if value is None or value.dim() != 2 or up.shape[1] != factors.rank:
        return change
    turned = _turned(change)
    if _fits(change, value) and _fits(turned, value):
        return replace(turned if factors.transposed else change, square=True)
    return turned if _fits(turned, value) else change


def _turned(change: _Change) -> _Change:
    return replace(change, left=change.right.T, right=change.left.T)


def _precision(factors: Factors) -> float:
    """Rounding of factors that may have been stored in half precision, and of sums over the rank in float32."""
    stored = max(torch.finfo(value.dtype).eps for value in (factors.down, factors.up))
    single = torch.finfo(torch.float32).eps
    return (factors.rank + 4) * single + 2.0 * max(stored, single)


def _parts(value: Tensor, change: _Change, merged: torch.dtype | None = None) -> Iterator[_Part]:
    """Expected values of a tensor, some rows at a time, so that large ones need little memory."""
    eps = max(torch.finfo(dtype).eps for dtype in (value.dtype, merged or value.dtype))
    rows = value.reshape(value.shape[0], -1)
    step = max(1, _AT_ONCE // max(1, rows.shape[1]))
    for first in range(0, rows.shape[0], step):
        start = rows[first : first + step].double()
        if change.whole is not None:
            expected = change.whole.reshape(rows.shape)[first : first + step].double()
            allowed = eps * expected.abs() if change.whole.dtype != merged else torch.zeros_like(expected)
        else:
            left = change.left[first : first + step]
            expected = start + left @ change.right
            product = left.abs() @ change.right.abs()
            allowed = eps * (start.abs() + expected.abs() + product) + change.precision * product
        yield _Part(first * rows.shape[1], expected.reshape(-1), allowed.reshape(-1))


def _sums(name: str, merged: Tensor, start: Tensor, change: _Change) -> MergeDifference:
    """Entries that differ from what the adapter makes of the base by more than rounding."""
    found = _compared(name, merged, start, change)
    if found.index.size and change.square:
        other = _compared(name, merged, start, _turned(change))
        found = min(found, other, key=lambda one: one.index.size)
    return found


def _compared(name: str, merged: Tensor, start: Tensor, change: _Change) -> MergeDifference:
    index, was, expected = [], [], []
    values = merged.reshape(-1)
    for part in _parts(start, change, merged.dtype):
        given = values[part.start : part.start + part.expected.numel()].double()
        same = ((given - part.expected).abs() <= part.allowed) | (given.isnan() & part.expected.isnan())
        differs = (~same).nonzero().reshape(-1)
        index.append((differs + part.start).numpy())
        was.append(given[differs].numpy())
        expected.append(part.expected[differs].to(merged.dtype).double().numpy())
    return MergeDifference(
        tensor=name,
        shape=tuple(merged.shape),
        adapted=True,
        index=np.concatenate([np.zeros(0, np.int64), *index]),
        was=np.concatenate([np.zeros(0), *was]),
        expected=np.concatenate([np.zeros(0), *expected]),
    )


def _bits(name: str, merged: Tensor, start: Tensor) -> MergeDifference:
    """Entries whose bits are not those of the base."""
    given, kept = merged.reshape(-1), start.to(merged.dtype).reshape(-1)
    size = given.element_size()
    differs = (given.contiguous().view(torch.uint8) != kept.contiguous().view(torch.uint8)).reshape(-1, size).any(dim=1)
    index = differs.nonzero().reshape(-1)
    was, expected = (value[index].double().numpy() for value in (given, kept))
    return MergeDifference(name, tuple(merged.shape), False, index.numpy(), was, expected)
