"""Second stage: from suspected outliers to an exact fit and the dual that proves it.

A column is described by the set S of rows left out of the fit (F are the others) and a target t for the dual on S.
One round solves, for the same factorisation,

    primal   x = argmin |b_F - Q_F x|_2,          r = b - Q x,
    dual     y = t on S, and the smallest change of ``t`` on F with Q'y = 0,

either through the |S| x |S| block of I - QQ' or through Q_F'Q_F = I - Q_S'Q_S, whichever is cheaper. While some
residual in F stands out of the rest, S becomes the rows that stand out. Once none does, F fits to the noise floor;
then rows with |y| > 1 are pinned at +-1, joined to S, and solved again. With |y| <= 1 everywhere and y = sign(r)
off zero the fit is optimal: A'y = 0 bounds every other fit from below.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.identify import THRESHOLD, Estimate
from netpurify.lad.lapack import JIT, cholesky, cholesky_solve, gram
from netpurify.lad.tolerance import tolerance

ACTIVE, PROVEN, OPEN = 0, 1, 2
"""Where a column stands: still being worked on; proven; or in need of another stage."""

ROUNDS, ROUNDS_TO_FIT = 10, 3
"""At most so many rounds, and so many until F fits; more identification is cheaper than more trimming."""
STANDS_OUT = 3.5
NOISE_TAIL = 20.0
"""In robust standard deviations: what is trimmed on the way, and what no rounding noise reaches at the end."""
PINNED = 0.999
"""A guess of the dual beyond this is taken for +-1."""
VOUCHED = 1e-8
"""A component of a random null vector above this shows that the other rows would notice a change of this one."""
BIMODAL = 1e-4
"""A detected floor must lie this far below the typical alteration, or the residual is just dense."""


@dataclass(frozen=True, slots=True)
class Polish:
    """What the rounds work on and return, for a panel; [panel, rows] unless said otherwise.

    Attributes:
        data: The regressed columns, orthogonal to the basis.
        erased: Entries that are missing.
        left_out: The set S; erased rows belong to it for good.
        anchor: A guess of the dual, from which the dual on F is to move as little as possible; zero where unknown.
        target: Dual wanted on S; on F, where its way starts.
        residual: Residuals.
        dual: The dual found.
        coordinates: Coefficients in the basis, [panel, rank].
        floor: Residuals up to this are zero, [panel]; raised where dense rounding noise is detected.
        detectable: Largest floor that may be detected, [panel]; 0 for none.
        spread: Noise seen in the round before, [panel].
        fits: Whether F already fitted to the floor, [panel].
        vouched: Whether each row that fits was seen to be missed by the others, [panel].
        state: ``ACTIVE``, ``PROVEN`` or ``OPEN``, [panel].
    """

    data: NDArray[np.float64]
    erased: NDArray[np.bool_]
    left_out: NDArray[np.bool_]
    anchor: NDArray[np.float64]
    target: NDArray[np.float64]
    residual: NDArray[np.float64]
    dual: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    floor: NDArray[np.float64]
    detectable: NDArray[np.float64]
    spread: NDArray[np.float64]
    fits: NDArray[np.bool_]
    vouched: NDArray[np.bool_]
    state: NDArray[np.int8]

    @classmethod
    def start(
        cls,
        design: Design,
        data: NDArray[np.float64],
        erased: NDArray[np.bool_],
        floor: NDArray[np.float64],
        detectable: NDArray[np.float64],
    ) -> "Polish":
        """Make room for a panel of columns; ``suspect`` then says where to begin."""
        width = data.shape[0]
        return cls(
            data=data,
            erased=erased,
            left_out=np.zeros(data.shape, np.bool_),
            anchor=np.zeros(data.shape),
            target=np.zeros(data.shape),
            residual=data.copy(),
            dual=np.zeros(data.shape),
            coordinates=np.zeros((width, design.basis.shape[1])),
            floor=floor,
            detectable=detectable,
            spread=np.full(width, np.inf),
            fits=np.zeros(width, np.bool_),
            vouched=np.zeros(width, np.bool_),
            state=np.full(width, ACTIVE, np.int8),
        )

    def take(self, chosen: NDArray[np.intp], width: int) -> "Polish":
        """Copy of the chosen columns, followed by idle ones up to ``width``."""
        picked = np.zeros(width, np.intp)
        picked[: chosen.size] = chosen
        part = Polish(*(getattr(self, name)[picked] for name in self.__slots__))
        part.state[chosen.size :] = OPEN
        return part

    def put(self, chosen: NDArray[np.intp], part: "Polish") -> None:
        """Write back what ``take`` took."""
        for name in self.__slots__:
            if name not in ("data", "erased", "anchor", "detectable"):
                getattr(self, name)[chosen] = getattr(part, name)[: chosen.size]


def suspect(panel: Polish, design: Design, estimate: Estimate, *, anchored: bool) -> None:
    """Begin anew for the columns not yet proven: leave out what ``estimate`` takes for outliers."""
    # With half the outliers that can be tolerated a column is hard: worth more identification before a factorisation,
    # unless that is a small one.
    rows, rank = design.live.size, design.rank
    hard = np.inf if anchored else max(0.5 * tolerance(rows, rank) * rows, 0.5 * rank)
    _suspect(
        hard, estimate.residual, estimate.sparse, estimate.dual, anchored, rows, rank,
        panel.erased, panel.left_out, panel.anchor, panel.target, panel.spread, panel.fits, panel.state,
    )  # fmt: skip


def polish(panel: Polish, design: Design, *, anchored: bool) -> None:
    """Work on every active column of ``panel``, in place, until each is proven or left open.

    ``anchored`` says whether ``anchor`` holds a guess.
    """
    began = panel.state == ACTIVE
    columns = np.flatnonzero(began)
    part = panel
    for number in range(ROUNDS):
        active = np.flatnonzero(part.state == ACTIVE)
        width = design.width(active.size)
        if active.size and 2 * width <= part.state.size:
            if part is not panel:
                panel.put(columns, part)
                active = columns[active]
            columns, part = active, panel.take(active, width)
        if not active.size:
            break
        # Before the first trim the fit is hardly ever exact, so its dual would prove nothing.
        _round(part, design, anchored=anchored, with_dual=anchored or number > 0)
        if number + 1 >= ROUNDS_TO_FIT:
            part.state[(part.state == ACTIVE) & ~part.fits] = OPEN
    part.state[part.state == ACTIVE] = OPEN
    if part is not panel:
        panel.put(columns, part)
    _refit(panel, design, began)


def _refit(panel: Polish, design: Design, began: NDArray[np.bool_]) -> None:
    """Fit once more through every row at the floor where few were used: pinned rows fit as well as the others.

    With them the fit is better conditioned, and its rounding as small as the data allow.
    """
    used = design.live.size - panel.left_out[:, : design.live.size].sum(axis=1)
    chosen = np.flatnonzero(began & (panel.state == PROVEN) & (used < 1.5 * design.rank))
    if not chosen.size:
        return
    part = panel.take(chosen, design.width(chosen.size))
    part.state[: chosen.size] = ACTIVE
    part.left_out[:] = (np.abs(part.residual) > part.floor[:, None]) | part.erased
    coordinates = _solve(part, design, anchored=False, with_dual=False)[0]
    solved = np.flatnonzero(part.state == ACTIVE)
    panel.coordinates[chosen[solved]] = coordinates[solved]


def settle(panel: Polish, design: Design, chosen: NDArray[np.intp]) -> None:
    """Fit vertices that have more zeros than the rank through all of them.

    A vertex fits through the rows that the walk ended with; if many more rows fit, the fit through all of them is
    better conditioned, and rounded data are averaged. The dual stays what it is.
    """
    part = panel.take(chosen, design.width(chosen.size))
    part.state[: chosen.size] = ACTIVE
    residual = part.data - part.coordinates @ design.basis.T
    _find_zeros(
        residual, part.erased, design.live.size, design.rank, part.floor, part.detectable, part.left_out, part.state
    )
    coordinates = _solve(part, design, anchored=False, with_dual=False)[0]
    residual = part.data - coordinates @ design.basis.T
    kept = np.where(part.left_out, 0.0, np.abs(residual))[:, : design.live.size].max(axis=1, initial=0.0)
    for i in np.flatnonzero(part.state == ACTIVE):
        panel.coordinates[chosen[i]] = coordinates[i]
        panel.floor[chosen[i]] = max(part.floor[i], 2.0 * kept[i])


def _round(panel: Polish, design: Design, *, anchored: bool, with_dual: bool) -> None:
    """Solve for the sets S as they are, then judge."""
    basis = design.basis
    active = panel.state == ACTIVE
    coordinates, pull, loose, start = _solve(panel, design, anchored=anchored, with_dual=with_dual)
    panel.coordinates[active] = coordinates[active]
    moved = pull @ basis.T if with_dual else np.zeros_like(panel.data)
    free = start - loose @ basis.T if with_dual else moved
    _judge(
        panel.data, coordinates @ basis.T, moved, free, design.distinct, design.live.size, design.rank, anchored,
        with_dual, panel.erased, panel.fits, panel.spread, panel.residual, panel.left_out, panel.anchor, panel.target,
        panel.dual, panel.floor, panel.detectable, panel.vouched, panel.state,
    )  # fmt: skip


def _solve(
    panel: Polish, design: Design, *, anchored: bool, with_dual: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Coordinates of primal and dual of the active columns; those without full rank in F are left open.

    With the dual come the coordinates, and the start, of a vector that lives on F, is orthogonal to the design, and
    vanishes only on rows that no others vouch for.
    """
    basis, rows, rank = design.basis, design.live.size, design.rank
    block = design.complement if design.complement is not None else np.zeros((0, 0))
    irregular, orthogonal = design.witness
    active = panel.state == ACTIVE
    small = active & (panel.left_out.sum(axis=1) <= (int(1.5 * rank) if block.size else rank))
    large = active & ~small
    coordinates, pull, loose = np.zeros((3, panel.state.size, basis.shape[1]))
    start = np.where(small[:, None], orthogonal, irregular)
    if large.any():
        coordinates = np.where(panel.left_out, 0.0, panel.data) @ basis
    if with_dual and large.any():
        loose = np.where(panel.left_out, 0.0, irregular) @ basis
    if with_dual and (large.any() or anchored):
        pull = panel.target @ basis
    wanted = pull @ basis.T if anchored else panel.target
    _solve_large(panel.left_out, large, basis, rank, rows, coordinates, pull, loose, panel.state)
    if not small.any():
        return coordinates, pull, loose, start
    outliers, forces, ties = np.zeros((3, *panel.data.shape))
    _solve_small(
        panel.data, wanted, orthogonal, with_dual, panel.left_out, small, basis, block, rank, rows,
        outliers, forces, ties, panel.state,
    )  # fmt: skip
    coordinates[small] = ((panel.data - outliers) @ basis)[small]
    if with_dual:
        pull[small] = ((forces + panel.target if anchored else forces) @ basis)[small]
        loose[small] = (ties @ basis)[small]
    return coordinates, pull, loose, start


@njit(**JIT)
def _suspect(
    hard, estimated, sparse, guess, anchored, rows, rank, erased, left_out, anchor, target, spread, fits, state
):
    scratch = np.empty(rows)
    for i in range(state.size):
        if state[i] == PROVEN:
            continue
        state[i], spread[i], fits[i] = ACTIVE, np.inf, False
        kept = 0
        for j in range(rows):
            anchor[i, j] = guess[i, j] / THRESHOLD if anchored and not erased[i, j] else 0.0
            left_out[i, j] = erased[i, j] or sparse[i, j] != 0.0
            kept += not left_out[i, j]
            target[i, j] = np.sign(sparse[i, j]) if left_out[i, j] and not erased[i, j] else anchor[i, j]
        if rows - kept > hard:
            state[i] = OPEN
        elif kept < 1.1 * rank:
            _trim(estimated[i], erased[i], rows, rank, 0.0, False, scratch, left_out[i], anchor[i], target[i])
        elif kept > 4 * rank and rows - kept > 4 * rank:
            _trim(estimated[i], erased[i], rows, rank, np.inf, True, scratch, left_out[i], anchor[i], target[i])


@njit(**JIT)
def _solve_small(
    data, wanted, orthogonal, all_three, left_out, chosen, basis, block, rank, rows, outliers, forces, ties, state
):
    """Solve with the S x S block of I - QQ': the values of the left-out rows, and the forces that make the dual."""
    index = np.empty(rows, np.int64)
    for i in range(data.shape[0]):
        if not chosen[i]:
            continue
        count = 0
        for j in range(rows):
            if left_out[i, j]:
                index[count] = j
                count += 1
        if count == 0:
            continue
        factor = np.empty((count, count))
        if block.shape[0]:
            for a in range(count):
                for b in range(a, count):
                    factor[a, b] = block[index[a], index[b]]
        else:
            picked = np.empty((count, rank))
            for a in range(count):
                picked[a] = basis[index[a], :rank]
                factor[a, :] = 0.0
                factor[a, a] = 1.0
            gram(picked, factor, -1.0, 1.0, False)
        if not cholesky(factor):
            state[i] = OPEN
            continue
        right = np.empty((3, count))
        for a in range(count):
            right[0, a] = data[i, index[a]]
            right[1, a] = wanted[i, index[a]]
            right[2, a] = orthogonal[index[a]]
        cholesky_solve(factor, right if all_three else right[:1])
        for a in range(count):
            outliers[i, index[a]] = right[0, a]
            forces[i, index[a]] = right[1, a]
            ties[i, index[a]] = -right[2, a]


@njit(**JIT)
def _solve_large(left_out, chosen, basis, rank, rows, coordinates, pull, loose, state):
    """Solve with Q_F'Q_F, built from the fewer of the rows in F and in S."""
    for i in range(left_out.shape[0]):
        if not chosen[i]:
            continue
        count = 0
        for j in range(rows):
            count += left_out[i, j]
        from_left_out = count <= rows - count
        picked = np.empty((min(count, rows - count), rank))
        a = 0
        for j in range(rows):
            if left_out[i, j] == from_left_out:
                picked[a] = basis[j, :rank]
                a += 1
        factor = np.zeros((rank, rank))
        if from_left_out:
            for a in range(rank):
                factor[a, a] = 1.0
        gram(picked, factor, -1.0 if from_left_out else 1.0, 1.0, True)
        if not cholesky(factor):
            state[i] = OPEN
            continue
        right = np.empty((3, rank))
        right[0], right[1], right[2] = coordinates[i, :rank], pull[i, :rank], loose[i, :rank]
        cholesky_solve(factor, right)
        coordinates[i, :rank], pull[i, :rank], loose[i, :rank] = right[0], right[1], right[2]


@njit(**JIT)
def _judge(
    data, fitted, moved, free, distinct, rows, rank, anchored, with_dual, erased, fits, spread,
    residual, left_out, anchor, target, dual, floor, detectable, vouched, state,
):  # fmt: skip
    """Read one round: retire a column that is proven, or choose the next S and targets."""
    scratch = np.empty(rows)
    for i in range(data.shape[0]):
        if state[i] != ACTIVE:
            continue
        kept, worst = 0, 0.0
        for j in range(rows):
            residual[i, j] = data[i, j] - fitted[i, j]
            dual[i, j] = target[i, j]
            if not left_out[i, j]:
                dual[i, j] -= moved[i, j]
                scratch[kept] = abs(residual[i, j])
                worst = max(worst, scratch[kept])
                kept += 1
        if kept < rank or not np.isfinite(worst):
            state[i] = OPEN
            continue
        # The fit absorbs rank / kept of the noise in F; what it leaves says how large the noise was.
        noise = 1.4826 * _median_of_sample(scratch, kept) / np.sqrt(max(1.0 - rank / kept, 0.01))
        cut = floor[i]
        if detectable[i] > 0.0 and (
            worst <= STANDS_OUT * noise or (worst <= NOISE_TAIL * noise and noise > 0.5 * spread[i])
        ):
            cut = max(cut, NOISE_TAIL * noise)
        if worst > cut:
            fits[i] = False
            if noise > 0.7 * spread[i]:
                state[i] = OPEN
                continue
            spread[i] = noise
            cut = max(floor[i], STANDS_OUT * noise)
            _trim(residual[i], erased[i], rows, rank, cut, True, scratch, left_out[i], anchor[i], target[i])
            continue
        if cut > floor[i] and not fits[i] and _grow(residual[i], erased[i], rows, kept, cut):
            # F was chosen by its small residuals, which understates the noise: fit again through all that may fit.
            _trim(residual[i], erased[i], rows, rank, 4.0 * cut, False, scratch, left_out[i], anchor[i], target[i])
            spread[i] = noise
            continue
        if cut > floor[i] and not _bimodal(residual[i], erased[i], rows, cut, detectable[i], scratch):
            state[i] = OPEN
            continue
        first = not (fits[i] and with_dual)
        state[i] = _prove(
            residual[i], erased[i], rows, cut, first, anchored, with_dual, left_out[i], anchor[i], target[i], dual[i]
        )
        if state[i] == PROVEN:
            vouched[i] = distinct and _all_vouched(left_out[i], free[i], rows)
            floor[i] = cut
        fits[i] = True


@njit(**JIT)
def _grow(residual, erased, rows, kept, cut):
    """Whether clearly more rows fit to ``cut`` than were used."""
    fitting = 0
    for j in range(rows):
        fitting += not erased[j] and abs(residual[j]) <= cut
    return fitting > kept + kept // 50


@njit(**JIT)
def _all_vouched(left_out, free, rows):
    """Whether the rows used vouch for one another; then they also vouch for any other row that fits."""
    vouched = True
    for j in range(rows):
        vouched &= left_out[j] or abs(free[j]) > VOUCHED
    return vouched


@njit(**JIT)
def _find_zeros(residual, erased, rows, rank, floor, detectable, left_out, state):
    """Leave out all but the zeros: the residuals below the widest gap, if they are more than the rank."""
    for i in range(residual.shape[0]):
        if state[i] != ACTIVE:
            continue
        present = np.empty(rows)
        count = 0
        for j in range(rows):
            if not erased[i, j]:
                present[count] = abs(residual[i, j])
                count += 1
        ordered = np.sort(present[:count])
        zeros, widest = 0, 1e3
        for j in range(rank, count - 1):
            limit = 30.0 * floor[i]
            if detectable[i] > 0.0 and j - rank >= 5 + rank // 20:  # fewer could lie this low by chance
                limit = max(limit, BIMODAL * ordered[(j + 1 + count) // 2])
            gap = ordered[j + 1] / max(ordered[j], floor[i])
            if ordered[j] <= limit and gap > widest:
                zeros, widest = j + 1, gap
        if zeros <= rank:
            state[i] = OPEN
            continue
        for j in range(rows):
            left_out[i, j] = erased[i, j] or abs(residual[i, j]) > ordered[zeros - 1]


@njit(**JIT)
def _trim(residual, erased, rows, rank, cut, capped, scratch, left_out, anchor, target):
    """Leave out what stands out, but keep at least 1.25 rank rows.

    ``capped`` keeps no more than 4 rank rows where that makes the next factorisation cheaper.
    """
    available, kept = 0, 0
    for j in range(rows):
        if not erased[j]:
            scratch[available] = abs(residual[j])
            kept += scratch[available] <= cut
            available += 1
    least, most = int(1.25 * rank) + 1, 4 * rank + 1
    if kept < least:
        cut = kth_smallest(scratch, available, min(least, available) - 1)
    elif capped and kept > most and (rows - kept > most or cut == np.inf):
        cut = kth_smallest(scratch, available, most - 1)
    for j in range(rows):
        out = erased[j] or abs(residual[j]) > cut
        left_out[j] = out
        target[j] = 0.0 if erased[j] else (np.sign(residual[j]) if out else anchor[j])


@njit(**JIT)
def _bimodal(residual, erased, rows, cut, detectable, scratch):
    """Whether a detected floor is far below the typical alteration or, if there is none, below what is detectable."""
    count = 0
    for j in range(rows):
        if not erased[j] and abs(residual[j]) > cut:
            scratch[count] = abs(residual[j])
            count += 1
    return cut <= (BIMODAL * kth_smallest(scratch, count, count // 2) if count else detectable)


@njit(**JIT)
def _prove(residual, erased, rows, cut, first, anchored, with_dual, left_out, anchor, target, dual):
    """PROVEN if the dual is feasible and agrees in sign; else ACTIVE, with S and targets for another try."""
    wrong, beyond, idle = False, False, False
    for j in range(rows):
        if erased[j]:
            continue
        altered = abs(residual[j]) > cut
        wrong |= altered and target[j] != np.sign(residual[j])
        beyond |= not left_out[j] and abs(dual[j]) > 1.0
        idle |= left_out[j] and not altered
    if with_dual and not (wrong or beyond):
        return PROVEN
    if wrong or (first and (idle or not with_dual)):
        # First fit at the floor: start the dual from the altered rows and the guess alone.
        for j in range(rows):
            altered = abs(residual[j]) > cut
            pinned = abs(anchor[j]) > PINNED
            left_out[j] = erased[j] or altered or pinned
            target[j] = 0.0 if erased[j] else (np.sign(residual[j]) if altered else anchor[j])
            if pinned and not (altered or erased[j]):
                target[j] = np.sign(anchor[j])
        return ACTIVE
    for j in range(rows):
        if left_out[j]:
            continue
        if abs(dual[j]) > 1.0:
            left_out[j] = True
            target[j] = np.sign(dual[j])
        elif anchored:
            target[j] = dual[j]
    return ACTIVE


@njit(**JIT)
def _median_of_sample(values, count):
    """Median of some 256 or more of values[:count], which are reordered: enough for a scale."""
    stride = count // 512 + 1
    taken = 0
    for j in range(0, count, stride):
        values[taken] = values[j]
        taken += 1
    return kth_smallest(values, taken, taken // 2)


@njit(**JIT)
def kth_smallest(values, count, k):
    """The k-th smallest (from 0) of values[:count], which are reordered."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]
