"""What the rounds of polishing decide, column by column: which rows to leave out, what is noise, what is proven."""

import numpy as np
from numba import njit

from netpurify.lad.identify import THRESHOLD
from netpurify.lad.lapack import JIT
from netpurify.lad.order import kth_smallest, median_of_sample

ACTIVE, PROVEN, OPEN = 0, 1, 2
"""Where a column stands: still being worked on; proven; or in need of another stage."""
STANDS_OUT = 3.5
NOISE_TAIL = 20.0
"""In robust standard deviations: what is trimmed on the way, and what no rounding noise reaches at the end."""
PINNED = 0.999
"""A guess of the dual beyond this is taken for +-1."""
VOUCHED = 1e-8
"""A component of a random null vector above this shows that the other rows would notice a change of this one."""
BIMODAL = 1e-4
"""A detected floor must lie this far below the typical alteration, or the residual is just dense."""


@njit(**JIT)
def suspect(
    hard, estimated, sparse, guess, anchored, rows, rank, erased, left_out, anchor, target, spread, fits, state
):
    """Begin anew with what identification takes for outliers; columns with more than ``hard`` of them wait."""
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
def judge(
    data, fitted, moved, free, even, rows, rank, anchored, with_dual, erased, fits, spread,
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
        noise = 1.4826 * median_of_sample(scratch, kept) / np.sqrt(max(1.0 - rank / kept, 0.01))
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
            vouched[i] = even and _all_vouched(left_out[i], free[i], rows)
            floor[i] = cut
        fits[i] = True


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
def _grow(residual, erased, rows, kept, cut):
    """Whether clearly more rows fit to ``cut`` than were used."""
    fitting = 0
    for j in range(rows):
        fitting += not erased[j] and abs(residual[j]) <= cut
    return fitting > kept + kept // 50


@njit(**JIT)
def _bimodal(residual, erased, rows, cut, detectable, scratch):
    """Whether a detected floor is below what is detectable, and far below the typical alteration if there is any."""
    count = 0
    for j in range(rows):
        if not erased[j] and abs(residual[j]) > cut:
            scratch[count] = abs(residual[j])
            count += 1
    return cut <= detectable and (count == 0 or cut <= BIMODAL * kth_smallest(scratch, count, count // 2))


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
def _all_vouched(left_out, free, rows):
    """Whether the rows used vouch for one another; then they also vouch for any other row that fits."""
    vouched = True
    for j in range(rows):
        vouched &= left_out[j] or abs(free[j]) > VOUCHED
    return vouched


@njit(**JIT)
def find_zeros(residual, erased, rows, rank, floor, detectable, left_out, state):
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
                limit = max(limit, min(BIMODAL * ordered[(j + 1 + count) // 2], detectable[i]))
            gap = ordered[j + 1] / max(ordered[j], floor[i])
            if ordered[j] <= limit and gap > widest:
                zeros, widest = j + 1, gap
        if zeros <= rank:
            state[i] = OPEN
            continue
        for j in range(rows):
            left_out[i, j] = erased[i, j] or abs(residual[i, j]) > ordered[zeros - 1]
