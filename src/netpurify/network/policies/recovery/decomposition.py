"""A matrix as the sum of one of low rank and a sparse one, where neither rank nor places are known (robust PCA).

*Pursuit* minimises |L|_* + |S|_1 / sqrt(size) subject to L + S = D, by the method of multipliers. The problem is
convex, so that large sparse entries do not lead it astray (Candes, Li, Ma and Wright, Robust principal component
analysis?, Journal of the ACM 58, 2011). It ends when the singular values that are left are as small as rounding.

*Polishing* leaves out the entries that are far from L, takes the values of L for them, and projects again. If one entry
in ten is left out, every round makes the error about ten times smaller, down to rounding.

Both need only the leading singular vectors, which products with a narrow matrix give. A matrix whose rank is above the
limit is refused as soon as its rank shows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_RANK_SHARE = 6
"""The rank may be at most one in so many of the rows and of the columns. Beyond it, pursuit fails if a tenth of the
entries is altered."""
_CLIP = 10.0
"""For the pursuit, entries are clipped at this many times their median, after division by the usual sizes of rows and
columns."""
_SMALLEST = 0.01
"""No column counts as smaller than this share of the usual one, so that columns of nothing but rounding stay small."""
_GROWTH = 1.4
"""Factor by which the pursuit's threshold shrinks with each step: smaller is slower, and nearer to the minimum."""
_STEPS = 100
"""Most steps of the pursuit. From the largest singular value down to rounding it takes about 30."""
_CUT = 6.0
"""In robust standard deviations: a round of polishing leaves out the entries with larger residuals."""
_ROUNDS = 60
"""Most rounds of polishing; they end earlier if no entry moves by more than a hundredth of its rounding."""
_SPARE = 8
"""Singular vectors that are computed beyond those that are needed, so that the needed ones are accurate."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The part of low rank of a matrix, and what speaks for it.

    Attributes:
        left: Left singular vectors, [rows, rank].
        right: Right singular vectors, [columns, rank].
        singular_values: Of the part of low rank, largest first, [rank].
        next_value: The next singular value, of what is left when altered entries are set aside: rounding.
        unexplained: How many entries differ from the part of low rank by more than rounding.
    """

    left: Array
    right: Array
    singular_values: Array
    next_value: float
    unexplained: int


@dataclass(frozen=True, slots=True)
class _Problem:
    """A matrix with zeros for missing entries, which entries are missing, its rounding, and a source of guesses."""

    matrix: Array
    missing: Mask
    rounding: float
    generator: np.random.Generator

    @property
    def noise(self) -> float:
        """The largest singular value that entries of the size of rounding can have, about."""
        return self.rounding * float(np.sqrt(self.matrix.shape).sum())


def decompose(matrix: Array, rounding: float, generator: np.random.Generator) -> Decomposition | None:
    """The part of low rank of ``matrix``; ``None`` if its rank is above a sixth of its size, or 0.

    Args:
        matrix: [rows, columns]; NaN where an entry is missing.
        rounding: Differences up to this are rounding.
        generator: Draws the first guess of singular vectors.
    """
    missing = np.isnan(matrix)
    problem = _Problem(np.where(missing, 0.0, matrix), missing, rounding, generator)
    rows, columns = _usual_sizes(problem.matrix, rounding)
    scaled = problem.matrix / (rows * columns)
    limit = _CLIP * float(np.median(np.abs(scaled)))
    usual = float(np.median(rows * columns))
    found = _pursue(_Problem(np.clip(scaled, -limit, limit), missing, rounding / usual, generator))
    if found is None:
        return None
    low, right = found
    return _reduce(problem, _polish(problem, rows * low * columns, columns.T * right))


def _usual_sizes(matrix: Array, rounding: float) -> tuple[Array, Array]:
    """Usual sizes of rows and of columns. Divided by them, a matrix keeps its rank, and no line stands out."""
    sizes = np.abs(matrix)
    rows = np.maximum(np.median(sizes, axis=1, keepdims=True), rounding)
    columns = np.median(sizes / rows, axis=0, keepdims=True)
    return rows, np.maximum(columns, _SMALLEST * max(1.0, float(np.median(columns))))


def _pursue(problem: _Problem) -> tuple[Array, Array] | None:
    """The part of low rank and its right singular vectors, with some more; ``None`` if the rank is too large or 0."""
    matrix = problem.matrix
    weight, most = 1.0 / np.sqrt(max(matrix.shape)), min(matrix.shape) // _RANK_SHARE
    right = problem.generator.standard_normal((matrix.shape[1], min(*matrix.shape, 2 * _SPARE)))
    _, values, right = _leading(matrix, right, 3)
    if not values[0] > 0.0:
        return None
    dual = matrix / max(values[0], float(np.abs(matrix).max()) / weight)
    threshold, size = values[0] / 1.25, float(np.linalg.norm(matrix))
    sparse, low, rank = _shrunk(matrix + threshold * dual, weight * threshold), np.zeros_like(matrix), 0
    for _ in range(_STEPS):
        left, values, right = _above(problem, matrix - sparse + threshold * dual, right, rank, threshold)
        rank = int((values > threshold).sum())
        if rank > most:
            return None
        low = (left[:, :rank] * (values[:rank] - threshold)) @ right[:, :rank].T
        sparse = _shrunk(matrix - low + threshold * dual, weight * threshold)
        error = matrix - low - sparse
        dual += error / threshold
        if threshold < problem.noise and float(np.linalg.norm(error)) < 1e-5 * size:
            break
        threshold = max(threshold / _GROWTH, 1e-3 * problem.noise)
    return (low, right[:, :rank]) if rank else None


def _shrunk(matrix: Array, by: float) -> Array:
    return np.sign(matrix) * np.maximum(np.abs(matrix) - by, 0.0)


def _above(problem: _Problem, matrix: Array, guess: Array, rank: int, threshold: float) -> tuple[Array, Array, Array]:
    """Singular vectors and values: so many that the last value is below the threshold, or more than the rank may be."""
    widest = min(min(matrix.shape) // _RANK_SHARE + _SPARE, *matrix.shape)
    width = rank + _SPARE
    while True:
        width = min(width, widest)
        left, values, guess = _leading(matrix, _widened(guess[:, :width], width, problem.generator), 1)
        if values[-1] <= threshold or width == widest:
            return left, values, guess
        width *= 2


def _reduce(problem: _Problem, found: Decomposition | None) -> Decomposition | None:
    """Without directions that explain fewer entries than they have coordinates: such a direction fits alterations."""
    while found is not None and found.singular_values.size > 1:
        spread = np.power(found.left, 4).sum(axis=0) * np.power(found.right, 4).sum(axis=0)
        others = np.arange(spread.size) != int(np.argmax(spread))  # without the direction that has the fewest entries
        low = (found.left[:, others] * found.singular_values[others]) @ found.right[:, others].T
        fewer = _polish(problem, low, found.right[:, others])
        if fewer is None or fewer.unexplained > found.unexplained + sum(problem.matrix.shape):
            return found
        found = fewer
    return found


def _polish(problem: _Problem, low: Array, right: Array) -> Decomposition | None:
    """Project on matrices of this rank or less, with entries far from the last one left out, until nothing moves."""
    matrix, most = problem.matrix, right.shape[1]
    right = _widened(right, min(most + _SPARE, *matrix.shape), problem.generator)
    left, values, rank = right, np.zeros(0), 0
    for _ in range(_ROUNDS):
        residual = np.abs(matrix - low)
        scale = 1.4826 * float(np.median(residual[~problem.missing]))
        kept = (residual <= _CUT * scale) & ~problem.missing
        left, values, right = _leading(np.where(kept, matrix, low), right, 2)
        rank = min(int((values > problem.noise).sum()), most)
        before, low = low, (left[:, :rank] * values[:rank]) @ right[:, :rank].T
        if float(np.abs(low - before).max()) <= 0.01 * problem.rounding:
            break
    if not 0 < rank < values.size:
        return None
    unexplained = int((np.abs(matrix - low)[~problem.missing] > problem.rounding).sum())
    return Decomposition(left[:, :rank], right[:, :rank], values[:rank], float(values[rank]), unexplained)


def _widened(guess: Array, width: int, generator: np.random.Generator) -> Array:
    return np.hstack([guess, generator.standard_normal((guess.shape[0], max(0, width - guess.shape[1])))])


def _leading(matrix: Array, guess: Array, rounds: int) -> tuple[Array, Array, Array]:
    """Leading singular vectors and values by subspace iteration from a guess [columns, how many]."""
    for _ in range(rounds):
        guess = np.linalg.qr(matrix.T @ np.linalg.qr(matrix @ guess)[0])[0]
    left, values, turn = np.linalg.svd(matrix @ guess, full_matrices=False)
    return left, values, guess @ turn.T
