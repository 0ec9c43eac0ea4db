"""What the rounds of polishing decide, column by column: which rows to leave out, what is noise, what is proven.

Counters start from ``np.int64(0)``: for the literal 0 numba would compile the functions that take them once more.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.select import kth_smallest, median_of_sample
from netpurify.lad.verifier.evidence import REDUNDANT

ACTIVE, PROVEN, OPEN = 0, 1, 2
"""Where a column stands: still being worked on; proven; or in need of another stage."""
STANDS_OUT = 3.5
NOISE_TAIL = 20.0
"""In robust standard deviations: what is trimmed on the way, and what no rounding noise reaches at the end."""
PINNED = 0.999
"""A guess of the dual beyond this is taken for +-1."""
BIMODAL = 1e-4
"""A detected floor must lie this far below the typical alteration, or the residual is just dense."""


def kept_rows(rank: int) -> tuple[int, int]:
    """How many rows a trimmed fit keeps at least, and at most where it may choose."""
    return int(1.25 * rank) + 1, 4 * rank + 1


@kernel
def judge(
    data, fitted, moved, free, even, rows, rank, least, most, anchored, with_dual, erased, fits, spread,
    residual, left_out, anchor, target, dual, floor, detectable, vouched, state,
):  # fmt: skip
    """Read one round: retire a column that is proven, or choose the next S and targets."""
    scratch = np.empty(rows)
    for i in range(data.shape[0]):
        if state[i] != ACTIVE:
            continue
        kept, worst = np.int64(0), 0.0
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
            _trim(residual[i], erased[i], rows, least, most, cut, scratch, left_out[i], anchor[i], target[i])
            continue
        if cut > floor[i] and not fits[i] and _grow(residual[i], erased[i], rows, kept, cut):
            # F was chosen by its small residuals, which understates the noise: fit again through all that may fit.
            _trim(residual[i], erased[i], rows, least, rows, 4.0 * cut, scratch, left_out[i], anchor[i], target[i])
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


@inner
def _trim(residual, erased, rows, least, most, cut, scratch, left_out, anchor, target):
    """Leave out what stands out, but keep at least ``least`` rows.

    No more than ``most`` rows are kept where that makes the next factorisation cheaper.
    """
    available, kept = np.int64(0), 0
    for j in range(rows):
        if not erased[j]:
            scratch[available] = abs(residual[j])
            kept += scratch[available] <= cut
            available += 1
    if kept < least:
        cut = kth_smallest(scratch, available, min(least, available) - 1)
    elif kept > most and rows - kept > most:
        cut = kth_smallest(scratch, available, most - 1)
    for j in range(rows):
        out = erased[j] or abs(residual[j]) > cut
        left_out[j] = out
        target[j] = 0.0 if erased[j] else (np.sign(residual[j]) if out else anchor[j])


@inner
def _grow(residual, erased, rows, kept, cut):
    """Whether clearly more rows fit to ``cut`` than were used."""
    fitting = 0
    for j in range(rows):
        fitting += not erased[j] and abs(residual[j]) <= cut
    return fitting > kept + kept // 50


@inner
def _bimodal(residual, erased, rows, cut, detectable, scratch):
    """Whether a detected floor is below what is detectable, and far below the typical alteration if there is any."""
    count = np.int64(0)
    for j in range(rows):
        if not erased[j] and abs(residual[j]) > cut:
            scratch[count] = abs(residual[j])
            count += 1
    return cut <= detectable and (count == 0 or cut <= BIMODAL * kth_smallest(scratch, count, count // 2))


@inner
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


@inner
def _all_vouched(left_out, free, rows):
    """Whether the rows used vouch for one another; then they also vouch for any other row that fits."""
    vouched = True
    for j in range(rows):
        vouched &= left_out[j] or abs(free[j]) > REDUNDANT
    return vouched
