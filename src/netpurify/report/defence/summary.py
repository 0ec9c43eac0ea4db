"""A defence in a few sentences: what it costs, what was forgotten, and that nothing is proven."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netpurify.network import DOUBT_SHARE, LEAST_DISAGREEMENT, Defence, Step, allowed_disagreement
from netpurify.report.kit.names import missed_modules, policy_name
from netpurify.report.kit.numbers import count, number, plural, share
from netpurify.report.kit.summary import Statement, Summary, describe_agreement

_BASIS = (
    "What this rests on: that the inputs are clean and like those in use. The bound is for inputs drawn like those "
    "held out, which the fit never saw, and allows for the choice among the strengths."
)
_UNKNOWN = (
    "Agreement on clean inputs cannot show that a backdoor is gone: a network whose backdoor survived agrees as well. "
    "Nothing here is proven."
)
_NOT_COUNTED = (
    "The outputs are no scores of classes, so the cost could not be counted: compare outputs yourself before use."
)
_MISSED = "layers that could not be defended and are as they were"


@dataclass(frozen=True, slots=True)
class Price:
    """What is known about a defence.

    Attributes:
        chosen: What the strength that was used does to held-out inputs.
        bound: With 95 % confidence no more accuracy is lost than this share, on inputs like the held-out ones.
        level: Confidence of each bound by itself, chosen so that the bounds of all candidate strengths hold together
            with 95 % confidence.
        automatic: Whether the strength was chosen rather than asked for.
        allowed: Disagreement that the automatic choice allows for; NaN where the network gives no probabilities.
        confidence: Mean of the largest probability that the contaminated network gives.
        forgotten: Share of its directions that each layer forgot.
        changes: Size of the change of each layer's weights, relative to the weights.
        guards: Modules whose channels are kept in range.
    """

    chosen: Step
    bound: float
    level: float
    automatic: bool
    allowed: float
    confidence: float
    forgotten: tuple[float, ...]
    changes: tuple[float, ...]
    guards: int

    @classmethod
    def of(cls, result: Defence) -> "Price":
        """Takes the facts from a result."""
        return cls(
            chosen=result.chosen,
            bound=result.bound,
            level=result.level,
            automatic=result.provenance["settings"]["strength"] == "auto",
            allowed=allowed_disagreement(result.confidence),
            confidence=result.confidence,
            forgotten=tuple(layer.forgotten for layer in result.layers),
            changes=tuple(layer.change for layer in result.layers),
            guards=len({layer.guarded for layer in result.layers}) if result.guard else 0,
        )


def summarise_defence(result: Defence) -> Summary:
    """A defence in words."""
    price = Price.of(result)
    missed = missed_modules(result.skipped, _MISSED)
    return Summary(
        policy=policy_name(result),
        headline="; ".join([_headline(price), *missed]),
        outlook="limits",
        statements=(
            Statement(_cost(price), "cost"),
            Statement(_strength(price), "strength"),
            Statement(_forgotten(price), "forgotten"),
            Statement(_UNKNOWN, "not known"),
            Statement(describe_agreement(result.agreement), "outputs"),
        ),
        advice=(),
        basis=_BASIS,
        exit_code=1 if missed else 0,
    )


def _headline(price: Price) -> str:
    cost = "the cost could not be counted"
    if price.chosen.inputs:
        cost = f"at most {_points(price)} of accuracy can be lost on inputs like these (95 % bound)"
    forgotten = f"{_span(price.forgotten)} of a layer's directions forgotten"
    return f"Defended, not proven: {cost}; {forgotten}; whether a backdoor is gone cannot be seen from this"


def _points(price: Price) -> str:
    """The bound in points, as accuracy is counted."""
    return f"{number(100.0 * price.bound)} points"


def _cost(price: Price) -> str:
    step = price.chosen
    if not step.inputs:
        return _NOT_COUNTED
    change = "changes its" if step.differing == 1 else "change their"
    return (
        f"Of {plural(step.inputs, 'held-out clean input')}, {count(step.differing)} {change} class "
        f"({share(step.disagreement)}); at most {_points(price)} of accuracy can be lost on inputs like these (exact "
        "95 % bound)."
    )


def _strength(price: Price) -> str:
    """Which strength was used, and why."""
    used = f"Strength {price.chosen.strength:g}"
    if not price.automatic:
        return f"{used}, as asked for."
    doubt = (
        f"{share(DOUBT_SHARE)} of the network's own doubt of {share(1.0 - price.confidence)} (its mean confidence on "
        f"them is {share(price.confidence)}), or {share(LEAST_DISAGREEMENT)} where that is more"
    )
    if price.chosen.disagreement <= price.allowed:
        return f"{used}, the strongest found that changes the class of at most {share(price.allowed)}: {doubt}."
    return (
        f"{used}, the weakest there is, and it changes the class of more than {share(price.allowed)}: {doubt}. "
        "Give more clean inputs, or think twice."
    )


def _forgotten(price: Price) -> str:
    """What was forgotten, and what is kept in range."""
    median = f", {share(float(np.median(price.forgotten)))} in the median" if len(price.forgotten) > 1 else ""
    weights = f"Layers forgot {_span(price.forgotten)} of their directions{median}; weights changed by"
    guards = "no guard, the architecture is as it was"
    if price.guards:
        keep = "keeps its" if price.guards == 1 else "keep their"
        guards = f"{plural(price.guards, 'module')} {keep} channels in the range and the spread of clean inputs"
    return f"{weights} {_span(price.changes)}; {guards}."


def _span(values: Sequence[float]) -> str:
    """From the least to the largest share; one of them where they look the same."""
    ends = [share(value) for value in (min(values, default=math.nan), max(values, default=math.nan))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
