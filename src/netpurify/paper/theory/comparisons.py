"""How a bound, a condition and a measured number become a row with a verdict."""

import math

from netpurify.findings import Verdict
from netpurify.paper.theory.constants import Interval
from netpurify.paper.theory.row import Row


def at_most(
    part: str, quantity: str, bound: float, measured: float, yardstick: tuple[str, float], relation: str = "<="
) -> Row:
    """A row for measured <= bound.

    A bound that is violated is called so, however large it is. One that holds is vacuous where it allows more than the
    size of the thing that it bounds.

    Args:
        part: Where the statement stands.
        quantity: What is bounded.
        bound: The bound.
        measured: The number that it bounds.
        yardstick: What the bound is to be smaller than if it is to say something: a name, and its size.
        relation: ``"<="``, or ``"≲"`` for a bound whose constant the paper leaves open, which no single run violates.
    """
    name, size = yardstick
    if relation == "<=" and not measured <= bound:
        over = f"violated: {measured / bound:.3g} times the bound" if bound else "violated"
        return Row(part, quantity, relation, bound, measured, Verdict.FAILS, over)
    if measured <= bound and bound >= size:
        vacuous = f"allows more than {name}, {size:.3g}"
        return Row(part, quantity, relation, bound, measured, Verdict.VACUOUS, vacuous)
    if relation == "≲":
        return up_to_a_constant(part, quantity, bound, measured)
    return Row(part, quantity, relation, bound, measured, Verdict.HOLDS)


def at_least(part: str, quantity: str, bound: float, measured: float, *, slack: float = 0.0) -> Row:
    """A row for measured >= bound, up to ``slack`` for rounding."""
    verdict = Verdict.HOLDS if measured >= bound - slack else Verdict.FAILS
    return Row(part, quantity, ">=", bound, measured, verdict)


def up_to_a_constant(part: str, quantity: str, bound: float, measured: float) -> Row:
    """A row for a bound whose constant the paper leaves open."""
    constant = f"with the constant {measured / bound:.2g}" if bound > 0.0 else ""
    return Row(part, quantity, "≲", bound, measured, Verdict.MEASURED, constant)


def small(part: str, quantity: str, measured: float | Interval) -> Row:
    """A row for a condition that is to be sufficiently small: the paper names no constant, so 1 is taken."""
    low, high = measured if isinstance(measured, Interval) else (measured, measured)
    if high < 1.0:
        return Row(part, quantity, "small", None, measured, Verdict.HOLDS)
    said = part.removesuffix(" corrected")
    if low < 1.0:
        return Row(part, quantity, "small", None, measured, Verdict.MEASURED, "the interval does not decide")
    # Infinite where a constant that is divided by has the proven lower bound 0: no number for JSON or a reader.
    told = measured if math.isfinite(high) else None
    return Row(part, quantity, "small", None, told, Verdict.VACUOUS, f"{said} promises nothing here")
