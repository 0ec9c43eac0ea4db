"""What the comparison of two tensors shows, and what it comes to for a network."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class TensorVerdict(IntEnum):
    """What is known of a tensor from its initial value alone."""

    SAME = 0
    ALTERED = 1
    TRAINED = 2
    UNKNOWN = 3

    @property
    def label(self) -> str:
        """The verdict's name in tables and reports."""
        return self.name.lower()

    @property
    def meaning(self) -> str:
        """What this verdict says of a tensor."""
        return _MEANINGS[self]


_MEANINGS = {
    TensorVerdict.SAME: "every bit is that of the base",
    TensorVerdict.ALTERED: "never trained: what differs from the base is altered",
    TensorVerdict.TRAINED: "trained: only what no training could have done would be seen",
    TensorVerdict.UNKNOWN: "there is nothing to compare it with",
}


@dataclass(frozen=True, slots=True)
class Entries:
    """Some entries of a tensor.

    Attributes:
        index: Their positions in the flattened tensor, ascending, [n].
        was: Their values, [n]; of complex entries their sizes.
        base: Their values in the base, rounded to the dtype of the tensor, [n].
    """

    index: NDArray[np.int64]
    was: NDArray[np.float64]
    base: NDArray[np.float64]

    def __len__(self) -> int:
        return self.index.size

    @classmethod
    def none(cls) -> "Entries":
        """No entries."""
        return cls(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    def largest(self, most: int) -> "Entries":
        """The entries with the largest changes, at most so many; those that are not finite come before all others."""
        if len(self) <= most:
            return self
        with np.errstate(invalid="ignore", over="ignore"):
            sizes = np.abs(self.was - self.base)
        sizes[~np.isfinite(sizes)] = np.inf
        kept = np.sort(np.argsort(-sizes, kind="stable")[:most])
        return Entries(self.index[kept], self.was[kept], self.base[kept])


@dataclass(frozen=True, slots=True)
class TensorComparison:
    """A tensor beside its base.

    Attributes:
        name: Its name in the state dict.
        shape: Its shape.
        dtype: Its dtype, such as ``"bfloat16"``.
        base_dtype: That of the base; ``None`` if there is no base.
        verdict: What is known of it.
        differing: How many entries have other bits than the base, rounded to the dtype of the tensor.
        altered: Entries that are altered, because the tensor was never trained; with ``limit`` the largest changes.
        impossible: Entries of a trained tensor that are NaN, infinite, absurdly large, or exactly zero where the base
            is not (four or more of these: erased, or pruned on purpose): no training left them so.
        outliers: Entries of a trained tensor that changed far more than all others of this tensor.
        altered_count: How many entries are altered, also if ``altered`` has only the largest.
        usual: Usual size of a change in a trained tensor; NaN elsewhere.
        reason: Why the verdict is what it is, in words.
        odds: Of a floating-point tensor in which few entries differ: the probability that entries at random places are
            as small as these. If it is low, steps of training were rounded away elsewhere.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    base_dtype: str | None
    verdict: TensorVerdict
    differing: int
    altered: Entries
    impossible: Entries
    outliers: Entries
    altered_count: int
    usual: float
    reason: str
    odds: float = 1.0

    @property
    def entries(self) -> int:
        """How many entries the tensor has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def findings(self) -> int:
        """Entries that are altered, impossible or stand out."""
        return self.altered_count + len(self.impossible) + len(self.outliers)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many weights of a network are known, and how well.

    Attributes:
        examined: Weights that are known: of recovered and restored units, and of tensors with the bits of their base.
        compared: Weights that were compared with their base or with a fit, so that only gross alterations would show.
        unknown: Weights of which nothing is known.
    """

    examined: int
    compared: int
    unknown: int

    @property
    def total(self) -> int:
        """All weights."""
        return self.examined + self.compared + self.unknown

    def shares(self) -> tuple[float, float, float]:
        """Shares of the weights that are examined, compared only, and unknown; of a network without weights all 0."""
        total = max(self.total, 1)
        return self.examined / total, self.compared / total, self.unknown / total

    def __add__(self, other: "Coverage") -> "Coverage":
        return Coverage(self.examined + other.examined, self.compared + other.compared, self.unknown + other.unknown)


def coverage_of(comparisons: "tuple[TensorComparison, ...]") -> Coverage:
    """How many weights of the compared tensors are known."""
    known, compared, unknown = 0, 0, 0
    for one in comparisons:
        if one.verdict in (TensorVerdict.SAME, TensorVerdict.ALTERED):
            known += one.entries
        elif one.verdict == TensorVerdict.TRAINED:
            compared += one.entries
        else:
            unknown += one.entries
    return Coverage(known, compared, unknown)
