"""One row of the table of the theory."""

from dataclasses import dataclass

from netpurify.findings import Verdict
from netpurify.paper.theory.constants import Interval


@dataclass(frozen=True, slots=True)
class Row:
    """A statement of the theory beside what was measured.

    Attributes:
        part: Where the statement stands.
        quantity: What is bounded.
        relation: ``"<="``, ``">="``, ``"≲"`` for up to a constant, ``"small"`` for a condition without a constant,
            ``"predicted"`` for a probability, or ``""`` for none.
        bound: The bound, if there is one.
        measured: A number, the interval in which it is proven to lie, or ``None`` where it has no meaning.
        verdict: Whether it holds. ``VACUOUS``: a condition that is not small, or a bound that holds but allows
            more than the size of what it bounds; a violated bound ``FAILS``, however much it allows.
        note: How to read it.
    """

    part: str
    quantity: str
    relation: str
    bound: float | None
    measured: float | Interval | None
    verdict: Verdict
    note: str = ""
