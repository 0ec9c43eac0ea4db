"""A design matrix, factored once and used for any number of right-hand sides."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.kernels.product import product
from netpurify.lad.verifier.sparse import SparseVectors, sparse_vectors
from netpurify.threads import one_blas_thread

_TILE = 8
"""Matrices are padded with zeros to multiples of this, so that ``product`` and the vector units meet no ragged edge."""
_COMPLEMENT_BYTES = 256 << 20
_SMALLEST, _LARGEST = 1e-150, 1e150


def padded(extent: int) -> int:
    """``extent`` rounded up to whole tiles, at least one."""
    return max(_TILE, -(-extent // _TILE) * _TILE)


@dataclass(frozen=True)
class Design:
    """Orthonormal basis of a design's columns, with its rank, leverages and the way back to coefficients.

    Rows of zeros ("dead", e.g. border pixels) constrain nothing and are set aside; everything below is about the
    ``live`` rows, padded with zeros to whole tiles.

    Attributes:
        matrix: The design as given, float64, shape [k, q].
        live: Indices of the rows that are not all zero, shape [live_count].
        rank: Numerical rank.
        basis: Orthonormal basis, shape [padded(live_count), padded(rank)].
        pivots: Indices of ``rank`` independent columns, shape [rank].
        independent: Those columns as rows, shape [padded(rank), padded(k)].
        to_coefficients: T with coefficients of the independent columns = coordinates in the basis @ T,
            shape [padded(rank), padded(rank)].
        row_norms: Euclidean norm of each live row after scaling the columns to unit norm.
        row_class: For each row, the number of its class of rows that are multiples of one another; -1 for dead rows.
        integral: Whether every entry is a whole multiple of the smallest, so that zero residuals can be mere ties.
        condition: Estimated condition number of the independent columns, scaled to unit norm.
    """

    matrix: NDArray[np.float64]
    live: NDArray[np.intp]
    rank: int
    basis: NDArray[np.float64]
    pivots: NDArray[np.intp]
    independent: NDArray[np.float64]
    to_coefficients: NDArray[np.float64]
    row_norms: NDArray[np.float64]
    row_class: NDArray[np.intp]
    integral: bool
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
        values = to_numpy(matrix, "the design")
        if values.ndim != 2:
            raise InputError(f"the design must be a matrix [k, q]; got shape {list(values.shape)}")
        unit = np.finfo(values.dtype).eps if values.dtype.kind == "f" else np.finfo(np.float64).eps
        values = np.ascontiguousarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise InputError(
                f"the design must be finite; entry [{row}, {column}] is {values[row, column]}; "
                "drop that row, or that column, first"
            )
        sizes = np.abs(values[values != 0.0])
        if sizes.size and not (sizes.min() > _SMALLEST and sizes.max() < _LARGEST):
            raise InputError(
                f"the design's entries must lie between {_SMALLEST:g} and {_LARGEST:g} in size, so that squares "
                f"neither vanish nor overflow; got {sizes.min():g} to {sizes.max():g}; rescale its columns"
            )
        if rank_tolerance is None:
            rank_tolerance = max(1, *values.shape) * float(unit)
        # One BLAS thread: the factors, and so every answer, must not depend on how many cores there are.
        with one_blas_thread():
            return cls._factor(values, rank_tolerance)

    @classmethod
    def _factor(cls, matrix: NDArray[np.float64], tolerance: float) -> "Design":
        largest = np.abs(matrix).max(axis=1, initial=0.0)
        live = np.flatnonzero(largest)
        rows = matrix[live]
        scale = _column_norms(rows)
        scaled = rows / scale
        basis, triangle, order = _pivoted_qr(scaled)
        diagonal = np.abs(np.diagonal(triangle))
        rank = int((diagonal > tolerance * diagonal.max(initial=0.0)).sum())
        inverse = scipy.linalg.solve_triangular(triangle[:rank, :rank], np.eye(rank)) if rank else np.zeros((0, 0))
        pivots = order[:rank]
        to_coefficients = _pad((inverse / scale[pivots, None]).T)
        row_class = np.full(matrix.shape[0], -1, dtype=np.intp)
        row_class[live] = _row_classes(scaled)
        condition = float(np.linalg.norm(inverse) * np.linalg.norm(triangle[:rank, :rank])) if rank else 1.0
        return cls(
            matrix=matrix,
            live=live,
            rank=rank,
            basis=_pad(basis[:, :rank]),
            pivots=pivots,
            independent=_pad(matrix[:, pivots].T),
            to_coefficients=to_coefficients,
            row_norms=np.linalg.norm(scaled, axis=1),
            row_class=row_class,
            integral=on_a_grid(matrix),
            condition=condition,
        )

    @property
    def fan_in(self) -> int:
        """Number of rows, k."""
        return self.matrix.shape[0]

    @property
    def columns(self) -> int:
        """Number of columns, q."""
        return self.matrix.shape[1]

    @property
    def place(self) -> slice | NDArray[np.intp]:
        """Where the live rows stand among all rows, as an index: a slice, which copies nothing, if none is dead."""
        return slice(0, self.live.size) if self.live.size == self.fan_in else self.live

    @property
    def full(self) -> bool:
        """Whether the columns span every live direction, so that nothing can be told apart."""
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

    def fitted(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values [n, padded(live_count)] that have these ``coordinates`` [n, padded(rank)] in the basis."""
        return product(coordinates, self.transposed)

    @cached_property
    def compact(self) -> NDArray[np.float64]:
        """The basis without padding, [live_count, rank]."""
        return np.ascontiguousarray(self.basis[: self.live.size, : self.rank])

    @property
    def even(self) -> bool:
        """Whether every live row is evidence in its own right: no multiple of another, and none far smaller."""
        distinct = int(self.row_class.max(initial=-1)) + 1 == self.live.size
        return distinct and bool(self.sizes[self.live].min(initial=1.0) > 1e-4)

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Norm of each row over the largest norm, [k]; 0 for dead rows."""
        sizes = np.zeros(self.fan_in)
        sizes[self.live] = self.row_norms / self.row_norms.max(initial=1e-300)
        return sizes

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
    def witness(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Irregular numbers between 1 and 2, one per padded live row, and their part orthogonal to the basis."""
        irregular = np.zeros(self.basis.shape[0])
        irregular[: self.live.size] = 1.0 + np.modf(np.arange(1, self.live.size + 1) * 0.6180339887498949)[0]
        return irregular, irregular - self.basis @ (irregular @ self.basis)

    @cached_property
    def sparse(self) -> SparseVectors:
        """Vectors of the column space that vanish on most live rows; looked for only where residuals tie."""
        with one_blas_thread():
            return sparse_vectors(self.matrix[self.live], self.pivots)

    @cached_property
    def norms(self) -> NDArray[np.float64] | None:
        """Euclidean norm of each live row as it was given; ``None`` where all are the same."""
        norms = np.linalg.norm(self.matrix[self.live], axis=1)
        return norms if np.ptp(norms) > 1e-9 * norms.max(initial=0.0) else None

    @cached_property
    def sparse_scaled(self) -> SparseVectors:
        """As ``sparse``, after every row was divided by its norm, which undoes weights of the rows."""
        with one_blas_thread():
            return sparse_vectors(self.matrix[self.live] / self.norms[:, None], self.pivots)  # type: ignore[index]

    def warm(self) -> None:
        """Compute what is computed on demand now, before several threads ask for it."""
        with one_blas_thread():
            _ = self.single, self.compact, self.complement, self.witness, self.sizes

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


def on_a_grid(matrix: NDArray[np.float64]) -> bool:
    """Whether all entries are small whole multiples of the smallest of them."""
    sizes = np.abs(matrix)
    steps = sizes / sizes[sizes > 0.0].min(initial=np.inf)
    return bool((steps < 1e6).all() and (np.abs(steps - np.rint(steps)) < 1e-9).all())


def _column_norms(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean norms, 1 for zero columns, safe for entries whose squares would overflow or vanish."""
    peak = np.abs(rows).max(axis=0, initial=0.0)
    peak[peak == 0.0] = 1.0
    return peak * np.maximum(np.linalg.norm(rows / peak, axis=0), 1.0)


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


def _row_classes(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """Number the classes of rows that are multiples of one another (to 1e-12)."""
    if not rows.size:
        return np.zeros(rows.shape[0], dtype=np.intp)
    peak = np.abs(rows).argmax(axis=1)
    directions = rows / np.take_along_axis(rows, peak[:, None], axis=1)
    keys = np.round(directions, 12) + 0.0  # + 0.0 turns -0.0 into 0.0, which would otherwise differ in bits
    _, classes = np.unique(np.ascontiguousarray(keys).view(np.dtype((np.void, 8 * rows.shape[1]))), return_inverse=True)
    return classes.reshape(-1)
