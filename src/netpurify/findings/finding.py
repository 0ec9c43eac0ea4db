"""A claim beside what was measured, the rules by which it is judged, and the verdicts."""

from collections.abc import Sequence
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
class Rule:
    """How one claim is judged, the same in every figure that makes it.

    Attributes:
        claim: The paper's words, or close to them.
        where: Where the paper says it, such as "V-A; captions of Figures 2 and 3".
        measure: The rule by the paper's own measure: when the claim holds, when it holds with limits, in numbers.
        nothing: The rule against doing nothing; empty where there is none.
        reason: Why these rules follow from the paper's words.
    """

    claim: str
    where: str = ""
    measure: str = ""
    nothing: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A small table of numbers behind a verdict: short cells, one number each.

    Attributes:
        title: What the numbers are, with unit and yardstick.
        columns: Names of the columns; the first is that of the rows' names.
        rows: The cells, each row as long as ``columns``.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim beside what was measured, judged by two yardsticks.

    Attributes:
        rule: The claim, and how it is judged.
        by_measure: Whether the claim holds by the paper's own measure; one of ``CLAIM_VERDICTS``.
        against_nothing: Whether it holds against doing nothing; None where the rule has no such side.
        measured: One short sentence with the decisive numbers.
        evidence: The numbers behind the verdicts.
        why: What a reader should understand, in one or two sentences.
        ours: Whether the statement is ours and not the paper's; such findings are listed apart and never counted.
    """

    rule: Rule
    by_measure: Verdict
    against_nothing: Verdict | None
    measured: str
    evidence: Sequence[Evidence] = ()
    why: str = ""
    ours: bool = False

    @property
    def claim(self) -> str:
        """The claim in words."""
        return self.rule.claim
