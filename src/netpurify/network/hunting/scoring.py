"""Scores of a network for inputs that carry triggers, with slopes for the triggers' numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from netpurify.errors import InputError
from netpurify.network.adapter.batches import remedy
from netpurify.network.adapter.capture import Forward, first_tensor
from netpurify.network.hunting.asking import after_a_step, applied
from netpurify.network.hunting.families.family import TriggerFamily
from netpurify.network.policies.defence.inputs import divide

_NUMBERS = 1 << 17
"""Numbers of all inputs that go through the network at once, about: few enough for a processor's cache. With eight
times as many, the networks of the benchmark take half as long again."""
_LEAST_OTHERS = 5
"""Clean inputs that the network must give another class than the most frequent one."""
_OUTSIDE = 1e-3
"""By how much changed images may lie outside [0, 1]."""
_MOST_JUDGED = 128
"""Inputs on which what was found is judged, at most."""
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
        output = first_tensor(self._output(inputs))
        if output is None or output.dim() != 2 or len(output) != len(inputs) or output.shape[1] < 2:
            got = "no tensor" if output is None else f"an output {list(output.shape)}"
            raise InputError(
                f"a hunt needs a network that gives scores [{len(inputs)}, classes] for {len(inputs)} inputs; got "
                f"{got}; give a network that returns the scores of classes"
            )
        if not output.is_floating_point():
            raise InputError(f"a hunt needs scores in floating point; the network gives {output.dtype}")
        return output

    def _output(self, inputs: Tensor) -> Any:
        try:
            return self.model(inputs) if self.forward is None else self.forward(self.model, inputs)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"the model must accept the clean inputs; called with {list(inputs.shape)} of {inputs.dtype} it raised "
                f"{type(error).__name__}: {error}; {remedy(error)}"
            ) from error

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
    joined = torch.cat([applied(*one) for one in zip(triggers, parts, numbers, strict=True)])
    if triggers[0].images and not bool(((joined >= -_OUTSIDE) & (joined <= 1.0 + _OUTSIDE) | joined.isnan()).all()):
        raise InputError(
            f"the family {triggers[0].name!r} must leave images within [0, 1]; apply gave values from "
            f"{joined.min():.4g} to {joined.max():.4g}; clamp them"
        )
    return joined


@dataclass(frozen=True, slots=True)
class Ground:
    """Where triggers are tried: the network, and clean inputs with the classes that it gives them.

    Attributes:
        scorer: The network.
        inputs: Clean inputs, [n, ...]; images are in [0, 1].
        own: The class that the network gives each of them, [n].
        classes: Number of classes.
        searched: Numbers of the inputs on which triggers are sought.
        judged: Numbers of the inputs on which the success of what was found is measured: one in five, kept apart.
    """

    scorer: Scorer
    inputs: Tensor
    own: Tensor
    classes: int
    searched: Tensor
    judged: Tensor

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
        return cls(scorer, inputs, own, scores.shape[1], *divide(len(inputs)))

    def rates(self, triggers: Sequence[TriggerFamily], each: int, generator: torch.Generator) -> Tensor:
        """For each trigger and class, its mean probability over inputs of other classes, [triggers, classes].

        Every trigger is tried on ``each`` inputs, drawn anew for each of them.
        """
        drawn = self._draw(len(triggers), each, generator)
        found, other = self._tried(triggers, drawn)
        means = (found.softmax(dim=-1) * other).nan_to_num(nan=0.0).sum(dim=1)
        return means / other.sum(dim=1).clamp(min=1)

    def successes(self, triggers: Sequence[TriggerFamily]) -> Tensor:
        """For each trigger and class, the share of judged inputs of other classes that are given it.

        All triggers are tried on the same inputs, which no search has seen, so that what was selected is not judged by
        what it was selected on.

        Returns:
            [triggers, classes].
        """
        chosen = self.judged[:_MOST_JUDGED].expand(len(triggers), -1)
        found, other = self._tried(triggers, chosen)
        # What is not a number is no class, although argmax would take it for the largest.
        known = other & found.isfinite().all(dim=-1, keepdim=True)
        hits = functional.one_hot(found.argmax(dim=-1), self.classes) * known
        return hits.sum(dim=1).double() / other.sum(dim=1).clamp(min=1)

    def _draw(self, triggers: int, each: int, generator: torch.Generator) -> Tensor:
        """Numbers of searched inputs, [triggers, each]."""
        return self.searched[torch.randint(len(self.searched), (triggers, each), generator=generator)]

    def _tried(self, triggers: Sequence[TriggerFamily], drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of inputs that carry triggers, [triggers, each, classes]; and of which classes the inputs are not."""
        each = drawn.shape[1]
        scores = []
        with torch.no_grad():
            for first in range(0, len(triggers), size := max(1, together(self.inputs) // each)):
                chosen, some = drawn[first : first + size], triggers[first : first + size]
                parts = self.inputs[chosen.flatten()].split(each)
                scores.append(self.scorer.scores(stamped(some, [one.parameters for one in some], parts)))
        other = self.own[drawn][..., None] != torch.arange(self.classes)
        return torch.cat(scores).unflatten(0, (len(triggers), each)), other

    def climb(
        self, triggers: Sequence[TriggerFamily], targets: Tensor, each: int, generator: torch.Generator
    ) -> list[TriggerFamily]:
        """Every trigger after one step towards its target class."""
        drawn = self._draw(len(triggers), each, generator)
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
                if not loss.requires_grad:  # a network may have no slope in its inputs, or a family none in its numbers
                    continue
                slopes = torch.autograd.grad(-loss, numbers, allow_unused=True)
            for place, slope in zip(places, slopes, strict=True):
                climbed[place] = after_a_step(triggers[place], slope)
        return climbed
