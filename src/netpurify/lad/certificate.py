"""The verifier: what A, B, coefficients and dual alone prove about an answer.

For any y with A'y = 0 and |y| <= 1, and any u, |b - A u|_1 >= y'(b - A u) = y'b: so y'b bounds the minimum from below,
whoever found y and however. A dual that is handed in is first projected on A'y = 0 and shrunk into the box, so the
bound holds even for a wrong one; the gap between objective and bound is all that a wrong answer could hide in.

A minimum is the truth when the rows that fit it vouch for one another: more zero residuals than the rank, and no row
among them that could take any value without the others noticing (leverage 1 within the rows that fit).

Nothing of the solver is used here, and only this module may call an answer optimal or recovered.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, to_numpy
from netpurify.lad.blas import one_thread
from netpurify.lad.design import Design
from netpurify.lad.lapack import JIT, cholesky, cholesky_inverse_trace, cholesky_solve, gram
from netpurify.lad.solution import Solution
from netpurify.lad.status import Status, certified

ACCURACY = 1e-9
_INFEASIBLE = 1e-9
"""How far a dual may be from A'y = 0 when some rows are erased and it cannot be projected."""
_CHANCE = 3.0
"""Accidental zeros are expected in the number that the floor's width gives; this many times that do not count."""
_ROUNDING = 64 * np.finfo(np.float64).eps
_WILD = 100.0
"""The objective counts up to this many times what it would be if all alterations were small ones."""
_VOUCHED = 1e-8
"""A component of a random null vector above this shows that the other rows would notice a change of this one."""
_ONE = 1e-12
"""A dual this close to the residual's sign is that sign: its rounding must not be multiplied by a wild entry."""
_BLOCK = 512

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
        infeasibility: How far the dual had to be moved, entry by entry, to satisfy A'y = 0 and |y| <= 1.
        noise_floor: The floor that the solution claims.
        zeros: Residuals at or below the noise floor.
        surplus: Zeros that are evidence: distinct rows beyond the rank, less ties and what the floor gives by chance;
            0 where a row that fits is vouched for by no other.
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
    if not 0.0 <= accuracy < 1.0:
        raise InputError(f"accuracy must lie in [0, 1), as a share of the objective; got {accuracy}")
    columns, coefficients, dual, floor = _parts(design, B, solution)
    names = [name for name in Certificate.__slots__ if name != "noise_floor"]
    blocks: dict[str, list[NDArray]] = {name: [] for name in names}
    with one_thread():
        for start in range(0, max(1, columns.shape[0]), _BLOCK):
            part = slice(start, start + _BLOCK)
            facts = _verify_block(design, columns[part], coefficients[part], dual[part], floor[part], accuracy)
            for name in names:
                blocks[name].append(facts[name])
    fields: dict[str, NDArray] = {name: np.concatenate(parts) for name, parts in blocks.items()}
    fields["noise_floor"] = floor
    shape = np.shape(solution.noise_floor)
    return Certificate(**{name: fields[name].reshape(shape) for name in Certificate.__slots__})


def _parts(design: Design, right: ArrayLike, solution: Solution) -> tuple[NDArray[np.float64], ...]:
    """B, coefficients and dual as rows, one per column, and the floors; checked against the design."""
    given = (
        to_numpy(right, "the right-hand side"),
        to_numpy(solution.coefficients, "coefficients"),
        to_numpy(solution.dual, "the dual"),
    )
    values, coefficients, dual = (np.atleast_2d(part.astype(np.float64).T) for part in given)
    count = values.shape[0]
    expected = (count, design.fan_in), (count, design.columns), (count, design.fan_in)
    if (values.shape, coefficients.shape, dual.shape) != expected:
        raise InputError(
            f"for a design {[design.fan_in, design.columns]} and {count} columns, expected B and dual "
            f"{[design.fan_in, count]} and coefficients {[design.columns, count]}; got "
            f"{[list(part.shape) for part in given]} for B, coefficients and dual"
        )
    floor = np.asarray(solution.noise_floor, np.float64).reshape(-1)
    if floor.shape != (count,) or not (np.isfinite(floor) & (floor >= 0.0)).all():
        raise InputError(f"the noise floor must be one finite number >= 0 for each of {count} columns; got {floor}")
    return values, coefficients, dual, floor


def _verify_block(
    design: Design,
    data: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    dual: NDArray[np.float64],
    floor: NDArray[np.float64],
    accuracy: float,
) -> dict[str, NDArray]:
    residual, projected, facts = certify(design, design.matrix, data, coefficients, dual, floor, accuracy=accuracy)
    demote_unvouched(design, residual, floor, np.zeros(data.shape[0], np.bool_), facts)
    inside = np.ascontiguousarray(np.where(np.isnan(data), 1.0, projected)[:, design.live])
    unique = np.zeros(data.shape[0], np.bool_)
    stability = np.full(data.shape[0], np.inf)
    _strictly_inside(design.compact, inside, certified(facts["status"]), unique, stability)
    return facts | {"unique": unique, "stability": stability}


def certify(
    design: Design,
    matrix: NDArray[np.float64],
    data: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    dual: NDArray[np.float64],
    floor: NDArray[np.float64],
    *,
    accuracy: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, NDArray]]:
    """Residuals and projected duals [p, k], and the fields of ``Certificate`` that need matrix products only.

    ``RECOVERED`` is provisional: ``demote_unvouched`` must have looked at it.

    Args:
        design: The design.
        matrix: Its columns [k, q], or ones that span the same.
        data: Right-hand sides, [p, >= k]; NaN where erased and beyond k.
        coefficients: [p, q].
        dual: [p, >= k].
        floor: Residuals up to this are zero, [p].
        accuracy: Largest relative gap that counts as proven.
    """
    count, rows = data.shape
    fitted = coefficients @ matrix.T
    erased = np.isnan(data)
    projected = np.where(erased, 0.0, dual)
    live = np.zeros((count, design.basis.shape[0]))
    live[:, : design.live.size] = projected[:, design.place]
    live -= (live @ design.basis) @ design.basis.T
    projected[:, design.place] = live[:, : design.live.size]
    row_class = np.full(rows, -1, np.intp)
    row_class[: design.fan_in] = design.row_class
    facts = {
        "status": np.empty(count, np.int8),
        "objective": np.empty(count),
        "lower_bound": np.empty(count),
        "gap": np.empty(count),
        "infeasibility": np.empty(count),
        "zeros": np.empty(count, np.int64),
        "surplus": np.empty(count, np.int64),
    }
    residual = data - fitted
    _certify(
        data, fitted, residual, erased, dual, projected, floor, row_class, int(row_class.max(initial=-1)) + 1,
        design.rank, design.integral, accuracy, *facts.values(),
    )  # fmt: skip
    return residual, projected, facts


def demote_unvouched(
    design: Design,
    residual: NDArray[np.float64],
    floor: NDArray[np.float64],
    vouched: NDArray[np.bool_],
    facts: dict[str, NDArray],
) -> None:
    """Take back ``RECOVERED`` where a row that fits is vouched for by no other; ``vouched`` columns were seen to."""
    doubtful = np.flatnonzero((facts["status"] == _RECOVERED) & ~vouched)
    if not doubtful.size:
        return
    live = residual[np.ix_(doubtful, design.live)]
    good = np.zeros(doubtful.size, np.bool_)
    _vouch(design.compact, design.row_class[design.live], live, floor[doubtful], design.witness[0], good)
    facts["status"][doubtful[~good]] = _OPTIMAL
    facts["surplus"][doubtful[~good]] = 0


@njit(**JIT)
def _certify(
    data, fitted, residual, erased, dual, projected, floor, classes, class_count, rank, integral, accuracy,
    status, objective, lower_bound, gap, infeasibility, zeros, surplus,
):  # fmt: skip
    rows = residual.shape[1]
    seen = np.full(class_count, -1, np.int64)
    altered = np.empty(rows)
    for i in range(residual.shape[0]):
        largest, misplaced, moved, finite = 1.0, 0.0, 0.0, True
        for j in range(rows):
            if erased[i, j]:
                misplaced = max(misplaced, abs(projected[i, j]))
                projected[i, j] = 0.0
            largest = max(largest, abs(projected[i, j]))
        total, floor_gap, open_gap, rounding = 0.0, 0.0, 0.0, 0.0
        count, present, distinct, live, live_altered, whole = 0, 0, 0, 0, 0, integral
        for j in range(rows):
            if erased[i, j]:
                continue
            present += 1
            projected[i, j] /= largest
            moved = max(moved, abs(projected[i, j] - dual[i, j]))
            size = abs(residual[i, j])
            agreement = projected[i, j] * np.sign(residual[i, j])
            missing = 0.0 if agreement >= 1.0 - _ONE else size * (1.0 - agreement)
            finite &= size < np.inf and abs(agreement) < np.inf
            total += size
            live += classes[j] >= 0
            whole &= data[i, j] == np.rint(data[i, j])
            rounding += _ROUNDING * min(abs(data[i, j]), abs(fitted[i, j]))
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
        objective[i] = total
        gap[i] = max(open_gap + floor_gap, 0.0)
        lower_bound[i] = total - gap[i]
        infeasibility[i] = max(moved, misplaced)
        zeros[i] = present - count
        surplus[i] = max(0, distinct - rank - _accidents(ordered, floor[i], present - rank, whole))
        # A few wild entries must not make every gap look small. And within the noise floor the data are what we say
        # they are: a gap of that size is the floor's, not the fit's.
        scale = min(total, _WILD * count * ordered[count // 4]) if count else 0.0
        proven = open_gap <= accuracy * scale + rounding and misplaced <= _INFEASIBLE
        if not finite:
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
def _accidents(altered, floor, rows, whole):
    """How many zeros beyond the rank may be accidents, given the sizes of the other residuals in ascending order.

    As many as the most frequent of them, if it occurs more than once: twice that and a margin for ``whole`` numbers,
    whose zeros are as cheap as any tie. And as many as a wide floor catches.
    """
    if altered.size == 0:
        return 0
    most, run = 1, 1
    for j in range(1, altered.size):
        run = run + 1 if altered[j] - altered[j - 1] <= max(floor, 1e-12 * altered[j]) else 1
        most = max(most, run)
    ties = most if most > 1 else 0
    if whole:
        ties = int(2 * most + 4 * np.sqrt(most))
    return ties + int(_CHANCE * rows * floor / altered[altered.size // 2])


@njit(**JIT)
def _vouch(basis, classes, residual, floor, irregular, good):
    """Whether each row that fits would be missed by the others, one row for each class of multiples."""
    rows, rank = basis.shape
    seen = np.full(rows, -1, np.int64)
    picked, rest = np.empty((rows, rank)), np.empty((rows, rank))
    index = np.empty(rows, np.int64)
    square = np.empty((rank, rank))
    for i in range(residual.shape[0]):
        count = 0
        for j in range(rows):
            if abs(residual[i, j]) <= floor[i] and seen[classes[j]] != i:
                seen[classes[j]] = i
                picked[count] = basis[j]
                index[count] = j
                count += 1
        if count <= rank:
            continue
        if rank == 0:
            good[i] = True
            continue
        fits = picked[:count]
        if 2 * count > rows:  # the rows that do not fit, or are copies, are fewer: I - their Gram matrix is the same
            a, others = 0, 0
            for j in range(rows):
                if a < count and index[a] == j:
                    a += 1
                    continue
                rest[others] = basis[j]
                others += 1
            square[:] = np.eye(rank)
            gram(rest[:others], square, -1.0, 1.0, True)
        else:
            gram(fits, square, 1.0, 0.0, True)
        if not cholesky(square):
            continue
        pull = np.zeros((1, rank))
        for a in range(count):
            pull[0] += irregular[index[a]] * fits[a]
        cholesky_solve(square, pull)
        free = fits @ pull[0]
        good[i] = True
        for a in range(count):
            good[i] &= abs(irregular[index[a]] - free[a]) > _VOUCHED


@njit(**JIT)
def _strictly_inside(basis, dual, proven, unique, stability):
    """Uniqueness and stability from the rows whose dual lies strictly inside the box."""
    rows, rank = basis.shape
    weighted = np.empty((rows, rank))
    square = np.zeros((rank, rank))
    for i in range(dual.shape[0]):
        count = 0
        for j in range(rows):
            room = 1.0 - abs(dual[i, j])
            if room > 1e-10:
                weighted[count] = room * basis[j]
                count += 1
        if not proven[i] or count < rank:
            continue
        if rank == 0:
            unique[i], stability[i] = True, 0.0
            continue
        gram(weighted[:count], square, 1.0, 0.0, True)
        if not cholesky(square):
            continue
        # trace(G^-1) >= 1 / smin^2: a bound that needs no eigenvalues, at most sqrt(rank) too cautious.
        unique[i] = True
        stability[i] = 2.0 * np.sqrt(cholesky_inverse_trace(square))
