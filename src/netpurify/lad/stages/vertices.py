"""Vertices that a float32 walk has found, and how fits and duals are computed from them in float64."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.rows import add_row, dot
from netpurify.lad.kernels.tableau import walk_near, walk_turned
from netpurify.lad.stages.columns import Columns


@dataclass(frozen=True, slots=True)
class Batch:
    """Columns that are walked together; [n, padded rows] unless said otherwise. Arrays are changed in place.

    Attributes:
        design: The design.
        data: The columns.
        missing: Which entries are missing.
        coordinates: A fit, as coefficients of the basis, [n, padded rank].
        residual: Its residuals.
        sign: Their signs; 0 where missing.
        slope: What the tilt of the loss adds to Q'y = 0, [n, padded rank].
    """

    design: Design
    data: NDArray[np.float64]
    missing: NDArray[np.bool_]
    coordinates: NDArray[np.float64]
    residual: NDArray[np.float64]
    sign: NDArray[np.float64]
    slope: NDArray[np.float64]

    @classmethod
    def start(
        cls, design: Design, columns: Columns, estimate: NDArray[np.float64], chosen: NDArray[np.intp]
    ) -> "Batch":
        """The fit whose residuals are nearest to ``estimate``."""
        data, missing = columns.data[chosen], columns.missing[chosen]
        coordinates = design.coordinates(data - estimate)
        residual = data - design.fitted(coordinates)
        sign = np.where(missing, 0.0, np.where(residual < 0.0, -1.0, 1.0))
        sign[:, design.live.size :] = 0.0
        return cls(design, data, missing, coordinates, residual, sign, columns.slope[chosen])


@dataclass(frozen=True, slots=True)
class Vertices(ABC):
    """Vertices of the columns of a batch.

    Attributes:
        vertex: The rows Z that fit exactly, [n, rank].
        pivots: How many pivots were made, or -1 where no optimal vertex was found, [n].
    """

    vertex: NDArray[np.int64]
    pivots: NDArray[np.int64]

    @abstractmethod
    def change_of_fit(self, batch: Batch) -> NDArray[np.float64]:
        """Q_Z^-1 r_Z, nearly: by this the coordinates must change so that Z fits, [n, padded rank]."""

    @abstractmethod
    def bend(self, dual: NDArray[np.float64], slope: NDArray[np.float64], design: Design) -> None:
        """Subtract Q_Z'^-1 ``slope``, nearly, from the duals of Z, so that the slope becomes zero."""


@dataclass(frozen=True, slots=True)
class _ByInverse(Vertices):
    """Vertices with the inverse of Q_Z in float32, [n, padded rank, padded rank]."""

    inverse: NDArray[np.float32]

    def change_of_fit(self, batch: Batch) -> NDArray[np.float64]:
        change = np.zeros_like(batch.coordinates)
        _times_inverse(self.inverse, self.vertex, batch.residual, change)
        return change

    def bend(self, dual: NDArray[np.float64], slope: NDArray[np.float64], design: Design) -> None:  # noqa: ARG002
        _bend_by_inverse(self.inverse, self.vertex, slope, dual)


@dataclass(frozen=True, slots=True)
class _ByEdges(Vertices):
    """Vertices with T = Q_S Q_Z^-1 in float32, [n, rows S, padded rank], and the rows S, which are all but Z.

    As Q is orthonormal, Q_Z^-1 = Q' [I; T].
    """

    edges: NDArray[np.float32]
    others: NDArray[np.int64]

    def change_of_fit(self, batch: Batch) -> NDArray[np.float64]:
        spread = np.zeros_like(batch.residual)
        _along_edges(self.edges, self.vertex, self.others, batch.residual, spread)
        return batch.design.coordinates(spread)

    def bend(self, dual: NDArray[np.float64], slope: NDArray[np.float64], design: Design) -> None:
        _bend_by_edges(self.edges, self.vertex, self.others, design.fitted(slope), dual)


def walk_near_batch(batch: Batch, *, wide: bool) -> Vertices:
    """Walk on the rows near the fit; ``wide``: on more of them."""
    design, count = batch.design, batch.data.shape[0]
    (rows, rank), width = (design.live.size, design.rank), design.basis.shape[1]
    sizes = np.where(batch.missing, np.inf, np.abs(batch.residual))[:, :rows]
    # The longer the columns, the more rows lie between the rank-th nearest and one that is certainly far.
    near = 4 * rank + 32 if wide else rank + min(rank, rows // 8) + 24
    near = rows if rows <= 1.1 * near else near
    order = np.argsort(sizes, axis=1, kind="stable") if near == rows else _smallest(sizes, near)
    slope = batch.slope
    if near < rows:
        far = batch.sign.copy()
        np.put_along_axis(far, order, 0.0, axis=1)
        slope = slope + design.coordinates(far)
    order[np.take_along_axis(sizes, order, axis=1) == np.inf] = -1
    vertex, pivots = np.zeros((count, rank), np.int64), np.zeros(count, np.int64)
    inverse = np.zeros((count, width, width), np.float32)
    walk_near(design.single[0], batch.residual, order, slope, _most_pivots(rank), vertex, inverse, batch.sign, pivots)
    return _ByInverse(vertex, pivots, inverse)


def walk_turned_batch(batch: Batch, tilt: float) -> Vertices:
    """Walk on what the design does not span; no entry may be missing."""
    design, count = batch.design, batch.data.shape[0]
    rows, rank = design.live.size, design.rank
    null = design.single_null[0] if design.single_null is not None else np.zeros((0, 0), np.float32)
    sizes = np.abs(batch.residual)[:, :rows]
    scale = np.partition(sizes, rank - 1, axis=1)[:, rank - 1] + 1e-300
    vertex, pivots = np.zeros((count, rank), np.int64), np.zeros(count, np.int64)
    others = np.zeros((count, rows - rank), np.int64)
    edges = np.zeros((count, rows - rank, design.basis.shape[1]), np.float32)
    walk_turned(null, batch.residual, scale, tilt, _most_pivots(rank), vertex, others, edges, batch.sign, pivots)
    return _ByEdges(vertex, pivots, edges, others)


def _most_pivots(rank: int) -> int:
    return 4 * rank + 100


def _smallest(sizes: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The places of the ``count`` smallest ``sizes`` of each row, in ascending order of size."""
    chosen = np.sort(np.argpartition(sizes, count - 1, axis=1)[:, :count], axis=1)
    order = np.argsort(np.take_along_axis(sizes, chosen, axis=1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1)


@kernel
def _times_inverse(inverse, vertex, residual, change):
    picked = np.empty(vertex.shape[1])
    for i in range(vertex.shape[0]):
        for a in range(vertex.shape[1]):
            picked[a] = residual[i, vertex[i, a]]
        for c in range(vertex.shape[1]):
            change[i, c] = dot(picked, inverse[i, c], 0)


@kernel
def _bend_by_inverse(inverse, vertex, slope, dual):
    change = np.empty(vertex.shape[1])
    for i in range(vertex.shape[0]):
        for a in range(vertex.shape[1]):
            change[a] = 0.0
        for c in range(vertex.shape[1]):
            add_row(change, slope[i, c], inverse[i, c], 0)
        for a in range(vertex.shape[1]):
            dual[i, vertex[i, a]] -= change[a]


@kernel
def _along_edges(edges, vertex, others, residual, spread):
    picked = np.empty(vertex.shape[1])
    for i in range(vertex.shape[0]):
        for a in range(vertex.shape[1]):
            picked[a] = residual[i, vertex[i, a]]
            spread[i, vertex[i, a]] = picked[a]
        for c in range(others.shape[1]):
            spread[i, others[i, c]] = dot(picked, edges[i, c], 0)


@kernel
def _bend_by_edges(edges, vertex, others, fitted, dual):
    change = np.empty(vertex.shape[1])
    for i in range(vertex.shape[0]):
        for a in range(vertex.shape[1]):
            change[a] = fitted[i, vertex[i, a]]
        for c in range(others.shape[1]):
            add_row(change, fitted[i, others[i, c]], edges[i, c], 0)
        for a in range(vertex.shape[1]):
            dual[i, vertex[i, a]] -= change[a]
