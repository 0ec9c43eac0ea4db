"""Optimisers that torch does not have as they are needed here: decoupled decay for SGD, signs, Lion's rule, Muon."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

Direction = Callable[[dict[str, Any], Tensor], Tensor]
"""Gives the direction of a step from the state of a weight tensor, which it may change, and its gradient."""


class DirectedSteps(torch.optim.Optimizer):
    """Steps of a given length in a direction that a rule gives; decoupled decay shrinks the weights before each."""

    def __init__(self, values: Iterable[nn.Parameter], direction: Direction, *, lr: float, decay: float = 0.0) -> None:
        """``lr`` is the length of a step, and ``lr * decay`` the share by which weights shrink."""
        self._direction = direction
        super().__init__(values, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step for every tensor that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for value in group["params"]:
                if value.grad is not None:
                    value.mul_(1.0 - group["lr"] * group["decay"])
                    value.sub_(group["lr"] * self._direction(self.state[value], value.grad))
        return loss


def gradient(_: dict[str, Any], slope: Tensor) -> Tensor:
    """The gradient itself: SGD."""
    return slope


def sign(_: dict[str, Any], slope: Tensor) -> Tensor:
    """The sign of each entry: sign descent."""
    return slope.sign()


def lion(state: dict[str, Any], slope: Tensor) -> Tensor:
    """The sign of a running mean of gradients, as in Lion (0.9 and 0.99)."""
    mean = state.setdefault("mean", torch.zeros_like(slope))
    direction = (0.9 * mean + 0.1 * slope).sign()
    mean.mul_(0.99).add_(slope, alpha=0.01)
    return direction


class MuonAndSGD(torch.optim.Optimizer):
    """torch's Muon for matrices, which is all that it takes, and SGD for biases."""

    def __init__(self, values: Iterable[nn.Parameter], *, lr: float, decay: float) -> None:
        """``lr`` and ``decay`` are those of Muon."""
        values = list(values)
        super().__init__(values, {"lr": lr})
        matrices, others = ([value for value in values if (value.ndim == 2) == wanted] for wanted in (True, False))
        self._parts = (torch.optim.Muon(matrices, lr=lr, weight_decay=decay), torch.optim.SGD(others, lr=lr))

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step of both."""
        loss = None if closure is None else closure()
        for part in self._parts:
            part.step()
        return loss
