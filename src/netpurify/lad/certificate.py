"""The verifier: what A, B, coefficients and dual alone prove about an answer.

For any y with A'y = 0 and |y| <= 1, and any u, |b - A u|_1 >= y'(b - A u) = y'b: so y'b bounds the minimum from below,
whoever found y and however. The gap between the objective and this bound is all that a wrong answer could hide in.

Nothing of the solver is used here, and only this module may call an answer optimal.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.design import Design
from netpurify.lad.lapack import JIT, cholesky, cholesky_inverse_trace, gram
from netpurify.lad.solution import Solution
from netpurify.lad.status import Status, certified

ACCURACY = 1e-9
_INFEASIBLE = 1e-9
_CHANCE = 3.0
"""Accidental zeros are expected in the number that the floor's width gives; this many times that do not count."""

_ROUNDING = 64 * np.finfo(np.float64).eps
_WILD = 100.0

_CLEAN, _RECOVERED, _OPTIMAL = int(Status.CLEAN), int(Status.RECOVERED), int(Status.OPTIMAL)
_WITHIN_GAP, _RANK_FULL, _FAILED = int(Status.WITHIN_GAP), int(Status.RANK_FULL), int(Status.FAILED)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was recomputed for each column; arrays [p] (or scalars' worth, [], for a right-hand side [k]).

    Attributes:
        status: ``Status`` codes.
        objective: |b - A u|_1.
        lower_bound: A bound that no fit can go below.
        gap: objective - lower_bound.
        infeasibility: Largest |a_j'y| / |a_j|_1 over the columns of A, or excess of |y| over 1: zero for a valid dual.
        noise_floor: The floor that the solution claims.
        zeros: Residuals at or below the noise floor.
        surplus: Zeros that are evidence: distinct rows beyond the rank, less ties and what the floor gives by chance.
        unique: Whether the rows with |y| < 1 determine the fit, so that no other fit is as good.
        stability: Fitted values move by at most ``stability`` * |e|_1 (Euclidean norm) when the data change by e;
            infinite where the minimiser is not unique or no dual proves it.
    """

    status: NDArray[np.int8]
    objective: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    gap: NDArray[np.float64]
    infeasibility: NDArray[np.float64]
    noise_floor: NDArray[np.float64]
    zeros: NDArray[np.int64]
    surplus: NDArray[np.int64]
    unique: NDArray[np.bool_]
    stability: NDArray[np.float64]

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Which columns are proven minima."""
        return certified(self.status)

    @property
    def relative_gap(self) -> NDArray[np.float64]:
        """Gap over objective; 0 where both are 0."""
        return self.gap / np.where(self.objective > 0.0, self.objective, 1.0)


def verify(A: ArrayLike | Design, B: ArrayLike, solution: Solution, *, accuracy: float = ACCURACY) -> Certificate:  # noqa: N803
    """Check every column of ``solution`` from scratch.

    Cost per column: two matrix-vector products, and one Cholesky factorisation for uniqueness and stability.

    Args:
        A: The design [k, q], or a prepared ``Design``.
        B: The right-hand sides [k, p] or [k] that were solved; NaN entries are erased.
        solution: The answer; its coefficients, dual and noise floor are read, its status and residual are not.
        accuracy: Largest gap, relative to the objective, that counts as proven.

    Raises:
        InputError: Shapes do not fit together.
    """
    design = A if isinstance(A, Design) else Design.prepare(A)
    values = np.asarray(to_numpy(B, "the right-hand side"), dtype=np.float64)
    single = values.ndim == 1
    columns = values.reshape(design.fan_in, -1) if values.shape[:1] == (design.fan_in,) else values
    coefficients = np.asarray(to_numpy(solution.coefficients, "coefficients"), dtype=np.float64)
    dual = np.asarray(to_numpy(solution.dual, "the dual"), dtype=np.float64)
    if single:
        coefficients, dual = coefficients[:, None], dual[:, None]
    shapes = (design.fan_in, columns.shape[-1]), (design.columns, columns.shape[-1])
    if (columns.shape, coefficients.shape) != shapes or dual.shape != shapes[0]:
        raise InputError(
            f"for a design {[design.fan_in, design.columns]} and {columns.shape[-1]} columns, expected B and dual "
            f"{list(shapes[0])} and coefficients {list(shapes[1])}; got {list(columns.shape)}, {list(dual.shape)} and "
            f"{list(coefficients.shape)}"
        )
    floor = np.atleast_1d(solution.noise_floor)
    _, facts = certify(
        design.matrix, design.rank, design.row_class, columns.T, coefficients.T, dual.T, floor, accuracy=accuracy
    )
    unique, stability = _stability(design, dual.T, np.isnan(columns.T))
    proven = certified(facts["status"])
    certificate = Certificate(
        **facts, noise_floor=floor, unique=unique & proven, stability=np.where(proven, stability, np.inf)
    )
    if not single:
        return certificate
    return Certificate(*(getattr(certificate, name).reshape(()) for name in Certificate.__slots__))


def certify(
    matrix: NDArray[np.float64],
    rank: int,
    row_class: NDArray[np.intp],
    data: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    dual: NDArray[np.float64],
    floor: NDArray[np.float64],
    *,
    accuracy: float,
) -> tuple[NDArray[np.float64], dict[str, NDArray]]:
    """Residuals [p, k], and the fields of ``Certificate`` that need matrix products only.

    Args:
        matrix: The design's columns [k, q], or ones that span the same.
        rank: Its rank.
        row_class: Number of each row's class of multiples, [k]; negative for rows of zeros.
        data: Right-hand sides, [p, k]; NaN where erased.
        coefficients: [p, q].
        dual: [p, k].
        floor: Residuals up to this are zero, [p].
        accuracy: Largest relative gap that counts as proven.
    """
    residual = data - coefficients @ matrix.T
    erased = np.isnan(data)
    dual = np.where(erased, 0.0, dual)
    forces = dual @ matrix
    weights = np.abs(matrix).sum(axis=0)
    count = data.shape[0]
    facts = {
        "status": np.empty(count, np.int8),
        "objective": np.empty(count),
        "lower_bound": np.empty(count),
        "gap": np.empty(count),
        "infeasibility": np.empty(count),
        "zeros": np.empty(count, np.int64),
        "surplus": np.empty(count, np.int64),
    }
    _certify(
        residual, erased, dual, forces, np.ascontiguousarray(coefficients), weights, floor, row_class,
        int(row_class.max(initial=-1)) + 1, rank, accuracy, *facts.values(),
    )  # fmt: skip
    return residual, facts


@njit(**JIT)
def _certify(
    residual, erased, dual, forces, coefficients, weights, floor, classes, class_count, rank, accuracy,
    status, objective, lower_bound, gap, infeasibility, zeros, surplus,
):  # fmt: skip
    rows = residual.shape[1]
    seen = np.full(class_count, -1, np.int64)
    altered = np.empty(rows)
    for i in range(residual.shape[0]):
        largest, infeasible, slack, rounding = 1.0, 0.0, 0.0, 0.0
        for j in range(rows):
            largest = max(largest, abs(dual[i, j]))
        for c in range(weights.size):
            slack += abs(coefficients[i, c] * forces[i, c]) / largest
            rounding += _ROUNDING * abs(coefficients[i, c]) * weights[c]
            if weights[c] > 0.0:
                infeasible = max(infeasible, abs(forces[i, c]) / weights[c])
        infeasible = max(infeasible, largest - 1.0)
        total, floor_gap, open_gap = 0.0, 0.0, slack
        count, present, distinct, live, live_altered = 0, 0, 0, 0, 0
        for j in range(rows):
            if erased[i, j]:
                continue
            present += 1
            size = abs(residual[i, j])
            missing = size - residual[i, j] * dual[i, j] / largest
            total += size
            live += classes[j] >= 0
            if size > floor[i]:
                altered[count] = size
                count += 1
                live_altered += classes[j] >= 0
                open_gap += missing
                continue
            floor_gap += missing
            if classes[j] >= 0 and seen[classes[j]] != i:
                seen[classes[j]] = i
                distinct += 1
        ordered = np.sort(altered[:count])
        typical = ordered[count // 2] if count else 0.0
        accidents = _ties(ordered, floor[i])
        if count:
            accidents += int(_CHANCE * (present - rank) * floor[i] / typical)
        objective[i] = total
        gap[i] = max(open_gap + floor_gap, 0.0)
        lower_bound[i] = total - gap[i]
        infeasibility[i] = infeasible
        zeros[i] = present - count
        surplus[i] = max(0, distinct - rank - accidents)
        # One wild entry must not make every gap look small. And within the noise floor the data are what we say
        # they are: a gap of that size is the floor's, not the fit's.
        scale = min(total, _WILD * count * typical)
        proven = open_gap <= accuracy * scale + rounding
        if not (np.isfinite(gap[i]) and infeasible <= _INFEASIBLE):
            status[i] = _FAILED
        elif 0 < live <= rank and live_altered == 0:
            status[i] = _RANK_FULL
        elif count == 0:
            status[i] = _CLEAN
        elif not proven:
            status[i] = _WITHIN_GAP
        else:
            status[i] = _RECOVERED if surplus[i] > 0 else _OPTIMAL


@njit(**JIT)
def _ties(ordered, floor):
    """How often the most frequent value occurs, if more than once: zeros may be as frequent by accident."""
    most, run = 1, 1
    for j in range(1, ordered.size):
        run = run + 1 if ordered[j] - ordered[j - 1] <= max(floor, 1e-12 * ordered[j]) else 1
        most = max(most, run)
    return most if most > 1 else 0


def _stability(
    design: Design, dual: NDArray[np.float64], erased: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Uniqueness and stability from the rows whose dual lies strictly inside the box."""
    live = np.ascontiguousarray(np.where(erased, 1.0, dual)[:, design.live])
    unique = np.zeros(dual.shape[0], np.bool_)
    stability = np.full(dual.shape[0], np.inf)
    _strictly_inside(design.compact, live, unique, stability)
    return unique, stability


@njit(**JIT)
def _strictly_inside(basis, dual, unique, stability):
    rows, rank = basis.shape
    weighted = np.empty((rows, rank))
    square = np.empty((rank, rank))
    for i in range(dual.shape[0]):
        count = 0
        for j in range(rows):
            room = 1.0 - abs(dual[i, j])
            if room > 1e-10:
                weighted[count] = room * basis[j]
                count += 1
        if count < rank:
            continue
        square[:] = 0.0
        gram(weighted[:count], square, 1.0, 0.0, True)
        if rank and not cholesky(square):
            continue
        # trace(G^-1) >= 1 / smin^2: a bound that needs no eigenvalues, at most sqrt(rank) too cautious.
        unique[i] = True
        stability[i] = 2.0 * np.sqrt(cholesky_inverse_trace(square)) if rank else 0.0
