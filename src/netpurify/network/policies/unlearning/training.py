"""The training of *unlearn*: the network keeps its own scores on clean inputs and stops following triggers."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from netpurify.errors import InputError
from netpurify.network.hunting.asking import after_a_step, drawn
from netpurify.network.hunting.families.family import TriggerFamily
from netpurify.network.hunting.scoring import Ground, stamped
from netpurify.network.hunting.search import FoundTrigger, generator_for, search

STEPS = 100
"""Steps of gradient descent."""
SEARCH_EVERY = 25
"""Steps between two searches for triggers that the network still follows."""
RATE, MOMENTUM, WARM_UP = 0.01, 0.9, 10
"""Largest learning rate, Nesterov momentum, and steps over which the rate rises."""
LARGEST_SLOPE = 2.0
"""Norm to which the gradient of all weights is cut."""
WEIGHT = 1.0
"""Weight of the loss under triggers; that of the loss on clean inputs is 1."""
BATCH = 32
"""Clean inputs of a step; as many mixtures of two of them are made besides."""
TRIGGERS = 16
"""Triggers of a step."""
POOL, LEAST = 24, 0.25
"""How many triggers are kept, and what their success must be when they are found."""
MEAN = 0.05
"""Share of the newest weights in the running mean, which is the result."""
_FIRM = 2
"""Triggers of each family that are never dropped: its strongest."""
_SHIFT = 2
"""Pixels by which images are moved at most."""
_FIRST, _RENEWED = 12, 6
"""How many triggers of each suspect family are sought before the first step, and again during training."""


@dataclass(slots=True)
class Opponent:
    """A trigger that the network is trained against.

    Attributes:
        found: The trigger as it was found. It stays, so that what was found is never forgotten.
        moved: The same trigger after it has climbed against the network during training.
    """

    found: FoundTrigger
    moved: TriggerFamily


@dataclass(slots=True)
class UnlearningRun:
    """The state of a run between two steps.

    Attributes:
        student: The network that is trained.
        optimiser: Its optimiser.
        mean: Running mean of each weight, which becomes the result.
        pool: Triggers to train against, strongest first.
        generator: Of all random numbers.
        step: Steps that are done.
        order: Clean inputs that are still to be used in this pass over them.
    """

    student: nn.Module
    optimiser: torch.optim.SGD
    mean: list[Tensor]
    pool: list[Opponent]
    generator: torch.Generator
    step: int = 0
    order: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is to be unlearnt.

    Attributes:
        teacher: The network as it came, with its clean inputs.
        goals: The suspect classes.
        suspects: Families in which a suspect class stands out. Others also hold triggers that lead there, but these
            lead there in healthy networks too, and training against them would cost accuracy.
    """

    teacher: Ground
    goals: list[int]
    suspects: tuple[type[TriggerFamily], ...]

    def begin(self, found: Sequence[FoundTrigger], seed: int) -> UnlearningRun:
        """The state before the first step."""
        student = copy.deepcopy(self.teacher.scorer.model)
        weights = [value.requires_grad_() for value in student.parameters() if value.is_floating_point()]
        if not weights:
            raise InputError("unlearn trains weights, and the network has none; give a network with parameters")
        optimiser = torch.optim.SGD(weights, lr=RATE, momentum=MOMENTUM, nesterov=True)
        names = {family.name for family in self.suspects}
        pool = _strongest([], [one for one in found if one.family in names and one.target in self.goals])
        mean = [value.detach().clone() for value in weights]
        return UnlearningRun(student, optimiser, mean, pool, generator_for(seed, "unlearn"))

    @torch.enable_grad()
    def advance(self, run: UnlearningRun) -> None:
        """One step.

        Raises:
            InputError: The network cannot be trained: it has no gradients, or gives no numbers under triggers.
        """
        if run.step % SEARCH_EVERY == 0:
            self._search_again(run)
        clean = self._clean_batch(run)
        with torch.no_grad():
            wanted = self.teacher.scorer.scores(clean).softmax(dim=1)
        half = len(clean) // 2
        twice = torch.cat([clean[:half]] * 2)
        parts = twice.split(-(-len(twice) // TRIGGERS))
        triggers, movers = self._choose_triggers(run, len(parts))
        numbers = [one.parameters.clone().requires_grad_() for one in triggers]
        changed = stamped(triggers, numbers, parts)
        scores = replace(self.teacher.scorer, model=run.student).scores(torch.cat([clean, changed]))
        before = torch.cat([wanted[:half]] * 2)
        loss = self.loss(scores[: len(clean)], wanted, scores[len(clean) :], before)
        if not loss.requires_grad or not bool(loss.isfinite()):
            fault = "are not finite under triggers" if loss.requires_grad else "have no gradient in its weights"
            raise InputError(f"the network must be one that can be trained; its scores {fault}")
        run.optimiser.zero_grad()
        loss.backward()
        self._descend(run)
        # The triggers climb the same loss, so that one backward pass serves both sides.
        for place, opponent in movers.items():
            opponent.moved = after_a_step(triggers[place], numbers[place].grad)
        run.step += 1

    def loss(self, kept: Tensor, wanted: Tensor, led: Tensor, before: Tensor) -> Tensor:
        """How far the scores on clean inputs have moved, and how much triggers add to the suspect classes.

        Args:
            kept: Scores on clean inputs [n, classes].
            wanted: Probabilities that the network gave these inputs before.
            led: Scores on inputs with triggers [m, classes].
            before: Probabilities that the network gave the same inputs without triggers, before.
        """
        moved = functional.kl_div(kept.log_softmax(dim=1), wanted, reduction="batchmean")
        excess = (led.softmax(dim=1)[:, self.goals] - before[:, self.goals]).clamp(min=0.0)
        return moved - WEIGHT * (1.0 - excess).clamp(min=1e-4).log().sum(dim=1).mean()

    def finish(self, run: UnlearningRun) -> nn.Module:
        """The network with the mean weights."""
        with torch.no_grad():
            for value, mean in zip(_weights(run.student), run.mean, strict=True):
                value.copy_(mean)
        return run.student.requires_grad_(requires_grad=False)

    def _search_again(self, run: UnlearningRun) -> None:
        """Add triggers that the network follows in its present state."""
        run.student.requires_grad_(requires_grad=False)
        ground = replace(self.teacher, scorer=replace(self.teacher.scorer, model=run.student))
        kept = _RENEWED if run.step else _FIRST
        for family in self.suspects:
            run.pool = _strongest(run.pool, search(ground, family, run.generator, goals=self.goals, kept=kept))
        for value in _weights(run.student):
            value.requires_grad_()

    def _clean_batch(self, run: UnlearningRun) -> Tensor:
        """Clean inputs, moved and mirrored if they are images, and as many mixtures of two of them."""
        inputs, generator = self.teacher.inputs, run.generator
        if len(run.order) < min(BATCH, len(inputs)):
            run.order = torch.randperm(len(inputs), generator=generator)
        chosen, run.order = inputs[run.order[:BATCH]], run.order[BATCH:]
        if not chosen.is_floating_point():
            return torch.cat([chosen, chosen])
        if chosen.dim() == 4:
            chosen = _moved(chosen, generator)
        share = torch.rand(len(chosen), *[1] * (chosen.dim() - 1), generator=generator).to(chosen)
        partners = chosen[torch.randperm(len(chosen), generator=generator)]
        return torch.cat([chosen, share * chosen + (1.0 - share) * partners])

    def _choose_triggers(self, run: UnlearningRun, count: int) -> tuple[list[TriggerFamily], dict[int, Opponent]]:
        """Triggers of a step, and by their place those that climb.

        Three in four come from the pool, in proportion to their success when they were found: as they were found, as
        they have climbed since, and varied, in turn. The others are drawn at random.
        """
        generator, shape = run.generator, tuple(self.teacher.inputs.shape[1:])
        chosen: list[TriggerFamily] = []
        movers: dict[int, Opponent] = {}
        if run.pool:
            successes = torch.tensor([one.found.success for one in run.pool])
            numbers = torch.multinomial(successes, max(1, 3 * count // 4), replacement=True, generator=generator)
            for place, opponent in enumerate(run.pool[number] for number in numbers.tolist()):
                original = opponent.found.trigger
                if place % 3 == 1:
                    movers[place] = opponent
                varied = (original, opponent.moved, drawn(type(original), generator, shape, original))
                chosen.append(varied[place % 3])
        while len(chosen) < count:
            family = self.suspects[int(torch.randint(len(self.suspects), (), generator=generator))]
            chosen.append(drawn(family, generator, shape))
        return chosen, movers

    def _descend(self, run: UnlearningRun) -> None:
        """One step of gradient descent, and the running mean."""
        warm = min(1.0, (run.step + 1) / WARM_UP)
        for group in run.optimiser.param_groups:
            group["lr"] = RATE * warm * (0.1 + 0.45 * (1.0 + math.cos(math.pi * run.step / STEPS)))
        weights = _weights(run.student)
        nn.utils.clip_grad_norm_(weights, LARGEST_SLOPE)
        run.optimiser.step()
        share = max(MEAN, 1.0 / (run.step + 1))
        for mean, value in zip(run.mean, weights, strict=True):
            mean.lerp_(value.detach(), share)


def _weights(network: nn.Module) -> list[nn.Parameter]:
    return [value for value in network.parameters() if value.is_floating_point()]


def _strongest(pool: Sequence[Opponent], found: Sequence[FoundTrigger]) -> list[Opponent]:
    """The pool with new triggers, by their success when they were found.

    By their present success a trigger that the network no longer follows would leave, and its backdoor would come back.
    The strongest of each family stay in any case, so that no family is crowded out.
    """
    new = [Opponent(one, one.trigger) for one in found if one.success > LEAST]
    ordered = sorted([*pool, *new], key=lambda one: -one.found.success)
    rank: dict[str, int] = {}
    firm, others = [], []
    for one in ordered:
        rank[one.found.family] = rank.get(one.found.family, 0) + 1
        (firm if rank[one.found.family] <= _FIRM else others).append(one)
    chosen = [*firm, *others[: max(0, POOL - len(firm))]]
    return sorted(chosen, key=lambda one: -one.found.success)


def _moved(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images, each mirrored with probability 1/2 and moved by up to two pixels."""
    mirrored = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5
    images = torch.where(mirrored.to(images.device), images.flip(-1), images)
    rows, columns = images.shape[2:]
    if min(rows, columns) <= _SHIFT:
        return images
    wide = functional.pad(images, (_SHIFT,) * 4, mode="reflect")
    places = torch.randint(0, 2 * _SHIFT + 1, (len(images), 2), generator=generator).tolist()
    return torch.stack([wide[k, :, i : i + rows, j : j + columns] for k, (i, j) in enumerate(places)])
