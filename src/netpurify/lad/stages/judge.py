"""What a round of polishing decides, column by column: which rows to leave out, what is noise, what is solved.

Counters start from ``np.int64(0)``: for the literal 0 numba would compile the functions that take them once more.
"""

import numpy as np

from netpurify.lad.kernels.compiled import inner, kernel
from netpurify.lad.kernels.select import kth_smallest, median_of_sample
from netpurify.lad.stages.columns import ACTIVE, OPEN, SOLVED
from netpurify.lad.verifier.evidence import REDUNDANT

STANDS_OUT = 3.5
"""Residuals beyond this many robust standard deviations are trimmed on the way."""
NOISE_TAIL = 20.0
"""No rounding noise is larger than this many robust standard deviations."""
PINNED = 0.999
"""A guess of the dual beyond this counts as +-1."""
BIMODAL = 1e-4
"""A detected noise floor is at most this share of the typical alteration; otherwise the residual is merely dense."""


def kept_rows(rank: int) -> tuple[int, int]:
    """How many rows a trimmed fit keeps at least, and at most where it may choose."""
    return int(1.25 * rank) + 1, 4 * rank + 1


@kernel
def decide(
    data, fitted, correction, witness, distinct, rows, rank, least, most, with_guess, with_dual, missing,
    reached_floor, noise_before, residual, left_out, guess, target, dual, floor, largest_floor, redundant, state,
):  # fmt: skip
    """Decide about each active column after a round: SOLVED, OPEN, or ACTIVE with the next S and dual targets."""
    scratch = np.empty(rows)
    for i in range(data.shape[0]):
        if state[i] != ACTIVE:
            continue
        kept, worst = np.int64(0), 0.0
        for j in range(rows):
            residual[i, j] = data[i, j] - fitted[i, j]
            dual[i, j] = target[i, j]
            if not left_out[i, j]:
                dual[i, j] -= correction[i, j]
                scratch[kept] = abs(residual[i, j])
                worst = max(worst, scratch[kept])
                kept += 1
        if kept < rank or not np.isfinite(worst):
            state[i] = OPEN
            continue
        # The fit absorbs rank / kept of the noise in F; what it leaves says how large the noise was.
        noise = 1.4826 * median_of_sample(scratch, kept) / np.sqrt(max(1.0 - rank / kept, 0.01))
        cut = floor[i]
        if largest_floor[i] > 0.0 and (
            worst <= STANDS_OUT * noise or (worst <= NOISE_TAIL * noise and noise > 0.5 * noise_before[i])
        ):
            cut = max(cut, NOISE_TAIL * noise)
        if worst > cut:
            reached_floor[i] = False
            if noise > 0.7 * noise_before[i]:
                state[i] = OPEN
                continue
            noise_before[i] = noise
            cut = max(floor[i], STANDS_OUT * noise)
            _trim(residual[i], missing[i], rows, least, most, cut, scratch, left_out[i], guess[i], target[i])
            continue
        if cut > floor[i] and not reached_floor[i] and _grow(residual[i], missing[i], rows, kept, cut):
            # F was chosen by its small residuals, which understates the noise: fit again through all that may fit.
            _trim(residual[i], missing[i], rows, least, rows, 4.0 * cut, scratch, left_out[i], guess[i], target[i])
            noise_before[i] = noise
            continue
        if cut > floor[i] and not _bimodal(residual[i], missing[i], rows, cut, largest_floor[i], scratch):
            state[i] = OPEN
            continue
        first = not (reached_floor[i] and with_dual)
        state[i] = _prove(
            residual[i], missing[i], rows, cut, first, with_guess, with_dual, left_out[i], guess[i], target[i], dual[i]
        )
        if state[i] == SOLVED:
            redundant[i] = distinct and _all_redundant(left_out[i], witness[i], rows)
            floor[i] = cut
        reached_floor[i] = True


@inner
def _trim(residual, missing, rows, least, most, cut, scratch, left_out, guess, target):
    """Leave out what stands out, but keep at least ``least`` rows.

    No more than ``most`` rows are kept where that makes the next factorisation cheaper.
    """
    available, kept = np.int64(0), 0
    for j in range(rows):
        if not missing[j]:
            scratch[available] = abs(residual[j])
            kept += scratch[available] <= cut
            available += 1
    if kept < least:
        cut = kth_smallest(scratch, available, min(least, available) - 1)
    elif kept > most and rows - kept > most:
        cut = kth_smallest(scratch, available, most - 1)
    for j in range(rows):
        out = missing[j] or abs(residual[j]) > cut
        left_out[j] = out
        target[j] = 0.0 if missing[j] else (np.sign(residual[j]) if out else guess[j])


@inner
def _grow(residual, missing, rows, kept, cut):
    """Whether clearly more rows fit to ``cut`` than were used."""
    fitting = 0
    for j in range(rows):
        fitting += not missing[j] and abs(residual[j]) <= cut
    return fitting > kept + kept // 50


@inner
def _bimodal(residual, missing, rows, cut, largest_floor, scratch):
    """Whether a detected floor is below what is largest_floor, and far below the typical alteration if there is any."""
    count = np.int64(0)
    for j in range(rows):
        if not missing[j] and abs(residual[j]) > cut:
            scratch[count] = abs(residual[j])
            count += 1
    return cut <= largest_floor and (count == 0 or cut <= BIMODAL * kth_smallest(scratch, count, count // 2))


@inner
def _prove(residual, missing, rows, cut, first, with_guess, with_dual, left_out, guess, target, dual):
    """SOLVED if the dual is feasible and agrees in sign; else ACTIVE, with S and targets for another try."""
    wrong, beyond, idle = False, False, False
    for j in range(rows):
        if missing[j]:
            continue
        altered = abs(residual[j]) > cut
        wrong |= altered and target[j] != np.sign(residual[j])
        beyond |= not left_out[j] and abs(dual[j]) > 1.0
        idle |= left_out[j] and not altered
    if with_dual and not (wrong or beyond):
        return SOLVED
    if wrong or (first and (idle or not with_dual)):
        # First fit at the floor: start the dual from the altered rows and the guess alone.
        for j in range(rows):
            altered = abs(residual[j]) > cut
            pinned = abs(guess[j]) > PINNED
            left_out[j] = missing[j] or altered or pinned
            target[j] = 0.0 if missing[j] else (np.sign(residual[j]) if altered else guess[j])
            if pinned and not (altered or missing[j]):
                target[j] = np.sign(guess[j])
        return ACTIVE
    for j in range(rows):
        if left_out[j]:
            continue
        if abs(dual[j]) > 1.0:
            left_out[j] = True
            target[j] = np.sign(dual[j])
        elif with_guess:
            target[j] = dual[j]
    return ACTIVE


@inner
def _all_redundant(left_out, witness, rows):
    """Whether every row of F is predicted by the other rows of F; then any further row that fits is predicted too."""
    redundant = True
    for j in range(rows):
        redundant &= left_out[j] or abs(witness[j]) > REDUNDANT
    return redundant
