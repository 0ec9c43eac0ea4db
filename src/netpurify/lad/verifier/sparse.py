"""Vectors of a column space that are zero on most rows, along which a fit can change without most rows showing it.

The simplest example is a layout: the indicator of a level lies in the column space and is zero on all other rows. A
generic design has no such vector: ``rank - 1`` zeros can always be had by a choice of coefficients, but not more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

_ZERO = 1e-9
"""An entry below this share of the largest is zero: a hundred times what rounding leaves of one in a usual design."""
_FEWEST, _MOST, _WORK = 8, 256, 1e10
"""How many sets P are tried, and how many operations all of them together may take unless they are very few."""

_BALANCING = 8
"""Rounds of balancing; leverages of 0.1 and 0.9 are then equal to some percent."""


@dataclass(frozen=True, slots=True)
class SparseVectors:
    """Sparse vectors of a column space, taken apart into groups of entries that are equal in size.

    Attributes:
        positive: One line for each group of at least two entries: 1 for those above zero, [groups, rows].
        negative: The same for those below zero, [groups, rows].
        owner: To which vector each group belongs, [groups], ascending.
        single: One line for each vector: 1 for the entries whose size no other entry shares, [vectors, rows].
    """

    positive: Any
    negative: Any
    owner: NDArray[np.intp]
    single: Any

    @property
    def count(self) -> int:
        """How many vectors there are."""
        return self.single.shape[0]


def sparse_vectors(columns: NDArray[np.float64], independent: NDArray[np.intp]) -> SparseVectors:
    """Sparse vectors in the span of ``columns`` [rows, q], none of whose rows is zero.

    Every vector of least support is a column of A A_P^-1 for some set P of ``rank`` independent rows. Sets P are drawn
    at random, the same in every call; if the first shows no zero beyond those that every design has, the design is
    generic and there is nothing to find. The columns as they were given are looked at too.

    A sparse vector may be missed; the sparser it is, the more of the sets P show it.

    Args:
        columns: The columns.
        independent: Which of them span all.
    """
    rows, rank = columns.shape[0], independent.size
    by_support: dict[bytes, NDArray[np.float64]] = {}
    if 0 < rank < rows:
        basis, size = _balanced(columns[:, independent])
        draw = np.random.default_rng(0)
        for _ in range(int(np.clip(_WORK / (6.0 * rows * rank * rank), _FEWEST, _MOST))):
            weight = draw.uniform(0.2, 1.0, (rows, 1))
            vectors = _elementary(weight * (basis @ draw.standard_normal((rank, rank)))) / weight
            _collect(vectors * size, size, rank, by_support)
            if not by_support:
                break
        if by_support:
            _collect(columns, size, rank, by_support)
    return _grouped(sorted(by_support.values(), key=np.count_nonzero)[: 4 * rank + 64], rows)


def _balanced(columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """An orthonormal basis of the columns after their rows were divided by ``size`` [rows, 1], and ``size``.

    Such that all rows have nearly the same leverage, so that a random set of rows takes each of them about as often,
    whatever their sizes and whichever columns were given for the space that they span.
    """
    scaled = columns / np.abs(columns).max(axis=0)
    size = np.linalg.norm(scaled, axis=1, keepdims=True)
    for _ in range(_BALANCING):
        basis = np.linalg.qr(scaled / size)[0]
        size = size * np.maximum(np.linalg.norm(basis, axis=1, keepdims=True), _ZERO)
    return np.linalg.qr(scaled / size)[0], size


def _elementary(mixed: NDArray[np.float64]) -> NDArray[np.float64]:
    """M M_P^-1 for the rows P that elimination with partial pivoting takes."""
    factor: Any = scipy.linalg.lu
    order, lower, _ = factor(mixed, p_indices=True)
    top = lower[: lower.shape[1]]
    return scipy.linalg.solve_triangular(top, lower.T, trans=1, lower=True, unit_diagonal=True).T[order]


def _collect(
    vectors: NDArray[np.float64], size: NDArray[np.float64], rank: int, by_support: dict[bytes, NDArray[np.float64]]
) -> None:
    """Add the columns of ``vectors`` that have zeros beyond those of a generic design and a support not yet seen."""
    relative = np.abs(vectors) / size
    support = relative > _ZERO * relative.max(axis=0)
    count = support.sum(axis=0)
    for i in np.flatnonzero((count > 0) & (count <= vectors.shape[0] - rank)):
        by_support.setdefault(np.packbits(support[:, i]).tobytes(), np.where(support[:, i], vectors[:, i], 0.0))


def _grouped(vectors: list[NDArray[np.float64]], rows: int) -> SparseVectors:
    """Take vectors apart into groups of entries of equal size."""
    lines: list[NDArray[np.float64]] = []
    owner: list[int] = []
    single = np.zeros((len(vectors), rows))
    for number, vector in enumerate(vectors):
        support = np.flatnonzero(vector)
        support = support[np.argsort(np.abs(vector[support]), kind="stable")]
        size = np.abs(vector[support])
        group = np.cumsum(np.diff(size, prepend=0.0) > _ZERO * size) - 1
        count = np.bincount(group)
        single[number, support[count[group] == 1]] = 1.0
        for shared in np.flatnonzero(count > 1):
            line = np.zeros(rows)
            line[support[group == shared]] = np.sign(vector[support[group == shared]])
            lines.append(line)
            owner.append(number)
    signs = np.array(lines).reshape(-1, rows)
    positive, negative, alone = (scipy.sparse.csr_array(mask.astype(float)) for mask in (signs > 0, signs < 0, single))
    return SparseVectors(positive, negative, np.array(owner, np.intp), alone)
