"""Gradient descent on the matrices of a network's layers, in closed form."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from netpurify.errors import InputError, NetpurifyError
from netpurify.paper.model import PatchCNN, with_bias

Observe = Callable[[int, list[Tensor]], None]
"""Called as ``observe(t, weights)`` with the matrices of all layers at step t, output last: to be read, not kept."""


class DivergenceError(NetpurifyError):
    """Training left the finite numbers."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What the theory needs of one run of gradient descent; entry t belongs to step t, entry 0 to the start.

    Attributes:
        loss: Empirical risk, [t + 1].
        residual: |y - f(t)|_2 over the training inputs (for classes, of softmax - one-hot), [t + 1].
        moved: For each layer the largest |W_j(t) - W_j(0)|_2 over units j, and for the output layer of a scalar
            network the largest |beta_j(t) - beta_j(0)| over entries, [t + 1, layers].
        converged: Whether the tolerance was reached.
    """

    loss: Tensor
    residual: Tensor
    moved: Tensor
    converged: bool

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return self.loss.shape[0] - 1


@dataclass(frozen=True, slots=True)
class Forward:
    """What the layers see.

    ``rows`` [n m, fan-in] go into a hidden layer, ``active`` [n m, p] says where its ReLU is on, and ``features``
    [n, fan-in] go into the output layer.
    """

    rows: list[Tensor]
    active: list[Tensor]
    features: Tensor


@dataclass(frozen=True, slots=True)
class Descent:
    """Gradient descent on the matrices of a network's layers, in closed form.

    ``goal`` is [n, 1] for numbers and one-hot [n, classes] for labels.
    """

    model: PatchCNN
    rows: Tensor
    goal: Tensor
    gamma: float
    hidden_gamma: float | None
    steps: int
    tolerance: float

    def descend(self, weights: list[Tensor], *, hidden: bool, output: bool, observe: Observe | None) -> Trajectory:
        """Change ``weights`` in place until the tolerance or the last step is reached."""
        start = [value.clone() for value in weights]
        losses, residuals, moved, converged = [], [], [], False
        seen = self.forward(weights)
        for t in range(self.steps + 1):
            if t and hidden:
                seen = self.forward(weights)
            slope = self.slope(seen.features, weights[-1])
            losses.append(self.loss(seen.features, weights[-1], slope))
            residuals.append(float(slope.norm()))
            moved.append([self.distance(now, then) for now, then in zip(weights, start, strict=True)])
            if not math.isfinite(losses[-1]):
                if not t:
                    raise InputError(
                        f"the loss must be finite before training; it is {losses[-1]}; rescale the inputs or check the "
                        "initial weights"
                    )
                raise DivergenceError(
                    f"training diverged: the loss is {losses[-1]} at step {t}; lower gamma (now {self.gamma})"
                )
            if observe is not None:
                observe(t, weights)
            converged = float(slope.abs().max()) ** 2 < self.tolerance
            if converged or t == self.steps:
                break
            if output:
                weights[-1] -= self.gamma * self.output_gradient(seen.features, slope)
            if hidden:
                slope = self.slope(seen.features, weights[-1])
                changes = self.hidden_gradients(seen, weights, slope)
                for value, change in zip(weights, changes, strict=False):
                    value.sub_(change, alpha=self.hidden_gamma or self.gamma / value.shape[0])
        return Trajectory(
            torch.tensor(losses, dtype=torch.float64),
            torch.tensor(residuals, dtype=torch.float64),
            torch.tensor(moved, dtype=torch.float64),
            converged,
        )

    def forward(self, weights: list[Tensor]) -> Forward:
        """What every layer sees."""
        layers = self.model.layers
        rows, active, following = [with_bias(self.rows, layers[0])], [], layers[1:]
        for value, layer in zip(weights[:-1], following, strict=True):
            out = (rows[-1] @ value).relu_()
            active.append(out > 0)
            rows.append(with_bias(out if len(active) < len(following) else self.model.pool(out), layer))
        return Forward(rows[:-1], active, rows[-1])

    def slope(self, features: Tensor, output: Tensor) -> Tensor:
        """The derivative n dL/df: f - y for squared error, softmax(f) - one-hot for cross entropy."""
        scores = features @ output / math.sqrt(self.model.p)
        return (scores if self.model.classes is None else scores.softmax(1)) - self.goal

    def loss(self, features: Tensor, output: Tensor, slope: Tensor) -> float:
        """The empirical risk."""
        if self.model.classes is None:
            return 0.5 * float(slope.square().mean())
        scores = features @ output / math.sqrt(self.model.p)
        return -float((scores.log_softmax(1) * self.goal).sum(1).mean())

    def output_gradient(self, features: Tensor, slope: Tensor) -> Tensor:
        """The risk's gradient by the output layer, [fan-in, outputs]."""
        return features.T @ slope / (slope.shape[0] * math.sqrt(self.model.p))

    def hidden_gradients(self, seen: Forward, weights: list[Tensor], slope: Tensor) -> list[Tensor]:
        """Back through the sum over patches and the ReLUs; the ReLU's derivative at 0 is 0."""
        p = self.model.p
        back = slope @ weights[-1][:p].T / (slope.shape[0] * math.sqrt(p))
        back = back.repeat_interleave(self.model.m, 0)
        found: list[Tensor] = []
        for i in reversed(range(len(seen.rows))):
            back = back * seen.active[i]
            found.append(seen.rows[i].T @ back)
            back = back @ weights[i][:p].T if i else back
        return found[::-1]

    def distance(self, now: Tensor, then: Tensor) -> float:
        """The largest distance that a unit, or an entry of a single one, has moved."""
        if now.shape[1] == 1:
            return float((now - then).abs().max())
        return float((now - then).norm(dim=0).max())
