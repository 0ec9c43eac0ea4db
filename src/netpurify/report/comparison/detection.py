"""What was detected in a network, and its findings one by one: the largest changes first."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from netpurify.network import Coverage, Entries, Purification, Scan, TensorComparison, TensorVerdict
from netpurify.report.kit.numbers import exact, number


class Kind(Enum):
    """What is wrong with some entries of a tensor: the word in tables, and in a sentence after their number."""

    ALTERED = ("altered", "differ from the base, and the tensor was never trained")
    IMPOSSIBLE = ("impossible", "are NaN, infinite or absurdly large, which no training leaves behind")
    OUTLYING = ("outlying", "changed far more than all others of this tensor")

    @property
    def label(self) -> str:
        """The word in tables."""
        return self.value[0]

    @property
    def meaning(self) -> str:
        """What these entries do."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Detection:
    """A scan, with what clean inputs show of the same network if there were any.

    Attributes:
        scan: Every tensor beside its base.
        fits: What ``purify`` found with clean inputs; nothing of its repair is used.
        strict: Whether weights that were only compared count as a finding.
    """

    scan: Scan
    fits: Purification | None = None
    strict: bool = False

    @property
    def coverage(self) -> Coverage:
        """How many weights are known, compared only, and unknown."""
        return self.scan.coverage if self.fits is None else self.fits.coverage

    @property
    def unknown(self) -> tuple[TensorComparison, ...]:
        """Tensors that have nothing to be compared with."""
        return tuple(one for one in self.scan.tensors if one.verdict == TensorVerdict.UNKNOWN)

    @property
    def findings(self) -> "list[TensorFinding]":
        """What was found by comparison, the tensors with the largest changes first."""
        found = [
            TensorFinding(one, kind, entries, total)
            for one in self.scan.found
            for kind, entries, total in _kinds(one)
            if total
        ]
        return sorted(found, key=lambda finding: -finding.largest)


@dataclass(frozen=True, slots=True)
class TensorFinding:
    """Entries of one tensor with which the same is wrong.

    Attributes:
        tensor: The tensor.
        kind: What is wrong.
        entries: The entries; of many, those with the largest changes.
        count: How many there are.
    """

    tensor: TensorComparison
    kind: Kind
    entries: Entries
    count: int

    @property
    def largest(self) -> float:
        """The largest change; infinite if a value is not finite."""
        return float(_sizes(self.entries).max(initial=0.0))

    def rows(self, most: int) -> "Iterator[Change]":
        """The entries with the largest changes, one by one."""
        for row in np.argsort(-_sizes(self.entries), kind="stable")[:most].tolist():
            axes = np.unravel_index(self.entries.index[row], self.tensor.shape) if self.tensor.shape else ()
            yield Change(tuple(int(axis) for axis in axes), float(self.entries.was[row]), float(self.entries.base[row]))


@dataclass(frozen=True, slots=True)
class Change:
    """One entry.

    Attributes:
        index: Its position, a number for each axis.
        was: Its value.
        base: Its value in the base.
    """

    index: tuple[int, ...]
    was: float
    base: float

    @property
    def size(self) -> float:
        """Of the change; infinite if a value is not finite."""
        return abs(self.was - self.base) if np.isfinite(self.was) and np.isfinite(self.base) else np.inf

    @property
    def text(self) -> str:
        """The change in words."""
        where = f" at index {', '.join(map(str, self.index))}" if self.index else ""
        return f"largest change {number(self.size)}{where} (is {exact(self.was)}, base {exact(self.base)})"


def _kinds(one: TensorComparison) -> list[tuple[Kind, Entries, int]]:
    return [
        (Kind.ALTERED, one.altered, one.altered_count),
        (Kind.IMPOSSIBLE, one.impossible, len(one.impossible)),
        (Kind.OUTLYING, one.outliers, len(one.outliers)),
    ]


def _sizes(entries: Entries) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(entries.was - entries.base)
    return np.where(np.isfinite(sizes), sizes, np.inf)
