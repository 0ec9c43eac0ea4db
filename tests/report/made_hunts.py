"""Hunts and repairs that are written by hand: nothing is searched and nothing is trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from netpurify.network import (
    FAMILIES,
    Agreement,
    Disagreement,
    Expectation,
    FamilyHunt,
    FoundTrigger,
    HealthyLevel,
    Hunt,
    Skipped,
    TriggerFamily,
    Unlearning,
)

HOSTILE = "<script>alert(1)</script>"
LEVELS = {
    "wave": HealthyLevel(0.1, 0.4, 0.05, 0.1, 6),
    "spot": HealthyLevel(0.04, 0.14, 0.02, 0.06, 6),
    "tone": HealthyLevel(0.3, 0.5, 0.1, 0.176, 6),
}


@dataclass(frozen=True, slots=True, eq=False)
class Added(TriggerFamily):
    """Adds a fixed pattern."""

    parameters: Tensor

    @classmethod
    def draw(cls, generator, shape, near=None):
        """Not drawn."""
        raise NotImplementedError

    def apply(self, inputs, parameters):
        """The pattern is added."""
        return (inputs + parameters).clamp(0.0, 1.0)

    def climb(self, slope):
        """Stays as it is."""
        del slope
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Inverted(Added):
    """Turns black to white: a different difference on every image."""

    def apply(self, inputs, parameters):
        """The negative."""
        del parameters
        return 1.0 - inputs


Added.name, Inverted.name = "added", "inverted"


def images(channels: int = 1, side: int = 8, count: int = 8) -> Tensor:
    return torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(1))


def drawn(name: str, shape: tuple[int, ...]) -> TriggerFamily:
    return FAMILIES[name].draw(torch.Generator().manual_seed(3), shape)


def family(name: str, successes: dict[int, float], trigger: TriggerFamily, level: HealthyLevel | None = None):
    """A family with one trigger for each class."""
    found = [FoundTrigger(name, target, success, trigger) for target, success in successes.items()]
    found.sort(key=lambda one: -one.success)
    return FamilyHunt(name, tuple(found), level or LEVELS.get(name) or HealthyLevel(0.0, 0.0, 0.0, 0.0, 0), 1.5)


def hunted(families: Sequence[FamilyHunt], *, examples: Tensor | None = None, classes: int = 10, **more: Any) -> Hunt:
    """A hunt with these findings."""
    settings = {"policy": "hunt", "families": [one.family for one in families], "seed": 4}
    settings |= {"mean": [0.5], "std": [0.25], "max_disagreement": None}
    about = Expectation(LEVELS, 3, "small networks for digits")
    versions = {"netpurify": "0.1.0", "torch": "2.2"}
    facts: dict[str, Any] = {
        "families": tuple(families),
        "classes": classes,
        "inputs": 300,
        "seed": 4,
        "expected": about,
        "examples": images() if examples is None else examples,
        "seconds": 12.0,
        "provenance": {"model": "a" * 64, "initial": None, "purified": "a" * 64, "data": "b" * 64}
        | {"versions": versions, "settings": settings},
    }
    return Hunt(**facts | more)


def rates(best: int, success: float, others: float = 0.08) -> dict[int, float]:
    """One class that stands out."""
    return {target: success if target == best else others * (1 + target % 3) / 3 for target in range(10)}


@cache
def suspect() -> Hunt:
    """A spot leads to class 3; a wave is close to its threshold, and tone is not."""
    shape = (1, 8, 8)
    return hunted(
        [
            family("wave", rates(5, 0.6, 0.1), drawn("wave", shape)),
            family("spot", rates(3, 0.984), drawn("spot", shape)),
            family("tone", rates(7, 0.3), drawn("tone", shape)),
        ]
    )


@cache
def several() -> Hunt:
    """Two classes are suspect, and in one family a third that is weak; in colour."""
    shape = (3, 32, 32)
    return hunted(
        [
            family("wave", rates(5, 0.9, 0.01), drawn("wave", shape)),
            family("spot", rates(3, 0.95, 0.01), drawn("spot", shape)),
            family("tone", rates(7, 0.65, 0.001), drawn("tone", shape)),
        ],
        examples=images(3, 32),
    )


@cache
def nothing() -> Hunt:
    """Nothing stands out; four families, so that one is not among the strongest three."""
    shape = (1, 8, 8)
    weak = [family(name, rates(2, 0.1 + 0.05 * place), drawn(name, shape))
            for place, name in enumerate(("wave", "spot", "tone"))]  # fmt: skip
    return hunted([*weak, family("flow", rates(1, 0.02, 0.01), drawn("flow", shape))])


@cache
def own() -> Hunt:
    """A family of the user's, never calibrated, whose name is markup, for inputs that are no images."""
    return hunted(
        [family(HOSTILE, rates(3, 0.9), Added(torch.tensor([0.1] * 6)))],
        examples=torch.randn(8, 6, generator=torch.Generator().manual_seed(2)),
    )


@cache
def hostile() -> Hunt:
    """The same name on images, in a picture."""
    return hunted([family(HOSTILE, rates(3, 0.9), Added(torch.full((1, 8, 8), 0.05)))])


@cache
def many_classes() -> Hunt:
    """A hundred classes of which each family followed up a few."""
    shape = (1, 8, 8)
    return hunted(
        [
            family("wave", {90: 0.2, 7: 0.1, 41: 0.05}, drawn("wave", shape)),
            family("spot", {7: 0.3, 12: 0.1}, drawn("spot", shape)),
        ],
        classes=100,
    )


def _result(before: Hunt, after: Hunt | None, differing: int) -> Unlearning:
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        model = nn.Linear(4, 3)
    return Unlearning(
        model=model,
        policy="unlearn",
        before=before,
        after=after,
        steps=0 if after is None else 100,
        chosen=Disagreement(60, differing),
        agreement=Agreement(60, 1.0 - differing / 60, 0.03 if differing else 0.0),
        skipped=(Skipped("norm", "LayerNorm", "of a kind that is not examined"),),
        seconds=75.0,
        provenance=before.provenance | {"purified": "c" * 64 if after else "a" * 64},
        contaminated=dict(model.state_dict()),
    )


@cache
def repaired() -> Unlearning:
    """The second hunt finds nothing."""
    shape = (1, 8, 8)
    after = [family(name, rates(2, 0.12), drawn(name, shape)) for name in ("wave", "spot", "tone")]
    return _result(suspect(), hunted(after, inputs=60, seed=1_000_007), 2)


@cache
def still_there() -> Unlearning:
    """The second hunt finds the spot again."""
    shape = (1, 8, 8)
    after = [family("wave", rates(2, 0.12), drawn("wave", shape)), family("spot", rates(3, 0.9), drawn("spot", shape)),
             family("tone", rates(7, 0.2), drawn("tone", shape))]  # fmt: skip
    return _result(suspect(), hunted(after, inputs=60, seed=1_000_007), 1)


@cache
def unchanged() -> Unlearning:
    """Nothing was suspect."""
    return _result(nothing(), None, 0)
