"""Scores of a network for inputs that carry triggers, with slopes for the triggers' numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from netpurify.errors import InputError
from netpurify.network.adapter.capture import Forward, first_tensor
from netpurify.network.hunting.families.family import TriggerFamily

_NUMBERS = 1 << 17
"""Numbers of all inputs that go through the network at once, about: few enough for a processor's cache. With eight
times as many, the networks of the benchmark take half as long again."""
_LEAST_OTHERS = 5
"""Clean inputs that the network must give another class than the most frequent one."""
_LEAST = 8
"""Inputs that go through the network at once, at least."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A network that is given images in [0, 1] and normalises them itself.

    Attributes:
        model: The network, in evaluation mode.
        forward: Calls the network on a batch; ``None`` for ``model(inputs)``.
        mean: What the network's inputs have subtracted from [0, 1], [1, c, 1, 1] or one number.
        std: What they are divided by afterwards.
    """

    model: nn.Module
    forward: Forward | None
    mean: Tensor
    std: Tensor

    def scores(self, inputs: Tensor) -> Tensor:
        """Scores [n, classes] in float32 or better, with gradients if they are wanted."""
        if inputs.is_floating_point():
            inputs = (inputs - self.mean) / self.std
        if inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        output = first_tensor(self.model(inputs) if self.forward is None else self.forward(self.model, inputs))
        if output is None or output.dim() != 2 or len(output) != len(inputs) or output.shape[1] < 2:
            got = "no tensor" if output is None else f"an output {list(output.shape)}"
            raise InputError(
                f"a hunt needs a network that gives scores [{len(inputs)}, classes] for {len(inputs)} inputs; got "
                f"{got}; give a network that returns the scores of classes"
            )
        return output

    def classes(self, inputs: Tensor) -> Tensor:
        """Scores of all inputs, without gradients, and checked.

        Raises:
            InputError: They are not finite.
        """
        with torch.no_grad():
            scores = torch.cat([self.scores(part) for part in inputs.split(together(inputs))])
        if not torch.isfinite(scores).all():
            raise InputError("the network must give finite scores for clean inputs; some are NaN or infinite")
        return scores


def together(inputs: Tensor) -> int:
    """How many inputs may go through the network at once."""
    return max(_LEAST, _NUMBERS // max(1, inputs[0].numel()))


def stamped(triggers: Sequence[TriggerFamily], numbers: Sequence[Tensor], parts: Sequence[Tensor]) -> Tensor:
    """Every trigger on its own part of the inputs, joined.

    Raises:
        InputError: A trigger gives something else than changed inputs.
    """
    changed = []
    for trigger, parameters, part in zip(triggers, numbers, parts, strict=True):
        made = trigger.apply(part, parameters)
        if not isinstance(made, Tensor) or made.shape != part.shape:
            got = list(made.shape) if isinstance(made, Tensor) else type(made).__name__
            raise InputError(
                f"the family {trigger.name!r} must keep the shape of inputs {list(part.shape)}; apply gave {got}"
            )
        changed.append(made)
    return torch.cat(changed)


@dataclass(frozen=True, slots=True)
class Ground:
    """Where triggers are tried: the network, and clean inputs with the classes that it gives them.

    Attributes:
        scorer: The network.
        inputs: Clean inputs, [n, ...]; images are in [0, 1].
        own: The class that the network gives each of them, [n].
        classes: Number of classes.
    """

    scorer: Scorer
    inputs: Tensor
    own: Tensor
    classes: int

    @classmethod
    def of(cls, scorer: Scorer, inputs: Tensor) -> "Ground":
        """Ask the network for the classes of the inputs.

        Raises:
            InputError: It gives nearly all of them one class, so that nothing can be led to another.
        """
        scores = scorer.classes(inputs)
        own = scores.argmax(dim=1)
        others = len(own) - int(own.bincount().max())
        if others < _LEAST_OTHERS:
            raise InputError(
                f"a hunt needs clean inputs of several classes, {_LEAST_OTHERS} or more outside the most frequent; "
                f"the network gives one class to all but {others} of {len(own)}; give other inputs, or check how they "
                "are prepared (size, mean, std)"
            )
        return cls(scorer, inputs, own, scores.shape[1])

    def rates(self, triggers: Sequence[TriggerFamily], each: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """For each trigger and class, over inputs of other classes: its mean probability, and how many are given it.

        Every trigger is tried on ``each`` inputs, drawn anew for each of them.

        Returns:
            Two shares in [0, 1], [triggers, classes].
        """
        drawn = torch.randint(len(self.inputs), (len(triggers), each), generator=generator)
        scores = []
        with torch.no_grad():
            for first in range(0, len(triggers), size := max(1, together(self.inputs) // each)):
                chosen, some = drawn[first : first + size], triggers[first : first + size]
                parts = self.inputs[chosen.flatten()].split(each)
                scores.append(self.scorer.scores(stamped(some, [one.parameters for one in some], parts)))
        found = torch.cat(scores).unflatten(0, (len(triggers), each))
        other = self.own[drawn][..., None] != torch.arange(self.classes)
        count = other.sum(dim=1).clamp(min=1)
        hits = functional.one_hot(found.argmax(dim=-1), self.classes) * other
        return (found.softmax(dim=-1) * other).sum(dim=1) / count, hits.sum(dim=1).double() / count

    def climb(
        self, triggers: Sequence[TriggerFamily], targets: Tensor, each: int, generator: torch.Generator
    ) -> list[TriggerFamily]:
        """Every trigger after one step towards its target class."""
        drawn = torch.randint(len(self.inputs), (len(triggers), each), generator=generator)
        climbed = list(triggers)
        movable = [place for place, trigger in enumerate(triggers) if trigger.parameters.numel()]
        size = max(1, together(self.inputs) // each)
        for places in (movable[first : first + size] for first in range(0, len(movable), size)):
            some = [triggers[place] for place in places]
            numbers = [trigger.parameters.clone().requires_grad_() for trigger in some]
            chosen = drawn[places]
            with torch.enable_grad():
                parts = self.inputs[chosen.flatten()].split(each)
                scores = self.scorer.scores(stamped(some, numbers, parts)).unflatten(0, (len(some), each))
                aim = targets[places][:, None].expand(-1, each)
                loss = functional.cross_entropy(scores.transpose(1, 2), aim, reduction="none")
                loss = (loss * (self.own[chosen] != aim)).sum() / each
                slopes = torch.autograd.grad(-loss, numbers, allow_unused=True)
            for place, slope in zip(places, slopes, strict=True):
                if slope is not None:  # a network may not depend on what a trigger changes
                    climbed[place] = triggers[place].climb(slope)
        return climbed
