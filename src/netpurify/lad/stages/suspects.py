"""Which rows are left out of a column's first fit, after identification has estimated its residuals."""

import numpy as np

from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.select import kth_smallest
from netpurify.lad.stages.columns import ACTIVE, OPEN

_SPARE = 0.25
"""At the limit of recovery some rows fit beyond the rank. Columns in which fewer than this share of them do are left to
the simplex walk."""


@kernel
def choose_suspects(
    data, missing, sparse, estimated, scaled_dual, unit, rows, rank, tolerated, least, most, with_guess, noise_floor,
    largest_floor, left_out, guess, target, noise, reached_floor, state,
):  # fmt: skip
    """Start each OPEN column anew: choose its set S and the targets of its dual, and whether it is worth a fit now.

    ``sparse``, ``estimated`` and ``scaled_dual`` come from identification, the dual in units of ``unit``; ``tolerated``
    is about how many outliers can be tolerated, and a trimmed fit keeps ``least`` rows at least, and at most ``most``
    where it may choose. ``with_guess`` says whether the dual is good enough to start from. The other arguments are
    parts of ``Columns``; from ``left_out`` on they are changed.
    """
    sizes = np.empty(rows)
    # With half the outliers that can be tolerated a column is hard: worth more identification before a factorisation,
    # unless that is a small one.
    hard = max(0.5 * tolerated, 0.5 * rank)
    for i in range(data.shape[0]):
        if state[i] != OPEN:
            continue
        kept, total = rows, 0.0
        for j in range(data.shape[1]):
            out = missing[i, j] or sparse[i, j] != 0.0
            guess[i, j] = scaled_dual[i, j] / unit if with_guess and not missing[i, j] else 0.0
            left_out[i, j] = out
            if out:
                kept -= 1
                target[i, j] = 0.0 if missing[i, j] else np.sign(sparse[i, j])
            else:
                target[i, j] = guess[i, j]
            total += abs(data[i, j])
        noise[i], reached_floor[i], state[i] = np.inf, False, ACTIVE
        if with_guess:
            # Where L1 cannot recover, only as many rows fit as the rank; a trimmed fit is then in vain, unless all that
            # is left of the column may be rounding.
            dense = max(1e3 * noise_floor[i], largest_floor[i]) < total / rows
            worth = kept - rank >= _SPARE * (rows - tolerated - rank) or not dense
        else:
            worth = rows - kept <= hard
        if not worth:
            state[i] = OPEN
            continue
        wanted = np.int64(0)
        if kept < 1.1 * rank:
            wanted = least
        elif min(kept, rows - kept) > 4 * rank:
            wanted = most
        if wanted == 0:
            continue
        # Too few rows for a fit, or more than it needs: keep those of the smallest estimated residuals instead.
        cut = np.inf
        if wanted <= rows:
            for j in range(rows):
                sizes[j] = np.inf if missing[i, j] else abs(estimated[i, j])
            cut = kth_smallest(sizes, rows, wanted - 1)
        for j in range(rows):
            left_out[i, j] = missing[i, j] or abs(estimated[i, j]) > cut
            if missing[i, j]:
                target[i, j] = 0.0
            else:
                target[i, j] = np.sign(estimated[i, j]) if left_out[i, j] else guess[i, j]
