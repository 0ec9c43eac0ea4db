"""The span of a layer's clean inputs, gathered batch by batch; the memory depends on the fan-in alone."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.errors import InputError
from netpurify.threads import one_blas_thread

LIMIT = 3 << 30
"""Bytes that the rows of one layer may take."""
_NOISE = 32.0
"""Directions with less than this many rounding units of the strongest one count as rounding. Activations have passed
through several layers, each of which rounds."""
_ROOM = 512
"""How many rows are kept as they are at least, however small the fan-in."""
_THINNER = 3
"""Once every direction is spanned, fewer and fewer rows are used: each time their number has grown by this factor, the
share of rows that is used falls by this factor. It is odd, so that it has no common factor with most image widths."""
_SPARE, _STEPS = 16, 6
"""Subspace iteration: additional directions, and steps."""


class SpanError(InputError):
    """The inputs of a layer cannot be used: they are not finite, or need too much memory."""


@dataclass
class Span:
    """Rows of clean inputs to one group of a layer, and the directions that they span.

    A coordinate is *live* if a clean input reaches it: if it is not zero in every row. Up to twice the fan-in, rows are
    kept as they are. Beyond that they are replaced by the triangle of their QR factorisation, which has the same span.
    As soon as every live direction is spanned, only second moments are kept, until a row reaches another coordinate.

    Attributes:
        fan_in: Length of a row.
        unit: Rounding unit of the layer's dtype.
        count: Rows seen so far.
        full: Whether every live direction is spanned.
    """

    fan_in: int
    unit: float
    count: int = 0
    full: bool = False
    _rows: list[NDArray[np.float64]] = field(default_factory=list)
    _held: int = 0
    _compressed: bool = False
    _moments: NDArray[np.float64] | None = None

    def add(self, rows: Tensor) -> None:
        """Add rows [rows, fan-in].

        Raises:
            SpanError: They are not finite, or would take more than ``LIMIT`` bytes.
        """
        if not torch.isfinite(rows).all():
            raise SpanError(
                "the layer's inputs must be finite; NaN or infinity reached it from the data or from a layer before "
                "it that cannot be repaired"
            )
        while rows.shape[0]:
            rows = rows[self._add_first(rows) :]

    def _add_first(self, rows: Tensor) -> int:
        """Add the first of these rows; gives how many.

        Rows are added in fixed steps, so that the result does not depend on how they were cut into batches. After each
        step the remaining rows are looked at again: they may reach coordinates that no row reached so far.
        """
        if self.full and not (rows != 0.0).any(dim=0).cpu().numpy()[~self.live()].any():
            self.count += rows.shape[0]
            self._add_moments(rows)
            return rows.shape[0]
        if self.full:
            self._reopen()
        room = self._room
        if min(room, self._held + rows.shape[0]) * self.fan_in * 8 > LIMIT:
            raise SpanError(
                f"the rows of this layer must fit into {LIMIT >> 30} GB; {min(self.count + rows.shape[0], room)} rows "
                f"of {self.fan_in} numbers do not; give fewer clean inputs"
            )
        first = rows[: room - self._held]
        # A copy, because the network may change its activations in place.
        self._rows.append(first.detach().to("cpu", torch.float64, copy=True).numpy())
        self._held += first.shape[0]
        self.count += first.shape[0]
        if self._held >= room:
            self._compress()
        return first.shape[0]

    def _compress(self) -> None:
        rows = np.concatenate(self._rows)
        live = np.flatnonzero((rows != 0.0).any(axis=0))
        triangle = _triangle(rows[:, live])
        full = triangle.shape[0] == live.size and _condition(triangle) > 100.0 * self.tolerance
        rows = np.zeros((triangle.shape[0], self.fan_in))
        rows[:, live] = triangle
        self._rows, self._held, self._compressed = [rows], rows.shape[0], True
        if full:
            self.full = True
            with one_blas_thread():
                self._moments = rows.T @ rows
            self._rows, self._held = [], 0

    def _reopen(self) -> None:
        """A row reaches further coordinates: continue with rows that have the same second moments as those so far."""
        moments, live = self._second(), self.live()
        root = np.zeros((int(live.sum()), self.fan_in))
        with one_blas_thread():
            values, vectors = np.linalg.eigh(moments[np.ix_(live, live)])
        root[:, live] = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        self._rows, self._held, self._moments, self.full = [root], root.shape[0], None, False

    @property
    def _room(self) -> int:
        return max(2 * self.fan_in, _ROOM)

    def _add_moments(self, rows: Tensor) -> None:
        """Add the last rows to the second moments; which of them are used depends on their position alone."""
        position = self.count - rows.shape[0]
        step, end = 1, 2 * self._room
        while rows.shape[0]:
            while position >= end:
                step, end = _THINNER * step, _THINNER * end
            block = rows[: end - position]
            taken = block[-position % step :: step].detach().double().cpu().numpy() * np.sqrt(step)
            while taken.shape[0]:
                self._rows.append(taken[: self._room - self._held])
                self._held += self._rows[-1].shape[0]
                taken = taken[self._rows[-1].shape[0] :]
                if self._held >= self._room:
                    self._moments, self._rows, self._held = self._second(), [], 0
            position += block.shape[0]
            rows = rows[block.shape[0] :]

    def _second(self) -> NDArray[np.float64]:
        """Second moments of all rows, those included that are still kept as they are."""
        assert self._moments is not None
        if not self._rows:
            return self._moments
        rows = np.concatenate(self._rows)
        with one_blas_thread():
            return self._moments + rows.T @ rows

    def matrix(self) -> NDArray[np.float64]:
        """Columns with the same span as the rows, [fan-in, columns].

        Raises:
            SpanError: They span every live direction, so that every change of the weights fits and none stands out.
        """
        if self.full:
            raise SpanError(
                f"the clean inputs span all {int(self.live().sum())} coordinates that they reach; set a rank"
            )
        rows = np.concatenate(self._rows) if self._rows else np.zeros((0, self.fan_in))
        if not self._compressed:
            return np.ascontiguousarray(rows.T)
        # The triangle's last rows may be only rounding, which a design would scale up to full columns.
        triangle, order = _pivoted(rows)
        size = np.abs(np.diagonal(triangle))
        kept = int((size > self.tolerance * size.max(initial=0.0)).sum())
        columns = np.zeros((self.fan_in, kept))
        columns[order] = triangle[:kept].T
        return columns

    def live(self) -> NDArray[np.bool_]:
        """Coordinates that a clean input reaches: those that are not zero in every row, [fan-in]."""
        live = np.zeros(self.fan_in, np.bool_) if self._moments is None else np.diagonal(self._moments) > 0.0
        for rows in self._rows:
            live |= (rows != 0.0).any(axis=0)
        return live

    @property
    def tolerance(self) -> float:
        """Directions with less than this share of the strongest one count as rounding."""
        return _NOISE * self.unit

    def rank(self) -> int:
        """How many directions are spanned; much cheaper than a design."""
        if self.full:
            return int(self.live().sum())
        columns = self.matrix()
        scaled = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        triangle = _triangle(scaled)
        if triangle.shape[0] == triangle.shape[1] and _condition(triangle) > 100.0 * self.tolerance:
            return triangle.shape[0]
        sizes = np.abs(np.diagonal(_pivoted(triangle)[0]))
        return int((sizes > self.tolerance * sizes.max(initial=0.0)).sum())

    def design(self) -> lad.Design:
        """The span as a design."""
        return lad.Design.prepare(self.matrix(), rank_tolerance=self.tolerance)

    def strongest(self, rank: int) -> NDArray[np.float64]:
        """Orthonormal directions in which the rows have the most energy, [fan-in, rank]."""
        if self._moments is None or 4 * rank > self.fan_in:
            return np.ascontiguousarray(self._principal()[:, :rank])
        # A few steps of subspace iteration: all eigenvectors of a large layer would take minutes.
        moments = self._second()
        start = np.random.default_rng(0).normal(size=(self.fan_in, rank + _SPARE))
        with one_blas_thread():
            for _ in range(_STEPS):
                start = np.linalg.qr(moments @ start)[0]
            values, turn = np.linalg.eigh(start.T @ moments @ start)
        return np.ascontiguousarray(start @ turn[:, np.argsort(-values)[:rank]])

    def energies(self) -> NDArray[np.float64]:
        """Energy of the rows in each of their principal directions, largest first."""
        with one_blas_thread():
            if self._moments is not None:
                values = np.linalg.eigvalsh(self._second())[::-1]
            else:
                values = np.square(np.linalg.svd(self.matrix(), compute_uv=False))
        return np.maximum(values[self._above_rounding(values)], 0.0)

    def _principal(self) -> NDArray[np.float64]:
        """Principal directions with energy above rounding, [fan-in, directions], strongest first."""
        with one_blas_thread():
            if self._moments is not None:
                values, vectors = np.linalg.eigh(self._second())
                values, vectors = values[::-1], vectors[:, ::-1]
            else:
                vectors, sizes, _ = np.linalg.svd(self.matrix(), full_matrices=False)
                values = np.square(sizes)
        return vectors[:, self._above_rounding(values)]

    def _above_rounding(self, values: NDArray) -> slice:
        return slice(int((values > self.tolerance**2 * values.max(initial=0.0)).sum()))


def _triangle(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    with one_blas_thread():
        triangle: Any = np.linalg.qr(matrix, mode="r")  # one matrix in this mode
    return triangle


def _pivoted(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    pivoted: Any = scipy.linalg.qr  # its return type depends on its arguments, which the stubs do not describe
    with one_blas_thread():
        return pivoted(matrix, mode="r", pivoting=True, check_finite=False)


def _condition(triangle: NDArray[np.float64]) -> float:
    """Reciprocal condition number of a square triangle whose columns are scaled to the same norm."""
    if not triangle.size:
        return 1.0
    scale = np.linalg.norm(triangle, axis=0)
    lapack: Any = scipy.linalg.lapack  # its functions are made at run time
    return float(lapack.dtrcon(triangle / np.where(scale > 0.0, scale, 1.0))[0])
