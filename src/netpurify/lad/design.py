"""A design matrix, factored once and used for any number of right-hand sides."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from netpurify.lad.arrays import ArrayLike, to_matrix
from netpurify.lad.kernels.product import product
from netpurify.lad.kernels.redundancy import smallest_left_over, strictly_inside
from netpurify.lad.verifier.column_space import ColumnSpace, RowFacts, unit_columns
from netpurify.threads import one_blas_thread

_TILE = 8
"""Matrices are padded with zeros to multiples of this, so that ``product`` and the vector units meet no ragged edge."""
_COMPLEMENT_BYTES = 256 << 20
_CLEARLY_SMALLER = 0.8
"""Below this ratio of columns a basis of what is not spanned saves more than it costs."""
_WELL_CONDITIONED = 1e-3
"""A Cholesky factor whose diagonal is above this gives leverages to 1e-9 or so; otherwise they are computed by QR."""


def padded(extent: int) -> int:
    """``extent`` rounded up to whole tiles, at least one."""
    return max(_TILE, -(-extent // _TILE) * _TILE)


@dataclass(frozen=True)
class Design(ColumnSpace):
    """Orthonormal basis of a design's columns, with its rank, leverages and the way back to coefficients.

    Rows of zeros ("dead", e.g. border pixels) constrain nothing and are set aside; everything below is about the
    ``live`` rows, padded with zeros to whole tiles.

    Attributes:
        matrix: The design as given, float64, shape [k, q].
        live: Indices of the rows that are not all zero, shape [live_count].
        rank: Numerical rank.
        basis: Orthonormal basis, shape [padded(live_count), padded(rank)].
        compact: The basis without padding, shape [live_count, rank].
        pivots: Indices of ``rank`` independent columns, shape [rank].
        independent: Those columns as rows, shape [padded(rank), padded(k)].
        to_coefficients: T with coefficients of the independent columns = coordinates in the basis @ T,
            shape [padded(rank), padded(rank)].
        rows: Norms of the live rows, and which of them are multiples of one another.
        condition: Estimated condition number of the independent columns, scaled to unit norm.
    """

    matrix: NDArray[np.float64]
    live: NDArray[np.intp]
    rank: int
    basis: NDArray[np.float64]
    compact: NDArray[np.float64]
    pivots: NDArray[np.intp]
    independent: NDArray[np.float64]
    to_coefficients: NDArray[np.float64]
    rows: RowFacts
    condition: float

    @classmethod
    def prepare(cls, matrix: ArrayLike, *, rank_tolerance: float | None = None) -> "Design":
        """Factor ``matrix`` [k, q].

        Cost: one QR factorisation, about 4 k q^2 operations.

        Args:
            matrix: numpy array or torch tensor of any float dtype; every entry finite.
            rank_tolerance: Columns whose independent part is below this share of their norm count as dependent.
                ``None``: max(k, q) times the rounding unit of the matrix's own dtype.

        Raises:
            InputError: The matrix is not two-dimensional, not real or not finite.
        """
        values, unit = to_matrix(matrix)
        if rank_tolerance is None:
            rank_tolerance = max(1, *values.shape) * unit
        # One BLAS thread: the factors, and so every answer, must not depend on how many cores there are.
        with one_blas_thread():
            return cls._factor(values, rank_tolerance)

    @classmethod
    def _factor(cls, matrix: NDArray[np.float64], tolerance: float) -> "Design":
        live = np.flatnonzero(np.abs(matrix).max(axis=1, initial=0.0))
        scaled, norms = unit_columns(matrix[live])
        basis, triangle, order = _pivoted_qr(scaled)
        diagonal = np.abs(np.diagonal(triangle))
        rank = int((diagonal > tolerance * diagonal.max(initial=0.0)).sum())
        inverse = scipy.linalg.solve_triangular(triangle[:rank, :rank], np.eye(rank)) if rank else np.zeros((0, 0))
        pivots = order[:rank]
        to_coefficients = _pad((inverse / norms[pivots, None]).T)
        condition = float(np.linalg.norm(inverse) * np.linalg.norm(triangle[:rank, :rank])) if rank else 1.0
        return cls(
            matrix=matrix,
            live=live,
            rank=rank,
            basis=_pad(basis[:, :rank]),
            compact=np.ascontiguousarray(basis[:, :rank]),
            pivots=pivots,
            independent=_pad(matrix[:, pivots].T),
            to_coefficients=to_coefficients,
            rows=RowFacts.of(scaled),
            condition=condition,
        )

    @property
    def full(self) -> bool:
        """Whether the columns span every live direction, so that any column fits exactly and no alteration shows."""
        return self.rank >= self.live.size

    @property
    def leverages(self) -> NDArray[np.float64]:
        """Share of each row's own value in its fitted value, shape [k]; 0 for dead rows, 1 where the fit must pass."""
        leverages = np.zeros(self.fan_in)
        leverages[self.live] = np.square(self.basis[: self.live.size]).sum(axis=1)
        return leverages

    @cached_property
    def transposed(self) -> NDArray[np.float64]:
        """The transposed basis, row by row in memory, [padded(rank), padded(live_count)]."""
        return np.ascontiguousarray(self.basis.T)

    @cached_property
    def single(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The basis and the transposed basis in float32, for identification."""
        return self.basis.astype(np.float32), self.transposed.astype(np.float32)

    def coordinates(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates [n, padded(rank)] in the basis of the projections of ``values`` [n, padded(live_count)]."""
        return product(values, self.basis)

    def predicted(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """What ``coefficients`` [n, q] make of the design, [n, k], in the order in which the solver adds."""
        independent = np.zeros((coefficients.shape[0], self.independent.shape[0]))
        independent[:, : self.rank] = coefficients[:, self.pivots]
        predicted = product(independent, self.independent)[:, : self.fan_in]
        others = np.setdiff1d(np.arange(self.columns), self.pivots)
        if coefficients[:, others].any():
            predicted = predicted + coefficients[:, others] @ self.matrix[:, others].T
        return predicted

    def coefficients(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients [n, padded(rank)] of the independent columns for these ``coordinates`` [n, padded(rank)]."""
        coefficients = product(coordinates, self.to_coefficients)
        if self.condition > 1e6:
            # The inverse of an ill-conditioned triangle loses digits that one step of refinement brings back.
            fitted = np.zeros((coordinates.shape[0], self.basis.shape[0]))
            fitted[:, : self.live.size] = product(coefficients, self.independent)[:, self.live_index]
            correction = self.coordinates(self.fitted(coordinates) - fitted)
            coefficients += product(correction, self.to_coefficients)
        return coefficients

    def fitted(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values [n, padded(live_count)] that have these ``coordinates`` [n, padded(rank)] in the basis."""
        return product(coordinates, self.transposed)

    @cached_property
    def complement(self) -> NDArray[np.float64] | None:
        """The projector I - basis basis' on what the columns do not span; ``None`` where too large or of little use."""
        size = self.live.size
        if size * size * 8 > _COMPLEMENT_BYTES or size > 8 * self.rank:
            return None
        projector = -(self.basis @ self.basis.T)[:size, :size]
        projector[np.diag_indices(size)] += 1.0
        return np.ascontiguousarray(projector)

    @cached_property
    def null(self) -> NDArray[np.float64] | None:
        """An orthonormal basis of what the columns do not span, padded; ``None`` if hardly smaller than ``basis``."""
        if not 0 < self.live.size - self.rank < _CLEARLY_SMALLER * self.rank:
            return None
        whole: Any = scipy.linalg.qr  # its return type depends on its arguments
        return _pad(whole(self.compact)[0][:, self.rank :])

    @cached_property
    def single_null(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """``null`` and its transpose in float32."""
        if self.null is None:
            return None
        return self.null.astype(np.float32), np.ascontiguousarray(self.null.T, np.float32)

    @cached_property
    def witness(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The irregular numbers, padded to the rows of the basis, and their part orthogonal to the basis, [2, rows]."""
        irregular = np.zeros((2, self.basis.shape[0]))
        irregular[:, : self.live.size] = self.irregular
        return irregular, irregular - (irregular @ self.basis) @ self.basis.T

    def orthogonal(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The part of ``values`` [n, live_count] that is orthogonal to the column space."""
        padded_values = np.zeros((values.shape[0], self.basis.shape[0]))
        padded_values[:, : self.live.size] = values
        padded_values -= self.fitted(self.coordinates(padded_values))
        return padded_values[:, : self.live.size]

    def rounding(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Zeros, [n]: ``predicted`` adds in the same order as the solver does."""
        return np.zeros(coefficients.shape[0])

    def redundancy(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """How well the ``chosen`` rows determine each other, by a compiled loop; see ``ColumnSpace``."""
        smallest = np.zeros(chosen.shape[0])
        block = np.zeros((0, 0)) if self.complement is None else self.complement
        orthogonal = self.witness[1]
        smallest_left_over(self.basis, self.rank, block, chosen, self.irregular, orthogonal, smallest)
        return smallest

    def freedom(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """1 - leverage of the ``chosen`` rows, through the rows that are not chosen where these are fewer."""
        others = np.flatnonzero(~chosen)
        complement = self.complement if others.size < self.rank else None
        if others.size >= chosen.size - others.size:
            return super().freedom(chosen)
        rest = self.compact[others]
        # Either the projector's block of the other rows, or the Gram matrix of the chosen: I less that of the others.
        block = np.eye(self.rank) - rest.T @ rest if complement is None else complement[np.ix_(others, others)]
        try:
            factor = np.linalg.cholesky(block)
        except np.linalg.LinAlgError:  # the chosen rows do not determine the fit
            return super().freedom(chosen)
        if not np.diagonal(factor).min(initial=1.0) > _WELL_CONDITIONED:
            return super().freedom(chosen)
        if complement is not None:
            across = scipy.linalg.solve_triangular(factor, complement[np.ix_(others, chosen)], lower=True)
            return np.diagonal(complement)[chosen] - np.square(across).sum(axis=0)
        inverse = scipy.linalg.solve_triangular(factor, np.eye(self.rank), lower=True)
        return 1.0 - np.square(self.compact[chosen] @ inverse.T).sum(axis=1)

    def uniqueness(
        self, dual: NDArray[np.float64], proven: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Uniqueness and stability of the ``proven`` columns, by a compiled loop; see ``ColumnSpace``."""
        unique, stability = np.zeros(proven.size, np.bool_), np.full(proven.size, np.inf)
        strictly_inside(self.basis, self.rank, dual, proven, unique, stability)
        return unique, stability

    def warm(self) -> None:
        """Compute what is computed on demand now, before several threads ask for it."""
        with one_blas_thread():
            _ = self.single, self.complement, self.witness, self.single_null

    @property
    def panel(self) -> int:
        """How many columns make a panel: enough for products at full speed, few enough for the cache."""
        return 128 if self.live.size > 256 else 256

    def width(self, columns: int) -> int:
        """How many columns to work on together, for ``columns`` columns: whole tiles, at most a panel."""
        return min(self.panel, padded(columns))


def _pad(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    wide = np.zeros((padded(matrix.shape[0]), padded(matrix.shape[1])))
    wide[: matrix.shape[0], : matrix.shape[1]] = matrix
    return wide


def _pivoted_qr(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """QR with column pivoting; tall matrices are first reduced by a plain QR, which runs at full speed."""
    if 0 in matrix.shape:
        size = min(matrix.shape)
        return np.zeros((matrix.shape[0], size)), np.zeros((size, matrix.shape[1])), np.arange(matrix.shape[1])
    pivoted: Any = scipy.linalg.qr  # its return type depends on its arguments in ways that stubs do not say
    if matrix.shape[0] <= matrix.shape[1]:
        return pivoted(matrix, mode="economic", pivoting=True)
    tall, square = np.linalg.qr(matrix)
    turn, triangle, order = pivoted(square, mode="economic", pivoting=True)
    return tall @ turn, triangle, order
