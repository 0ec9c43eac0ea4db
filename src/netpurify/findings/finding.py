"""A claim beside what was measured, and the verdict on it."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a measurement says about a claim, a bound or a condition.

    ``VACUOUS`` is for a bound that holds but allows more than the size of what it bounds, and for a condition under
    which a theorem promises nothing. ``MEASURED`` is for a number that no statement is about.
    """

    HOLDS = "holds"
    LIMITS = "holds with limits"
    FAILS = "does not hold"
    UNSEEN = "not measured"
    VACUOUS = "vacuous"
    MEASURED = ""


CLAIM_VERDICTS = (Verdict.HOLDS, Verdict.LIMITS, Verdict.FAILS, Verdict.UNSEEN)
"""The verdicts that a ``Finding`` can have, in the order in which reports count them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of the paper beside what was measured.

    Attributes:
        claim: The paper's words, or close to them.
        measured: The measurement in words, with means, spread and number of trials.
        verdict: Whether the measurement supports the claim; one of ``CLAIM_VERDICTS``.
        why: The reason for the verdict, or the limits within which the claim holds.
    """

    claim: str
    measured: str
    verdict: Verdict
    why: str = ""
