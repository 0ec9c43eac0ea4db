"""How strong the defence should be, chosen without labels and without the attack."""

from collections.abc import Callable
from dataclasses import dataclass

from netpurify.network.agreement import Disagreement

STRENGTHS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
"""The candidates, weakest first. With stronger ones, a hundred held-out inputs are too few to measure the loss."""
TRIALS = 4
"""How many candidates a search tries at most."""
DOUBT_SHARE = 0.5
"""The allowed disagreement, as a share of the network's own doubt on clean inputs: 1 minus its mean confidence."""
LEAST_DISAGREEMENT = 0.01
"""Disagreement that is allowed at least, however confident the network is."""


@dataclass(frozen=True, slots=True)
class Step:
    """How one strength changes the classes of the held-out clean inputs.

    Attributes:
        strength: The strength of ridge and guard.
        inputs: How many clean inputs were held out.
        differing: How many of them the defended network gives another class than the contaminated network does.
    """

    strength: float
    inputs: int
    differing: int

    @property
    def disagreement(self) -> float:
        """Share of the held-out inputs that change their class: no more of their accuracy can be lost than this."""
        return Disagreement(self.inputs, self.differing).share

    def bound(self, level: float = 0.95) -> float:
        """Upper end of the exact one-sided interval for the disagreement on inputs like these (Clopper and Pearson)."""
        return Disagreement(self.inputs, self.differing).bound(level)


def allowed_disagreement(confidence: float) -> float:
    """The disagreement that the automatic strength may cause: a share of the network's doubt, or the least allowed."""
    return max(DOUBT_SHARE * (1.0 - confidence), LEAST_DISAGREEMENT)


def search(judge: Callable[[float], Step], confidence: float) -> Step:
    """The strongest of ``STRENGTHS`` whose disagreement is allowed.

    If a network is confident on clean inputs, its classes are far apart, and forgetting costs little; if it is not,
    small changes of the weights change classes. Disagreement grows with strength, so bisection finds the strongest in a
    few steps. If the disagreement of the weakest candidate is too large already, the weakest is returned nevertheless:
    its disagreement is reported, and the caller decides.

    Args:
        judge: Defends with a strength and measures the disagreement.
        confidence: Mean of the largest probability that the contaminated network gives on the held-out inputs.
    """
    most = allowed_disagreement(confidence)
    tried: dict[float, Step] = {}
    low, high = 0, len(STRENGTHS)
    while low < high:
        middle = (low + high) // 2
        step = tried[STRENGTHS[middle]] = judge(STRENGTHS[middle])
        low, high = (middle + 1, high) if step.disagreement <= most else (low, middle)
    return tried[STRENGTHS[max(low - 1, 0)]]
