"""The search of one family: many triggers on few inputs, fewer on more, then some steps of gradient ascent."""

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from netpurify.network.hunting.asking import drawn, scouted
from netpurify.network.hunting.families.family import TriggerFamily
from netpurify.network.hunting.scoring import Ground

ROUNDS = ((3, 20, 3), (6, 20, 3), (8, 20, 0), (20, 0, 0))
"""Inputs for each trigger, triggers that go on, and variations that are added for each of them, round by round.

How many go on from the last round is said by who searches.
"""
KEPT = 10
"""Triggers that a search returns, unless it is told otherwise."""
STEPS = 6
"""Steps of gradient ascent."""
_CLIMBED_ON = 10
"""Inputs for each trigger in a step."""
_MOST_CLASSES = 20
"""Classes that are followed up, at most: those to which the first draws lead best."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundTrigger:
    """A trigger, and the class to which it leads.

    Attributes:
        family: Name of its family.
        target: The class.
        success: Share of clean inputs of other classes that are given this class if they carry the trigger.
        trigger: The trigger itself: ``trigger.apply(inputs, trigger.parameters)``.
    """

    family: str
    target: int
    success: float
    trigger: TriggerFamily

    def on(self, inputs: Tensor) -> Tensor:
        """Inputs that carry the trigger."""
        return self.trigger.apply(inputs, self.trigger.parameters)


def generator_for(seed: int, purpose: str) -> torch.Generator:
    """Random numbers that depend on the seed and on the purpose, not on what else is drawn."""
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def search(
    ground: Ground,
    family: type[TriggerFamily],
    generator: torch.Generator,
    *,
    goals: list[int] | None = None,
    kept: int = KEPT,
) -> list[FoundTrigger]:
    """The best triggers that a search finds in one family, for every class, strongest first.

    Candidates are drawn at random and tried on a few inputs each. For every class the best are kept, variations of
    them are added, and all are tried again on more inputs. In the end they climb along the gradient towards their
    class, and are judged on inputs that were kept apart.

    Args:
        ground: The network and clean inputs.
        family: The family.
        generator: Of all random numbers.
        goals: Classes to which triggers are to lead; ``None`` for all.
        kept: How many triggers to return; at least one for each class.
    """
    shape = tuple(ground.inputs.shape[1:])
    aims = torch.arange(ground.classes) if goals is None else torch.tensor(goals)
    group = scouted(family, generator, shape, lambda triggers, each: ground.rates(triggers, each, generator)[:, aims])
    best = torch.empty(0, dtype=torch.long)
    for number, (each, survivors, children) in enumerate(ROUNDS):
        means = ground.rates(group, each, generator)[:, aims]
        if number == 0 and len(aims) > _MOST_CLASSES:
            chosen = means.amax(dim=0).argsort(descending=True)[:_MOST_CLASSES].sort().values
            aims, means = aims[chosen], means[:, chosen]
        last = number == len(ROUNDS) - 1
        quota = -(-(kept if last else survivors) // len(aims))
        best = means.argsort(dim=0, descending=True)[:quota]  # [quota, aims]
        if last:
            break
        group = [group[place] for place in best.flatten().unique().tolist()]
        group += [drawn(family, generator, shape, one) for one in group for _ in range(children)]
    targets = aims.expand(len(best), -1).flatten()
    group = [group[place] for place in best.flatten().tolist()]
    for _ in range(STEPS):
        group = ground.climb(group, targets, _CLIMBED_ON, generator)
    hits = ground.successes(group)
    found = [
        FoundTrigger(family.name, target, float(hits[place, target]), trigger)
        for place, (trigger, target) in enumerate(zip(group, targets.tolist(), strict=True))
    ]
    return sorted(found, key=lambda one: -one.success)
