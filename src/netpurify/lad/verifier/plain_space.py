"""The column space of a matrix by numpy alone: the verifier's way that shares nothing with the solver."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.arrays import ArrayLike, to_matrix
from netpurify.lad.verifier.column_space import ColumnSpace, RowFacts, unit_columns

_SMALLEST_DIAGONAL = 1e-6
"""Rows whose Cholesky factor has a smaller entry on its diagonal do not have full rank."""


@dataclass(frozen=True)
class PlainSpace(ColumnSpace):
    """The column space of a plain matrix; attributes as in ``ColumnSpace``."""

    matrix: NDArray[np.float64]
    live: NDArray[np.intp]
    rank: int
    pivots: NDArray[np.intp]
    compact: NDArray[np.float64]
    rows: RowFacts

    @classmethod
    def of(cls, matrix: ArrayLike) -> "PlainSpace":
        """Determine rank and basis of ``matrix`` [k, q] by Gram-Schmidt with column pivoting.

        Raises:
            InputError: The matrix is not two-dimensional, not real or not finite.
        """
        values, unit = to_matrix(matrix)
        live = np.flatnonzero(np.abs(values).max(axis=1, initial=0.0))
        scaled, _ = unit_columns(values[live])
        basis, pivots = _orthonormal_basis(scaled, max(1, *values.shape) * unit)
        return cls(values, live, pivots.size, pivots, basis, RowFacts.of(scaled))

    def orthogonal(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The part of ``values`` [n, live rows] that is orthogonal to the column space."""
        return values - (values @ self.compact) @ self.compact.T

    def predicted(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """A times ``coefficients`` [n, q], as rows [n, k]."""
        return coefficients @ self.matrix.T

    def rounding(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """The classical bound q eps |A| |u| for a sum of q products in any order, for the largest entry, [n]."""
        sizes = (np.abs(coefficients) @ np.abs(self.matrix).T).max(axis=1, initial=0.0)
        return self.columns * np.finfo(np.float64).eps * sizes

    def redundancy(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The smallest entry of what the chosen rows leave of vectors of irregular numbers; see ``ColumnSpace``."""
        smallest = np.zeros(chosen.shape[0])
        if not self.rank:
            smallest[chosen.any(axis=1)] = np.inf
            return smallest
        for i in np.flatnonzero(np.count_nonzero(chosen, axis=1) > self.rank):
            basis, irregular = self.compact[chosen[i]], self.irregular[:, chosen[i]].T
            # The basis is orthonormal: the Gram matrix of the chosen rows is I minus that of the others.
            others = self.compact[~chosen[i]]
            gram = basis.T @ basis if 2 * len(basis) <= len(chosen[i]) else np.eye(self.rank) - others.T @ others
            inverse = _inverse_factor(gram)
            if inverse is not None:
                left = irregular - basis @ (inverse.T @ (inverse @ (basis.T @ irregular)))
                smallest[i] = np.abs(left).max(axis=1).min()
        return smallest

    def uniqueness(
        self, dual: NDArray[np.float64], proven: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Uniqueness and stability from the rows whose dual lies strictly between -1 and 1; see ``ColumnSpace``."""
        unique, stability = np.zeros(proven.size, np.bool_), np.full(proven.size, np.inf)
        room = 1.0 - np.abs(dual)
        room[~(room > 1e-10)] = 0.0
        for i in np.flatnonzero(proven & (np.count_nonzero(room, axis=1) >= self.rank)):
            weighted = room[i, :, None] * self.compact
            inverse = _inverse_factor(weighted.T @ weighted)
            if inverse is not None:
                # The norm of the inverse is at most sqrt(rank) times the largest factor by which an error can grow.
                unique[i], stability[i] = True, 2.0 * np.linalg.norm(inverse)
        return unique, stability


def _inverse_factor(gram: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The inverse of the lower Cholesky factor of ``gram``; ``None`` if ``gram`` is not safely positive definite."""
    try:
        factor = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    safe = (np.diagonal(factor) > _SMALLEST_DIAGONAL).all()
    return np.asarray(np.linalg.inv(factor), np.float64) if safe else None


def _orthonormal_basis(columns: NDArray[np.float64], tolerance: float) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Orthonormal basis of ``columns`` [n, q], and which columns it was built from, the longest remainder first.

    A column counts as dependent if its remainder is below ``tolerance`` times the longest column.
    """
    if columns.shape[0] > columns.shape[1] > 0:
        tall, square = np.linalg.qr(columns)
        turned, order = _orthonormal_basis(square, tolerance)
        return tall @ turned, order
    remainder = columns.copy()
    basis = np.zeros((columns.shape[0], min(columns.shape)))
    pivots: list[int] = []
    longest = 0.0
    for number in range(min(columns.shape)):
        lengths = np.linalg.norm(remainder, axis=0)
        pivot = int(lengths.argmax())
        longest = max(longest, float(lengths[pivot]))
        if not lengths[pivot] > tolerance * longest:
            break
        direction = remainder[:, pivot] / lengths[pivot]
        # A second time: what rounding left of the earlier directions in a short remainder is removed.
        direction -= basis[:, :number] @ (direction @ basis[:, :number])
        basis[:, number] = direction / np.linalg.norm(direction)
        remainder -= np.outer(basis[:, number], basis[:, number] @ remainder)
        remainder[:, pivot] = 0.0
        pivots.append(pivot)
    return basis[:, : len(pivots)], np.array(pivots, np.intp)
