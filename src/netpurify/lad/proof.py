"""What matrix products prove about an answer: the arithmetic of the verifier.

See ``certificate`` for what is proven and why.
"""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.compiled import inner, kernel
from netpurify.lad.design import Design
from netpurify.lad.lapack import cholesky, cholesky_inverse_trace, cholesky_solve, gram_of_columns
from netpurify.lad.rivals import few_dominate, heavy_rows_predicted, no_rivals
from netpurify.lad.status import Status

_INFEASIBLE = 1e-9
"""How far a dual may be from A'y = 0 when some rows are erased and it cannot be projected."""
_CHANCE = 3.0
"""Accidental zeros are expected in the number that the floor's width gives; this many times that do not count."""
_ROUNDING = 8 * np.finfo(np.float64).eps
"""A residual is known no better than this share of what was subtracted to get it."""
_WILD = 100.0
"""The objective counts up to this many times what it would be if all alterations were small ones."""
_VOUCHED = 1e-8
"""A component of a random null vector above this shows that the other rows would notice a change of this one."""
_HEAVY = 1e-4
"""Below this, or where a hundredth of a typical alteration would be lost in the floor, the row is looked at closely."""
_ONE = 1e-12
"""A dual this close to the residual's sign is that sign: its rounding must not be multiplied by a wild entry."""

_CLEAN, _RECOVERED, _OPTIMAL = int(Status.CLEAN), int(Status.RECOVERED), int(Status.OPTIMAL)
_WITHIN_GAP, _RANK_FULL, _FAILED = int(Status.WITHIN_GAP), int(Status.RANK_FULL), int(Status.FAILED)


def certify(
    design: Design,
    data: NDArray[np.float64],
    fitted: NDArray[np.float64],
    dual: NDArray[np.float64],
    floor: NDArray[np.float64],
    *,
    accuracy: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, NDArray]]:
    """Residuals and projected duals [p, k], and the fields of ``Certificate`` that need matrix products only.

    With them come the typical size of an alteration, and whether two alterations are equal in size.

    ``RECOVERED`` is provisional: ``demote_unvouched`` must have looked at it.

    Args:
        design: The design.
        data: Right-hand sides, [p, >= k]; NaN where erased and beyond k.
        fitted: What the coefficients make of the design, [p, >= k].
        dual: [p, >= k].
        floor: Residuals up to this are zero, [p].
        accuracy: Largest relative gap that counts as proven.
    """
    count, rows = data.shape
    erased = np.isnan(data)
    projected = np.where(erased, 0.0, dual)
    live = np.zeros((count, design.basis.shape[0]))
    live[:, : design.live.size] = projected[:, design.place]
    live -= design.fitted(design.coordinates(live))
    projected[:, design.place] = live[:, : design.live.size]
    row_class = np.full(rows, -1, np.intp)
    row_class[: design.fan_in] = design.row_class
    sizes = np.zeros(rows)
    sizes[: design.fan_in] = design.sizes
    facts = {
        "status": np.empty(count, np.int8),
        "objective": np.empty(count),
        "lower_bound": np.empty(count),
        "gap": np.empty(count),
        "infeasibility": np.empty(count),
        "zeros": np.empty(count, np.int64),
        "surplus": np.empty(count, np.int64),
        "typical": np.empty(count),
        "tied": np.empty(count, np.bool_),
    }
    residual = data - fitted
    magnitude = np.abs(residual)
    ordered = np.sort(np.where(magnitude > floor[:, None], magnitude, np.inf), axis=1)
    _certify(
        data, fitted, residual, ordered, erased, dual, projected, floor, sizes, row_class,
        int(row_class.max(initial=-1)) + 1, design.rank, design.integral, accuracy, *facts.values(),
    )  # fmt: skip
    return residual, projected, facts


def demote_unvouched(
    design: Design,
    residual: NDArray[np.float64],
    floor: NDArray[np.float64],
    vouched: NDArray[np.bool_],
    facts: dict[str, NDArray],
) -> None:
    """Take back ``RECOVERED`` where the rows that fit do not vouch for one another, or a rival fit is plausible.

    ``vouched`` columns were seen to have no row that fits but that no other row would miss.
    """
    claimed = np.flatnonzero(facts["status"] == _RECOVERED)
    if not claimed.size:
        return
    live = residual[np.ix_(claimed, design.live)]
    good = vouched[claimed].copy()
    doubtful = np.flatnonzero(~good)
    if doubtful.size:
        least, lowest, typical = np.zeros(doubtful.size), floor[claimed[doubtful]], facts["typical"][claimed[doubtful]]
        _vouch(
            design.compact, design.row_class[design.live], design.sizes[design.live], live[doubtful], lowest, typical,
            design.witness[0], least,
        )  # fmt: skip
        good[doubtful] = least > _VOUCHED
        lost = least < np.maximum(_HEAVY, 100.0 * lowest / typical)
        for i in doubtful[good[doubtful] & (lost | few_dominate(design).any())]:
            good[i] = heavy_rows_predicted(design, live[i], float(floor[claimed[i]]))
    tied = np.flatnonzero(good & facts["tied"][claimed])
    if tied.size and design.sparse.count:
        good[tied] = no_rivals(design, live[tied], floor[claimed[tied]])
    facts["status"][claimed[~good]] = _OPTIMAL
    facts["surplus"][claimed[~good]] = 0


@kernel
def _certify(
    data, fitted, residual, ordered, erased, dual, projected, floor, sizes, classes, class_count, rank, integral,
    accuracy, status, objective, lower_bound, gap, infeasibility, zeros, surplus, typical, tied,
):  # fmt: skip
    rows = residual.shape[1]
    seen = np.full(class_count, -1, np.int64)
    for i in range(residual.shape[0]):
        largest, misplaced, moved, finite = 1.0, 0.0, 0.0, True
        for j in range(rows):
            if erased[i, j]:
                misplaced = max(misplaced, abs(projected[i, j]))
                projected[i, j] = 0.0
            largest = max(largest, abs(projected[i, j]))
        total, floor_gap, open_gap = 0.0, 0.0, 0.0
        count, present, distinct, live = 0, 0, 0, 0
        whole = integral and _on_a_grid(data[i])
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
            if size > floor[i]:
                count += 1
                open_gap += max(missing - _ROUNDING * min(abs(data[i, j]), abs(fitted[i, j])), 0.0)
                continue
            floor_gap += missing
        altered = ordered[i, :count]
        typical[i] = altered[count // 2] if count else np.inf
        for j in range(rows):
            zero = not erased[i, j] and abs(residual[i, j]) <= floor[i]
            if zero and classes[j] >= 0 and seen[classes[j]] != i and _notices(sizes[j], typical[i], floor[i]):
                seen[classes[j]] = i
                distinct += 1
        objective[i] = total
        gap[i] = max(open_gap + floor_gap, 0.0)
        lower_bound[i] = total - gap[i]
        infeasibility[i] = max(moved, misplaced)
        zeros[i] = present - count
        most = _most_tied(altered, floor[i])
        tied[i] = most > 1
        surplus[i] = max(0, distinct - rank - _accidents(altered, most, floor[i], present - rank, whole))
        # A few wild entries must not make every gap look small. And within the noise floor the data are what we say
        # they are: a gap of that size is the floor's, not the fit's.
        scale = min(total, _WILD * count * altered[count // 4]) if count else 0.0
        proven = open_gap <= accuracy * scale and misplaced <= _INFEASIBLE
        if not finite:
            status[i] = _FAILED
        elif live <= rank and rank > 0 and count == 0:
            status[i] = _RANK_FULL
        elif count == 0:
            status[i] = _CLEAN
        elif not proven:
            status[i] = _WITHIN_GAP
        else:
            status[i] = _RECOVERED if surplus[i] > 0 else _OPTIMAL


@inner
def _notices(size, typical, floor):
    """Whether a row would notice that a typical alteration of the largest row was taken for truth."""
    return size * typical >= 10.0 * floor


@inner
def _on_a_grid(values):
    """Whether all values that are not NaN are small whole multiples of the smallest of them."""
    unit = np.inf
    for value in values:
        if value != 0.0 and abs(value) < unit:
            unit = abs(value)
    for value in values:
        steps = abs(value) / unit
        if steps > 1e6 or abs(steps - np.rint(steps)) > 1e-9:
            return False
    return True


@inner
def _most_tied(altered, floor):
    """How often the most frequent of these sizes, in ascending order, occurs."""
    most, run = 0, 0
    for j in range(altered.size):
        run = run + 1 if j > 0 and altered[j] - altered[j - 1] <= max(floor, 1e-12 * altered[j]) else 1
        most = max(most, run)
    return most


@inner
def _accidents(altered, most, floor, rows, whole):
    """How many zeros beyond the rank may be accidents, given the sizes of the other residuals in ascending order.

    As many as the ``most`` frequent of them, if it occurs more than once: twice that and a margin for ``whole``
    multiples of one number, whose zeros are as cheap as any tie. And as many as a wide floor catches.
    """
    if altered.size == 0:
        return 0
    ties = most if most > 1 else 0
    if whole:
        ties = int(2 * most + 4 * np.sqrt(most))
    return ties + int(_CHANCE * rows * floor / altered[altered.size // 2])


@kernel
def _vouch(basis, classes, sizes, residual, floor, typical, irregular, least):
    """How much the others would miss the row that fits and that they would miss least; 0 for not at all.

    One row stands for each class of multiples. Measured by the smallest entry of a random vector on these rows that is
    orthogonal to the design.
    """
    rows, rank = basis.shape
    seen = np.full(rows, -1, np.int64)
    picked, rest = np.empty((rows, rank)), np.empty((rows, rank))
    index = np.empty(rows, np.int64)
    square = np.empty((rank, rank))
    for i in range(residual.shape[0]):
        count = 0
        for j in range(rows):
            if abs(residual[i, j]) <= floor[i] and seen[classes[j]] != i and _notices(sizes[j], typical[i], floor[i]):
                seen[classes[j]] = i
                picked[count] = basis[j]
                index[count] = j
                count += 1
        if count <= rank:
            continue
        if rank == 0:
            least[i] = np.inf
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
            gram_of_columns(rest, others, square, -1.0, 1.0)
        else:
            gram_of_columns(picked, count, square, 1.0, 0.0)
        if not cholesky(square):
            continue
        pull = np.zeros((1, rank))
        for a in range(count):
            pull[0] += irregular[index[a]] * fits[a]
        cholesky_solve(square, pull)
        free = fits @ pull[0]
        least[i] = np.inf
        for a in range(count):
            least[i] = min(least[i], abs(irregular[index[a]] - free[a]))


@kernel
def strictly_inside(basis, dual, proven, unique, stability):
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
        gram_of_columns(weighted, count, square, 1.0, 0.0)
        if not cholesky(square):
            continue
        # trace(G^-1) >= 1 / smin^2: a bound that needs no eigenvalues, at most sqrt(rank) too cautious.
        unique[i] = True
        stability[i] = 2.0 * np.sqrt(cholesky_inverse_trace(square))
