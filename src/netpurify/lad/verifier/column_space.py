"""What the verifier must know about a matrix A: its column space, and which of its rows count as evidence."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.verifier.sparse import SparseVectors, sparse_vectors
from netpurify.threads import one_blas_thread

_SMALL_ROW = 1e-4
"""A row below this share of the largest row may be too small to show that the fit is wrong."""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Facts about the rows of A that are not all zero, shape [live rows] each.

    Attributes:
        norms: Euclidean norms, after the columns of A were scaled to unit norm.
        classes: Rows that are multiples of one another have the same number, counted from 0.
    """

    norms: NDArray[np.float64]
    classes: NDArray[np.intp]

    @classmethod
    def of(cls, scaled: NDArray[np.float64]) -> "RowFacts":
        """Compute the facts from the rows, whose columns have unit norm."""
        return cls(np.linalg.norm(scaled, axis=1), _row_classes(scaled))

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Norm of each row over the largest norm."""
        return self.norms / self.norms.max(initial=1e-300)

    @property
    def no_multiples(self) -> bool:
        """Whether no row is a multiple of another row."""
        return int(self.classes.max(initial=-1)) + 1 == self.classes.size

    @property
    def are_distinct(self) -> bool:
        """Whether each zero residual counts once as evidence: no row is a multiple of another, and none is small."""
        return self.no_multiples and bool(self.sizes.min(initial=1.0) > _SMALL_ROW)

    def count_distinct(self, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
        """How many of the ``chosen`` rows [p, live rows] are left when multiples of one another count once, [p]."""
        if self.no_multiples:
            return np.count_nonzero(chosen, axis=1)
        order = np.argsort(self.classes, kind="stable")
        first = np.flatnonzero(np.diff(self.classes[order], prepend=-1))
        return np.count_nonzero(np.logical_or.reduceat(chosen[:, order], first, axis=1), axis=1)

    def without_multiples(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The ``chosen`` rows [p, live rows], of rows that are multiples of one another only the first."""
        if self.no_multiples:
            return chosen
        order = np.argsort(self.classes, kind="stable")
        first = np.flatnonzero(np.diff(self.classes[order], prepend=-1))
        sizes = np.diff(first, append=order.size)
        count = np.cumsum(chosen[:, order], axis=1)  # of the chosen rows so far
        before = np.repeat(count[:, first] - chosen[:, order[first]], sizes, axis=1)  # of those of earlier classes
        kept = np.zeros_like(chosen)
        kept[:, order] = chosen[:, order] & (count - before == 1)
        return kept


class ColumnSpace(ABC):
    """The column space of a matrix A [k, q], and how the verifier computes with it.

    There are two kinds. ``PlainSpace`` computes everything from A by numpy and shares nothing with the solver. The
    solver's ``Design`` brings its own rank, basis, products and compiled loops.

    Attributes:
        matrix: A in float64, [k, q].
        live: Indices of the rows that are not all zero.
        rank: Numerical rank.
        pivots: Indices of ``rank`` columns that span the column space.
        compact: Orthonormal basis of the column space on the live rows, [live rows, rank].
        rows: Facts about the live rows.
    """

    matrix: NDArray[np.float64]
    live: NDArray[np.intp]
    rank: int
    pivots: NDArray[np.intp]
    compact: NDArray[np.float64]
    rows: RowFacts

    @abstractmethod
    def orthogonal(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The part of ``values`` [n, live rows] that is orthogonal to the column space."""

    @abstractmethod
    def predicted(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """A times ``coefficients`` [n, q], as rows [n, k]."""

    @abstractmethod
    def rounding(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far the entries of ``predicted`` may be from those that the solver computed, at most, [n]."""

    @abstractmethod
    def redundancy(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How well the ``chosen`` rows [p, live rows] determine each other, for the least determined of them, [p].

        Two vectors of irregular numbers on the chosen rows are projected onto what is orthogonal to their columns. A
        row has the entry 0 in both if no other chosen row predicts it (leverage 1). Of each row the larger entry
        counts, because among thousands of rows some entry of one vector is small by chance; the smallest is returned.
        """

    @abstractmethod
    def uniqueness(
        self, dual: NDArray[np.float64], proven: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Uniqueness and stability of the ``proven`` columns, [p], from their dual on the live rows, [p, live rows]."""

    def freedom(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """1 - leverage of each of the ``chosen`` rows [live rows] among them: 0 where the fit must pass through it."""
        return 1.0 - np.square(np.linalg.qr(self.compact[chosen])[0]).sum(axis=1)

    @property
    def fan_in(self) -> int:
        """Number of rows, k."""
        return self.matrix.shape[0]

    @property
    def columns(self) -> int:
        """Number of columns, q."""
        return self.matrix.shape[1]

    @property
    def live_index(self) -> slice | NDArray[np.intp]:
        """``live`` as an index into all rows: a slice, which copies nothing, if no row is all zero."""
        return slice(0, self.live.size) if self.live.size == self.fan_in else self.live

    @cached_property
    def on_a_grid(self) -> bool:
        """Whether all entries are whole multiples of the smallest one, so that residuals can be zero by accident."""
        return bool(on_a_grid(self.matrix.reshape(1, -1))[0])

    @cached_property
    def irregular(self) -> NDArray[np.float64]:
        """Numbers between 1 and 2 without a pattern, two for each live row, [2, live rows]."""
        steps = np.array([[0.6180339887498949], [0.4142135623730951]])
        return 1.0 + np.modf(np.arange(1, self.live.size + 1) * steps)[0]

    @cached_property
    def sparse(self) -> SparseVectors:
        """Vectors of the column space that are zero on most live rows; searched for only where residuals tie."""
        with one_blas_thread():
            return sparse_vectors(self.matrix[self.live], self.pivots)

    @cached_property
    def given_norms(self) -> NDArray[np.float64] | None:
        """Euclidean norm of each live row of A as it was given; ``None`` where all are the same."""
        norms = np.linalg.norm(self.matrix[self.live], axis=1)
        return norms if np.ptp(norms) > 1e-9 * norms.max(initial=0.0) else None

    @cached_property
    def sparse_scaled(self) -> SparseVectors:
        """As ``sparse``, after every row was divided by its norm, which undoes weights of the rows."""
        norms = np.ones(self.live.size) if self.given_norms is None else self.given_norms
        with one_blas_thread():
            return sparse_vectors(self.matrix[self.live] / norms[:, None], self.pivots)


def unit_columns(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``rows`` with columns scaled to unit norm, and the norms: 1 for zero columns.

    Safe for entries whose squares would overflow or vanish.
    """
    peak = np.abs(rows).max(axis=0, initial=0.0)
    peak[peak == 0.0] = 1.0
    norms = peak * np.maximum(np.linalg.norm(rows / peak, axis=0), 1.0)
    return rows / norms, norms


def on_a_grid(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether all entries of a row of ``values`` [n, k] are small whole multiples of its smallest one, [n].

    Entries that are NaN are left out.
    """
    sizes, missing = np.abs(values), np.isnan(values)
    smallest = np.where(sizes > 0.0, sizes, np.inf).min(axis=1, initial=np.inf, keepdims=True)
    few = slice(32)  # which are enough to see of most rows that they are not
    whole = _whole(sizes[:, few] / smallest, missing[:, few])
    whole[whole] = _whole(sizes[whole] / smallest[whole], missing[whole])
    return whole


def _whole(steps: NDArray[np.float64], missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.all(missing | ((steps < 1e6) & (np.abs(steps - np.rint(steps)) < 1e-9)), axis=1)


def _row_classes(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """Number the classes of rows that are multiples of one another (to 1e-12)."""
    if not rows.size:
        return np.zeros(rows.shape[0], dtype=np.intp)
    peak = np.abs(rows).argmax(axis=1)
    directions = rows / np.take_along_axis(rows, peak[:, None], axis=1)
    keys = np.round(directions, 12) + 0.0  # + 0.0 turns -0.0 into 0.0, which would otherwise differ in bits
    _, classes = np.unique(np.ascontiguousarray(keys).view(np.dtype((np.void, 8 * rows.shape[1]))), return_inverse=True)
    return classes.reshape(-1)
