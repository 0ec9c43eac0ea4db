"""How a network is trained, and the learning rate of every step."""

import math
from dataclasses import dataclass
from typing import Literal

from netpurify.errors import InputError


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is trained: SGD with Nesterov momentum on the cross-entropy, in batches drawn anew each epoch.

    Attributes:
        epochs: Passes over the data.
        rate: Largest learning rate.
        schedule: ``"one-cycle"`` rises to the rate over the first 30 % of steps and falls to 0 along cosines;
            ``"cosine"`` begins at the rate.
        batch: Images of a step; what is left over at the end of an epoch waits for the next one.
        momentum: Of the gradients.
        decay: Weight decay.
        flips: Whether each image is mirrored with probability 1/2, each time it is seen.
        threads: Threads of torch. Bits depend on their number, so it belongs to the recipe.
    """

    epochs: int = 10
    rate: float = 0.1
    schedule: Literal["one-cycle", "cosine"] = "one-cycle"
    batch: int = 128
    momentum: float = 0.9
    decay: float = 5e-4
    flips: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch, self.threads) < 1:
            raise InputError(f"epochs, batch and threads must be 1 or more; got {self}")
        if not (self.rate > 0.0 and 0.0 <= self.momentum < 1.0 and self.decay >= 0.0):
            raise InputError(f"rate must be above 0, momentum in [0, 1), decay 0 or more; got {self}")
        if self.schedule not in ("one-cycle", "cosine"):
            raise InputError(f'schedule must be "one-cycle" or "cosine"; got {self.schedule!r}')

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, counted from 0."""
        warm = 0.3 * steps if self.schedule == "one-cycle" else 0.0
        if step < warm:
            return self.rate * (0.04 + 0.48 * (1.0 - math.cos(math.pi * step / warm)))
        return 0.5 * self.rate * (1.0 + math.cos(math.pi * (step - warm) / (steps - warm)))
