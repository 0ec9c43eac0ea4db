"""What matrix products prove about an answer: the arithmetic of the verifier.

See ``certificate`` for what is proven and why.
"""

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design, on_a_grid
from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.lapack import cholesky, cholesky_inverse_trace, cholesky_solve, gram_of_columns
from netpurify.lad.status import Status
from netpurify.lad.verifier.rivals import few_dominate, heavy_rows_predicted, no_rivals

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


@np.errstate(all="ignore")  # an answer from elsewhere may hold anything; what is not finite counts as failed
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
    erased = np.isnan(data)
    projected = np.where(erased, 0.0, dual)
    live = np.zeros((data.shape[0], design.basis.shape[0]))
    live[:, : design.live.size] = projected[:, design.place]
    live -= design.fitted(design.coordinates(live))
    projected[:, design.place] = live[:, : design.live.size]
    misplaced = np.where(erased, np.abs(projected), 0.0).max(axis=1, initial=0.0)
    projected[erased] = 0.0
    projected /= np.abs(projected).max(axis=1, initial=1.0, keepdims=True)
    residual = data - fitted
    size = np.where(erased, 0.0, np.abs(residual))
    altered = size > floor[:, None]
    gaps, open_gap = _gaps(data, fitted, residual, size, projected, altered=altered)
    ordered, count = _ordered(size, altered)
    present = np.count_nonzero(~erased, axis=1)
    typical = _quantile(ordered, count, 2)
    most = _most_tied(ordered, count, floor)
    accidents = np.where(most > 1, most, 0)
    if design.integral:
        whole = np.array([on_a_grid(column[~np.isnan(column)]) for column in data], np.bool_)
        accidents = np.where(whole, (2 * most + 4 * np.sqrt(most)).astype(np.int64), accidents)
    accidents += np.minimum(_CHANCE * (present - design.rank) * floor / typical, data.shape[1]).astype(np.int64)
    zero = ~(altered | erased)[:, : design.fan_in]
    distinct = _distinct_rows(design, zero & _notices(design.sizes, typical[:, None], floor[:, None]))
    total = size.sum(axis=1)
    surplus = np.maximum(distinct - design.rank - np.where(count > 0, accidents, 0), 0)
    # A few wild entries must not make every gap look small. And within the noise floor the data are what we say they
    # are: a gap of that size is the floor's, not the fit's.
    scale = np.where(count > 0, np.minimum(total, _WILD * count * _quantile(ordered, count, 4)), 0.0)
    proven = (open_gap <= accuracy * scale) & (misplaced <= _INFEASIBLE)
    few = np.count_nonzero(~erased[:, : design.fan_in] & (design.row_class >= 0), axis=1) <= design.rank
    unaltered = np.where(few & (design.rank > 0), _RANK_FULL, _CLEAN)
    status = np.where(proven, np.where(surplus > 0, _RECOVERED, _OPTIMAL), _WITHIN_GAP)
    finite = np.isfinite(total) & np.isfinite(projected).all(axis=1)
    facts = {
        "status": np.where(finite, np.where(count > 0, status, unaltered), _FAILED).astype(np.int8),
        "objective": total,
        "lower_bound": total - gaps,
        "gap": gaps,
        "infeasibility": np.maximum(
            misplaced, np.where(erased, 0.0, np.abs(projected - dual)).max(axis=1, initial=0.0)
        ),
        "zeros": present - count,
        "surplus": surplus,
        "typical": typical,
        "tied": most > 1,
    }
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
    dominated = bool(few_dominate(design).any())
    good = vouched[claimed] & (not dominated)  # the solver's look at a column does not weigh rows against one another
    doubtful = np.flatnonzero(~good)
    if doubtful.size:
        least, lowest, typical = np.zeros(doubtful.size), floor[claimed[doubtful]], facts["typical"][claimed[doubtful]]
        rows = np.abs(live[doubtful]) <= lowest[:, None]
        rows &= _notices(design.sizes[design.live], typical[:, None], lowest[:, None])
        _vouch(design.compact, _one_of_each_class(design, rows), design.witness[0], least)
        good[doubtful] = least > _VOUCHED
        lost = least < np.maximum(_HEAVY, 100.0 * lowest / typical)
        for i in doubtful[good[doubtful] & (lost | dominated)]:
            good[i] = heavy_rows_predicted(design, live[i], float(floor[claimed[i]]))
    tied = np.flatnonzero(good & facts["tied"][claimed])
    if tied.size and design.sparse.count:
        good[tied] = no_rivals(design.sparse, live[tied], floor[claimed[tied]])
    if design.norms is not None:
        scaled = np.where(np.abs(live) <= floor[claimed, None], 0.0, live) / design.norms
        lowest = floor[claimed] / np.median(design.norms)
        sizes = np.abs(np.nan_to_num(scaled))
        tied = np.flatnonzero(good & (_most_tied(*_ordered(sizes, sizes > lowest[:, None]), lowest) > 1))
        if tied.size and design.sparse_scaled.count:
            good[tied] = no_rivals(design.sparse_scaled, scaled[tied], lowest[tied])
    facts["status"][claimed[~good]] = _OPTIMAL
    facts["surplus"][claimed[~good]] = 0


def _gaps(
    data: NDArray[np.float64],
    fitted: NDArray[np.float64],
    residual: NDArray[np.float64],
    size: NDArray[np.float64],
    dual: NDArray[np.float64],
    *,
    altered: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each column's residuals lack of their sizes when the dual weighs them; and of it what rounding leaves open.

    Returns:
        The whole gap, and that of the ``altered`` rows beyond the rounding of their residuals, [p].
    """
    agreement = dual * np.sign(np.where(size > 0.0, residual, 0.0))
    missing = np.where(agreement >= 1.0 - _ONE, 0.0, size * (1.0 - agreement))
    rounding = _ROUNDING * np.minimum(np.abs(data), np.abs(fitted))
    open_gap = np.where(altered, np.maximum(missing - rounding, 0.0), 0.0).sum(axis=1)
    return np.maximum(open_gap + np.where(altered, 0.0, missing).sum(axis=1), 0.0), open_gap


def _ordered(size: NDArray[np.float64], altered: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The sizes of each column's altered entries in ascending order, then infinities; and how many there are."""
    count = np.count_nonzero(altered, axis=1)
    ordered = np.full((count.size, int(count.max(initial=0)) + 1), np.inf)
    ordered[np.arange(ordered.shape[1]) < count[:, None]] = size[altered]  # both go through the columns one by one
    ordered.sort(axis=1)
    return ordered, count


def _quantile(ordered: NDArray[np.float64], count: NDArray[np.intp], part: int) -> NDArray[np.float64]:
    """The entry at ``count // part`` of each column's ``count`` sizes in ascending order; infinite if there is none."""
    return np.take_along_axis(ordered, (count // part)[:, None], axis=1)[:, 0]


def _most_tied(ordered: NDArray[np.float64], count: NDArray[np.intp], floor: NDArray[np.float64]) -> NDArray[np.int64]:
    """How often the most frequent of each column's ``count`` sizes in ascending order occurs."""
    place = np.arange(ordered.shape[1])
    begins = np.ones(ordered.shape, np.bool_)
    ahead = ordered[:, 1:]
    step = np.subtract(ahead, ordered[:, :-1], out=np.full(ahead.shape, np.inf), where=np.isfinite(ahead))
    begins[:, 1:] = step > np.maximum(floor[:, None], 1e-12 * ahead)
    run = place + 1 - np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    return np.where(place < count[:, None], run, 0).max(axis=1, initial=0)


def _distinct_rows(design: Design, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
    """How many classes of rows that are multiples of one another are among the ``chosen`` ones, [p, k]."""
    live = chosen[:, design.live]
    classes = design.row_class[design.live]
    if classes.size == 0 or classes.max() + 1 == classes.size:
        return np.count_nonzero(live, axis=1)
    order = np.argsort(classes, kind="stable")
    first = np.flatnonzero(np.diff(classes[order], prepend=-1))
    return np.count_nonzero(np.logical_or.reduceat(live[:, order], first, axis=1), axis=1)


def _one_of_each_class(design: Design, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The first of the chosen live rows, [p, live rows], of each class of rows that are multiples of one another."""
    classes = design.row_class[design.live]
    if classes.size == 0 or classes.max() + 1 == classes.size:
        return chosen
    kept = np.zeros_like(chosen)
    for i, line in enumerate(chosen):
        place = np.flatnonzero(line)
        kept[i, place[np.unique(classes[place], return_index=True)[1]]] = True
    return kept


def _notices(size: NDArray, typical: NDArray, floor: NDArray) -> NDArray[np.bool_]:
    """Whether a row would notice that a typical alteration of the largest row was taken for truth."""
    return size * typical >= 10.0 * floor


@kernel
def _vouch(basis, chosen, irregular, least):
    """How much the others would miss the chosen row that they would miss least; 0 for not at all.

    Measured by the smallest entry of a random vector on the chosen rows that is orthogonal to the design.
    """
    rows, rank = basis.shape
    picked = np.empty((rows, rank))
    square, pull = np.empty((rank, rank)), np.empty((1, rank))
    for i in range(chosen.shape[0]):
        count = 0
        for j in range(rows):
            count += chosen[i, j]
        if count <= rank:
            continue
        least[i] = np.inf
        if rank == 0:
            continue
        # If the other rows are fewer, I - their Gram matrix is the same.
        others = 2 * count > rows
        taken = np.int64(0)
        for j in range(rows):
            if chosen[i, j] != others:
                for c in range(rank):
                    picked[taken, c] = basis[j, c]
                taken += 1
        for a in range(rank):
            pull[0, a] = 0.0
            for c in range(rank):
                square[a, c] = 1.0 if others and a == c else 0.0
        gram_of_columns(picked, taken, square, -1.0 if others else 1.0, 1.0)
        if not cholesky(square):
            least[i] = 0.0
            continue
        for j in range(rows):
            if chosen[i, j]:
                for c in range(rank):
                    pull[0, c] += irregular[j] * basis[j, c]
        cholesky_solve(square, pull)
        for j in range(rows):
            if chosen[i, j]:
                free = irregular[j]
                for c in range(rank):
                    free -= basis[j, c] * pull[0, c]
                least[i] = min(least[i], abs(free))


@kernel
def strictly_inside(basis, dual, proven, unique, stability):
    """Uniqueness and stability from the rows whose dual lies strictly inside the box."""
    rows, rank = basis.shape
    weighted = np.empty((rows, rank))
    square = np.empty((rank, rank))
    for i in range(dual.shape[0]):
        count = np.int64(0)
        for j in range(rows):
            room = 1.0 - abs(dual[i, j])
            if room > 1e-10:
                for c in range(rank):
                    weighted[count, c] = room * basis[j, c]
                count += 1
        if not proven[i] or count < rank:
            continue
        if rank == 0:
            unique[i], stability[i] = True, 0.0
            continue
        for a in range(rank):
            for c in range(rank):
                square[a, c] = 0.0
        gram_of_columns(weighted, count, square, 1.0, 1.0)
        if not cholesky(square):
            continue
        # trace(G^-1) >= 1 / smin^2: a bound that needs no eigenvalues, at most sqrt(rank) too cautious.
        unique[i] = True
        stability[i] = 2.0 * np.sqrt(cholesky_inverse_trace(square))
