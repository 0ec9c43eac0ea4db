"""A defence in a few sentences: what it costs, what was forgotten, and that nothing is proven."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netpurify.network import Defence, Step
from netpurify.network.policies.defence.strength import LEAST, SHARE, allowed
from netpurify.report.kit.numbers import count, number, plural, share

_UNKNOWN = (
    "Agreement on clean inputs cannot show that a backdoor is gone: a network whose backdoor survived agrees as well. "
    "Nothing here is proven."
)
_UNCOUNTED = (
    "The outputs are no scores of classes, so what it costs could not be counted: compare outputs yourself before use."
)


@dataclass(frozen=True, slots=True)
class DefenceSummary:
    """What is known of a defence.

    Attributes:
        chosen: What the strength that was used does to held-out inputs.
        bound: With 95 % confidence no more accuracy is lost than this, as a share, on inputs like them.
        level: Confidence of a bound by itself, at which those of all strengths that could be tried hold with 95 %.
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
    def of(cls, result: Defence) -> "DefenceSummary":
        """Sums up a result."""
        return cls(
            chosen=result.chosen,
            bound=result.bound,
            level=result.level,
            automatic=result.provenance["settings"]["strength"] == "auto",
            allowed=allowed(result.confidence),
            confidence=result.confidence,
            forgotten=tuple(layer.forgotten for layer in result.layers),
            changes=tuple(layer.change for layer in result.layers),
            guards=len({layer.guarded for layer in result.layers}) if result.guard else 0,
        )

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        price = "what it costs could not be counted"
        if self.chosen.inputs:
            price = f"at most {self.points} of accuracy can be lost on inputs like these (95 % bound)"
        forgotten = f"{_span(self.forgotten)} of a layer's directions forgotten"
        return f"Defended, not proven: {price}; {forgotten}; whether a backdoor is gone cannot be seen from this"

    @property
    def points(self) -> str:
        """The bound, as accuracy is counted."""
        return f"{number(100.0 * self.bound)} points"

    @property
    def cost(self) -> str:
        """What it costs on clean inputs, by counting."""
        step = self.chosen
        if not step.inputs:
            return _UNCOUNTED
        change = "changes its" if step.differing == 1 else "change their"
        return (
            f"Of {plural(step.inputs, 'held-out clean input')}, {count(step.differing)} {change} class "
            f"({share(step.disagreement)}); at most {self.points} of accuracy can be lost on inputs like these (exact "
            "95 % bound)."
        )

    @property
    def strength(self) -> str:
        """Which strength was used, and why."""
        used = f"Strength {self.chosen.strength:g}"
        if not self.automatic:
            return f"{used}, as asked for."
        doubt = (
            f"{share(SHARE)} of the network's own doubt of {share(1.0 - self.confidence)} (its mean confidence on them "
            f"is {share(self.confidence)}), or {share(LEAST)} where that is more"
        )
        if self.chosen.disagreement <= self.allowed:
            return f"{used}, the strongest found that changes the class of at most {share(self.allowed)}: {doubt}."
        return (
            f"{used}, the weakest there is, and it changes the class of more than {share(self.allowed)}: {doubt}. "
            "Give more clean inputs, or think twice."
        )

    @property
    def lost(self) -> str:
        """What was forgotten, and what is kept in range."""
        middle = f", {share(float(np.median(self.forgotten)))} in the median" if len(self.forgotten) > 1 else ""
        weights = f"Layers forgot {_span(self.forgotten)} of their directions{middle}; weights changed by"
        guards = "no guard, the architecture is as it was"
        if self.guards:
            keep = "keeps its" if self.guards == 1 else "keep their"
            guards = f"{plural(self.guards, 'module')} {keep} channels in the range and the spread of clean inputs"
        return f"{weights} {_span(self.changes)}; {guards}."

    @property
    def statements(self) -> list[tuple[str, str]]:
        """One sentence for each fact, with what it speaks of."""
        return [
            ("cost", self.cost),
            ("strength", self.strength),
            ("forgotten", self.lost),
            ("not known", _UNKNOWN),
        ]


def _span(values: Sequence[float]) -> str:
    """From the least to the largest share; one of them where they look the same."""
    ends = [share(value) for value in (min(values, default=math.nan), max(values, default=math.nan))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
