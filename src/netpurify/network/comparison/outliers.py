"""Trained tensors: entries that no training could have left as they are, told by the tensor's own changes."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.network.comparison.frozen import narrow
from netpurify.network.policies.recovery import evidence
from netpurify.network.policies.recovery.unusual import HEAVY_TAIL

ABSURD = 1e6
"""A value that is this many times as large as the largest one of the base is certainly wrong."""
_SAMPLE = 512
"""Rows and columns that are sampled, at equal distances, to find the usual sizes of changes."""
_SHORT = 8
"""A row or column with fewer entries says nothing of its usual change."""
_ERASED = 4
"""So many entries that are exactly zero, and were not in the base, were erased."""
_SMALL_ONES = 0.9
"""If more than this share of the entries that are zero now were smaller than usual, the tensor was pruned by size."""
_MOST_OF_A_VECTOR = 0.125
"""Outliers of a vector are at most this share of its entries: if there are more, some units were trained and others
were not."""
_BLOCK = 1 << 22
"""Entries whose changes are held at a time."""
_MOST = 20_000
"""Entries that are kept to find the border between a tail and outliers; if there are more, the largest are kept."""
_FEWEST = 8
"""With fewer other changes than this in the sample, no size is usual, and nothing stands out."""
_NORMAL = 1.4826
"""Standard deviation of a normal variable over the median of its size."""


@dataclass(frozen=True, slots=True)
class Usual:
    """Usual sizes of the changes in a tensor.

    Attributes:
        rows: In each row, [rows].
        columns: In each column, [columns].
        all: In the tensor.
    """

    rows: Tensor
    columns: Tensor
    all: float

    @classmethod
    def of(cls, value: Tensor, base: Tensor) -> "Usual":
        """From samples of rows and of columns of two matrices."""
        rows, columns = (_sample(size) for size in value.shape)
        by_column, by_row = _changes(value[rows], base[rows]), _changes(value[:, columns], base[:, columns])
        both = torch.cat([by_column.reshape(-1), by_row.reshape(-1)])
        both = both[torch.isfinite(both) & (both > 0.0)]
        usual = float(both.median()) if both.numel() else 0.0
        return cls(_middle(by_row, 1, usual), _middle(by_column, 0, usual), usual)

    def expected(self, rows: slice) -> Tensor:
        """Expected sizes of the changes in some rows, [rows, columns].

        A gradient is a product of a row's and a column's share. So is the expected size of a change, and it is at least
        the usual size in the tensor.
        """
        if not self.all:
            return torch.zeros(self.rows[rows].numel(), self.columns.numel())
        return (self.rows[rows, None] * (self.columns / self.all)).clamp(min=self.all)


def impossible(value: Tensor, base: Tensor) -> Tensor:
    """Entries that are NaN, infinite, absurdly large or erased, as a mask of the shape of the tensor."""
    largest = float(base.abs().max()) if base.numel() else 0.0
    bad = ~torch.isfinite(value)
    if largest and np.isfinite(largest):
        bad |= value.abs() > min(ABSURD * largest, torch.finfo(value.dtype).max)
    erased = (value == 0.0) & (base != 0.0)
    if int(erased.sum()) < _ERASED or _pruned(base, erased):
        return bad
    return bad | erased


def _pruned(base: Tensor, zeroed: Tensor) -> bool:
    """Whether the entries that are zero now were the small ones, which pruning removes; erasing takes any."""
    usual = float(base[~zeroed].abs().median()) if bool((~zeroed).any()) else 0.0
    return float((base[zeroed].abs() < usual).double().mean()) > _SMALL_ONES


def outliers(value: Tensor, base: Tensor, steps: float, skipped: Tensor) -> tuple[NDArray[np.int64], float]:
    """Entries that changed far more than all others, and the usual size of a change.

    Args:
        value: The tensor as a matrix, float32 or float64.
        base: The base as a matrix of the same dtype.
        steps: A step of the grid over the size of a value: changes below a step are rounding.
        skipped: Entries that are left out, because they are impossible, as a mask.

    Returns:
        Positions in the flattened tensor, ascending, and the usual size.
    """
    usual = Usual.of(value.masked_fill(skipped, torch.nan), base)
    found, sizes, total = [], [], value.shape[0]
    height = max(1, _BLOCK // max(value.shape[1], 1))
    for start in range(0, total, height):
        rows = slice(start, min(start + height, total))
        ratio = _ratios(value[rows], base[rows], usual.expected(rows), steps).reshape(-1)
        ratio[skipped[rows].reshape(-1)] = 0.0
        place = torch.nonzero(ratio > evidence.FAR).squeeze(1)
        found.append(place.numpy() + start * value.shape[1])
        sizes.append(ratio[place].double().numpy())
    index, far = np.concatenate(found), np.concatenate(sizes)
    if far.size > _MOST:
        kept = np.argpartition(far, far.size - _MOST)[-_MOST:]
        index, far = index[kept], far[kept]
    index = np.sort(index[far > evidence.border(far)])
    stand_out = index.size and _one_by_one(index, value.shape) and not _heavy_tail(value, base, usual, index, steps)
    return index if stand_out else index[:0], usual.all


def _one_by_one(index: NDArray[np.int64], shape: torch.Size) -> bool:
    """Whether entries are scattered, as alterations are; training changes some rows and columns more than others."""
    if narrow(shape):
        return index.size <= _MOST_OF_A_VECTOR * shape.numel()
    mask = np.zeros(shape, np.bool_)
    mask.reshape(-1)[index] = True
    return evidence.scattered(mask, evidence.UNLIKELY)


def _heavy_tail(value: Tensor, base: Tensor, usual: Usual, index: NDArray[np.int64], steps: float) -> bool:
    """Whether the other changes of the tensor have a heavy tail, whose end the entries may be."""
    rows = _sample(value.shape[0])
    expected = torch.cat([usual.expected(slice(int(row), int(row) + 1)) for row in rows])
    ratio = _ratios(value[rows], base[rows], expected, steps)
    there = np.isin(rows[:, None].numpy() * value.shape[1] + np.arange(value.shape[1]), index, assume_unique=False)
    ratio = ratio[(ratio > 0.0) & ~torch.from_numpy(there)]
    return ratio.numel() < _FEWEST or bool(ratio.quantile(0.9) > HEAVY_TAIL * ratio.median())


def _ratios(value: Tensor, base: Tensor, expected: Tensor, steps: float) -> Tensor:
    """Sizes of changes over what is expected of them, in robust standard deviations."""
    grid = steps * base.abs()  # not of the value, which may be what is wrong
    scale = torch.maximum(expected.to(grid), grid) * _NORMAL
    ratio = _changes(value, base) / scale.clamp(min=torch.finfo(scale.dtype).tiny)
    return torch.nan_to_num(ratio, nan=0.0, posinf=torch.finfo(ratio.dtype).max)


def _changes(value: Tensor, base: Tensor) -> Tensor:
    return (value - base).abs()


def _sample(size: int) -> Tensor:
    return torch.linspace(0, size - 1, min(size, _SAMPLE)).round().long().unique() if size else torch.zeros(0).long()


def _middle(sizes: Tensor, axis: int, usual: float) -> Tensor:
    """The lower median of the changes that are not zero along an axis; the usual size where there are too few.

    In a short row or column, the entry in question would be a good part of what is usual there, and hide itself.
    """
    changed = torch.where(torch.isfinite(sizes) & (sizes > 0.0), sizes, torch.nan)
    enough = torch.isfinite(changed).sum(dim=axis) >= _SHORT
    return torch.where(enough, changed.nanmedian(dim=axis).values, usual)
