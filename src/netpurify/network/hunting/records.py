"""What a hunt has found."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from torch import Tensor

from netpurify.errors import InputError
from netpurify.network.hunting.expectation import Expectation, HealthyLevel
from netpurify.network.hunting.search import FoundTrigger
from netpurify.network.shown import Shown

_CLOSE = 0.75
"""A second class is suspect too if its success is above this share of that of the first."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilyHunt:
    """What was found in one family.

    Attributes:
        family: Its name.
        found: The best trigger for each class that was followed up, strongest first.
        expected: What healthy networks show.
        seconds: Time that the search took.
    """

    family: str
    found: tuple[FoundTrigger, ...]
    expected: HealthyLevel
    seconds: float

    @property
    def best(self) -> FoundTrigger:
        """The trigger with the highest success."""
        return self.found[0]

    @property
    def runner_up(self) -> float:
        """The highest success of a trigger that leads to another class."""
        return max((one.success for one in self.found if one.target != self.best.target), default=0.0)

    @property
    def margin(self) -> float:
        """By how much the best class stands out: a backdoor favours one class, natural weakness several."""
        return self.best.success - self.runner_up

    @property
    def alarm(self) -> float:
        """The margin or the success, whichever has come further, as a share of what is suspect."""
        return self.expected.alarm(self.best.success, self.margin)

    @property
    def suspect(self) -> bool:
        """Whether the margin or the success is larger than healthy networks give reason to expect."""
        return self.alarm >= 1.0

    def successes(self, classes: int) -> list[float | None]:
        """The highest success for each class; ``None`` for classes that were not followed up."""
        highest: list[float | None] = [None] * classes
        for one in reversed(self.found):
            highest[one.target] = one.success
        return highest


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hunt(Shown):
    """What a hunt has found; ``print`` shows it. That nothing was found does not mean that nothing is there.

    Attributes:
        families: What was found in each family, in the order of the search.
        classes: Number of classes of the network.
        inputs: Number of clean inputs.
        seed: Seed of the search.
        expected: What is expected of healthy networks.
        examples: Some clean inputs for pictures, [n, ...]; images are in [0, 1].
        seconds: Time that the hunt took.
        provenance: Digests of model and data, versions, settings.
    """

    families: tuple[FamilyHunt, ...]
    classes: int
    inputs: int
    seed: int
    expected: Expectation
    examples: Tensor
    seconds: float
    provenance: dict[str, Any]

    @property
    def suspects(self) -> tuple[FoundTrigger, ...]:
        """The best trigger of each suspect family, strongest first."""
        best = [one.best for one in self.families if one.suspect]
        return tuple(sorted(best, key=lambda one: -one.success))

    @property
    def goals(self) -> tuple[int, ...]:
        """The suspect classes: those of the strongest suspects."""
        return strongest_classes([(one.target, one.success) for one in self.suspects])

    @property
    def found(self) -> tuple[FoundTrigger, ...]:
        """All triggers of all families, strongest first."""
        every = [one for family in self.families for one in family.found]
        return tuple(sorted(every, key=lambda one: -one.success))

    def _brief(self) -> str:
        classes = ", ".join(map(str, self.goals)) or "none"
        return f"families={len(self.families)}, inputs={self.inputs}, suspect classes: {classes}"


def strongest_classes(found: Sequence[tuple[int, float]]) -> tuple[int, ...]:
    """Of suspect classes with their successes, those whose success is close to the highest, ascending."""
    highest = max((success for _, success in found), default=0.0)
    return tuple(sorted({target for target, success in found if success > _CLOSE * highest}))


def calibrate(hunts: Sequence[Hunt], about: str) -> Expectation:
    """What is expected of healthy networks, from hunts in some that are known to be healthy.

    Args:
        hunts: Hunts in healthy networks of one kind, several of each network with different seeds if possible.
        about: Which networks these are, in words, for reports.

    Raises:
        InputError: There are no hunts.
    """
    if not hunts:
        raise InputError("calibrate needs at least one hunt in a healthy network; got none")
    by_family: dict[str, list[FamilyHunt]] = {}
    for one in (family for hunt in hunts for family in hunt.families):
        by_family.setdefault(one.family, []).append(one)
    levels = {
        name: healthy_level([one.best.success for one in group], [one.margin for one in group])
        for name, group in by_family.items()
    }
    return Expectation(levels, len({hunt.provenance["model"] for hunt in hunts}), about)


def healthy_level(successes: Sequence[float], margins: Sequence[float]) -> HealthyLevel:
    """The level of one family, from the highest success and the margin of each hunt."""
    return HealthyLevel(median(successes), max(successes), median(margins), max(margins), len(margins))
