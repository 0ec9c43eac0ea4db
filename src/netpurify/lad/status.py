"""What is known about the answer for a column."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    """Outcome of one column; ``meaning`` says what it is, ``remedy`` what to do about it.

    *Optimal* (the L1 problem is solved) and *recovered* (the fit is the truth) are separate facts: the first is
    proven by the dual alone, the second needs more zero residuals than the ``rank`` that every vertex has.
    """

    CLEAN = 0
    RECOVERED = 1
    OPTIMAL = 2
    WITHIN_GAP = 3
    RANK_FULL = 4
    FAILED = 5

    @property
    def meaning(self) -> str:
        """What this outcome says about the fit: a clause in lower case, without a full stop."""
        return _TEXTS[self][0]

    @property
    def remedy(self) -> str:
        """What the user can do about it: a clause in lower case, without a full stop."""
        return _TEXTS[self][1]

    @property
    def certified(self) -> bool:
        """Whether the answer is a proven minimum."""
        return self in (Status.CLEAN, Status.RECOVERED, Status.OPTIMAL)


def certified(codes: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which of many status codes stand for proven minima."""
    return np.isin(codes, [status for status in Status if status.certified])


_TEXTS = {
    Status.CLEAN: (
        "every residual is zero: the column lies in the span of the design, and nothing in it is altered",
        "nothing needs to be done",
    ),
    Status.RECOVERED: (
        "a proven minimum with more zero residuals than chance allows: the fit is the truth, unless the alterations "
        "agree with one another",
        "use the fit; the rows with a residual are the altered ones",
    ),
    Status.OPTIMAL: (
        "a proven minimum, but with too few zero residuals to conclude that the fit is the truth",
        "do not use the fit as the truth: too many rows are altered for this rank, or many are altered alike; lower "
        "the rank, or give a design with more rows",
    ),
    Status.WITHIN_GAP: (
        "the fit was not proven to be a minimum; its objective is above the minimum by at most the reported gap",
        "accept the gap, or allow a larger one by the option accuracy; rescaling the rows of the design may help",
    ),
    Status.RANK_FULL: (
        "the design spans every direction of the column, so the fit reproduces the column whether it is altered or not",
        "use a design with fewer columns, or set a rank below the number of rows",
    ),
    Status.FAILED: (
        "no valid bound was found, so nothing is known about the fit",
        "rescale the column if it has values beyond 1e150 or below 1e-150; if that does not help, report an error",
    ),
}
