"""How strong the defence should be, chosen without labels and without the attack."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import betaincinv

STRENGTHS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
"""What may be tried, from the weakest on. Beyond, a hundred held-out inputs are too few to see what is lost."""
TRIALS = 4
"""Most of them that a search tries."""
SHARE = 0.5
"""Share of the network's own doubt on clean inputs, 1 less its mean confidence, that may become disagreement."""
LEAST = 0.01
"""Disagreement that is allowed however sure the network is."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one strength does to clean inputs that it was not fitted to.

    Attributes:
        strength: Of the ridge; the guard goes with it.
        inputs: Held-out clean inputs.
        differing: How many of them are given another class than the contaminated network gives.
    """

    strength: float
    inputs: int
    differing: int

    @property
    def disagreement(self) -> float:
        """Share of the held-out inputs that are given another class: no more accuracy can be lost than this."""
        return self.differing / self.inputs if self.inputs else math.nan

    def bound(self, level: float = 0.95) -> float:
        """Upper end of the exact one-sided interval for the disagreement on inputs like these (Clopper and Pearson)."""
        if not self.inputs:
            return math.nan
        if self.differing == self.inputs:
            return 1.0
        return float(betaincinv(self.differing + 1, self.inputs - self.differing, level))


def allowed(confidence: float) -> float:
    """Disagreement that the automatic strength may cost: ``SHARE`` of the network's own doubt, or ``LEAST``."""
    return max(SHARE * (1.0 - confidence), LEAST)


def search(judge: Callable[[float], Step], confidence: float) -> Step:
    """The strongest of ``STRENGTHS`` whose disagreement is allowed.

    A network that is sure of clean inputs has room between its classes, and what is forgotten there costs nothing; one
    that doubts is changed by anything. Disagreement grows with strength, so that a few steps of bisection find it. If
    the weakest is too strong already, it is taken all the same: what it costs is reported, and whoever calls decides.

    Args:
        judge: Tries a strength.
        confidence: Mean of the largest probability that the contaminated network gives on the held-out inputs.
    """
    most = allowed(confidence)
    tried: dict[float, Step] = {}
    low, high = 0, len(STRENGTHS)
    while low < high:
        middle = (low + high) // 2
        step = tried[STRENGTHS[middle]] = judge(STRENGTHS[middle])
        low, high = (middle + 1, high) if step.disagreement <= most else (low, middle)
    return tried[STRENGTHS[max(low - 1, 0)]]
