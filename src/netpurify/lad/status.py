"""What is known about a column's answer."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    """Outcome of one column; ``meaning`` says what it is, ``remedy`` what to do about it.

    *Optimal* (the L1 problem is solved) and *recovered* (the fit is the truth) are separate facts: the first is
    proven by the dual alone, the second needs more zero residuals than any vertex has for free.
    """

    CLEAN = 0
    RECOVERED = 1
    OPTIMAL = 2
    WITHIN_GAP = 3
    RANK_FULL = 4
    FAILED = 5

    @property
    def meaning(self) -> str:
        """What this outcome says about the answer."""
        return _TEXTS[self][0]

    @property
    def remedy(self) -> str:
        """What a caller can do about it."""
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
        "every residual is zero: the column lies in the span of the design",
        "nothing to do",
    ),
    Status.RECOVERED: (
        "a proven minimum with more zero residuals than chance allows: the fit is the truth, unless alterations agree "
        "with one another",
        "use the fit; the rows with a residual are the altered ones",
    ),
    Status.OPTIMAL: (
        "a proven minimum, but without enough zeros beyond the rank to say that the fit is the truth",
        "do not take the fit for the truth: too many rows are altered for this rank, or altered alike; lower the rank",
    ),
    Status.WITHIN_GAP: (
        "not proven to the accuracy asked for; the minimum is within the reported gap",
        "accept the gap, or ask for less accuracy",
    ),
    Status.RANK_FULL: (
        "the design spans every direction of the column, so the fit reproduces the column and tells nothing apart",
        "use a design with fewer columns, or set a rank",
    ),
    Status.FAILED: (
        "no valid bound: the answer is unproven",
        "rescale the column (values beyond 1e150 or below 1e-150?), and report it if that does not help",
    ),
}
