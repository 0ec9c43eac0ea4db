"""Algorithm 1: full-batch gradient descent, the output layer first, in the regimes of Theorems 2 and 3."""

import copy
import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from netpurify.errors import InputError
from netpurify.paper.descent import Descent, Observe, Trajectory
from netpurify.paper.model import PatchCNN, matrix, write
from netpurify.threads import one_torch_thread

Regime = Literal["joint", "sequential", "sequential-fixed"]


@dataclass(frozen=True, slots=True)
class Training:
    """A trained network and what purification needs to know of its training.

    Attributes:
        initial: The weights that training started from; in the sequential regimes the output layer starts from 0.
        trained: The trained network.
        trajectories: One per phase: joint, or hidden layers first and then the output layer.
    """

    initial: PatchCNN
    trained: PatchCNN
    trajectories: tuple[Trajectory, ...]

    @property
    def converged(self) -> bool:
        """Whether every phase reached the tolerance."""
        return all(trajectory.converged for trajectory in self.trajectories)


@dataclass(frozen=True, slots=True)
class StepSizes:
    """Step sizes of gradient descent.

    Attributes:
        output: Step size of the output layer.
        hidden: Step size of every hidden layer; ``None`` for the paper's gamma / fan-in.
    """

    output: float
    hidden: float | None = None


@one_torch_thread()
def train(
    model: PatchCNN,
    inputs: Tensor,
    targets: Tensor,
    *,
    gamma: float | StepSizes,
    regime: Regime = "joint",
    steps: int = 1000,
    tolerance: float = 1e-8,
    observe: Observe | None = None,
) -> Training:
    """Minimises the empirical risk by gradient descent, as in Algorithm 1.

    Each step first moves the output layer, by gamma times its gradient at (beta(t-1), W(t-1)), and then all hidden
    layers, by gamma / fan-in times theirs at (beta(t), W(t-1)). A scalar network is trained on squared error,
    1/(2n) sum (y - f)^2, one with classes on softmax cross entropy.

    Regimes: ``"joint"`` is Theorem 2's. The other two are readings of Theorem 3's, in which hidden layers are trained,
    frozen, and the output layer is then trained alone, starting from 0: in ``"sequential"`` hidden layers are trained
    jointly with an output layer that is then thrown away, in ``"sequential-fixed"`` under the initial output layer.

    Args:
        model: Initial network; it is left as it is.
        inputs: Training inputs [n, d].
        targets: Numbers [n], or class labels [n].
        gamma: Step size of the output layer; hidden layers have the paper's gamma / fan-in, unless ``StepSizes`` are
            given.
        regime: As above.
        steps: Most steps of each phase (the paper's t_max).
        tolerance: A phase stops when the largest squared residual (of softmax - one-hot, for classes) is below this.
        observe: Called at every step of the first phase.

    Raises:
        InputError: Shapes, labels or options do not fit.
        DivergenceError: The loss is no longer finite.
    """
    sizes = gamma if isinstance(gamma, StepSizes) else StepSizes(gamma)
    rows, goal = _check(model, inputs, targets, sizes, regime, steps, tolerance)
    run = Descent(model, rows, goal, sizes.output, sizes.hidden, steps, tolerance)
    weights = [matrix(layer).clone() for layer in model.layers]
    path = run.descend(weights, hidden=True, output=regime != "sequential-fixed", observe=observe)
    first = Training(copy.deepcopy(model), network_of(model, weights), (path,))
    if regime == "joint":
        return first
    return train_output(first, inputs, targets, gamma=sizes.output, steps=steps, tolerance=tolerance)


@one_torch_thread()
def train_output(
    training: Training,
    inputs: Tensor,
    targets: Tensor,
    *,
    gamma: float,
    steps: int = 1000,
    tolerance: float = 1e-8,
) -> Training:
    """The second phase of sequential training: freeze the hidden layers, train the output layer from 0.

    ``train(..., regime="sequential")`` is joint training followed by this. Arguments and errors as in ``train``.
    """
    model = training.trained
    rows, goal = _check(model, inputs, targets, StepSizes(gamma), "sequential", steps, tolerance)
    run = Descent(model, rows, goal, gamma, None, steps, tolerance)
    zero = torch.zeros_like(matrix(model.output))
    weights = [*(matrix(layer).clone() for layer in model.layers[:-1]), zero.clone()]
    path = run.descend(weights, hidden=False, output=True, observe=None)
    start = [*(matrix(layer) for layer in training.initial.layers[:-1]), zero]
    return Training(network_of(model, start), network_of(model, weights), (*training.trajectories, path))


def gradients(model: PatchCNN, inputs: Tensor, targets: Tensor) -> list[Tensor]:
    """Gradients of the empirical risk in closed form, one matrix [fan-in, units] per layer, output last."""
    rows, goal = _check(model, inputs, targets, StepSizes(1.0), "joint", 0, 0.0)
    run = Descent(model, rows, goal, 1.0, None, 0, 0.0)
    weights = [matrix(layer) for layer in model.layers]
    seen = run.forward(weights)
    slope = run.slope(seen.features, weights[-1])
    return [*run.hidden_gradients(seen, weights, slope), run.output_gradient(seen.features, slope)]


def network_of(model: PatchCNN, weights: list[Tensor]) -> PatchCNN:
    """A network of the shape of ``model`` with the given matrices [fan-in, units], output last."""
    network = copy.deepcopy(model)
    for layer, value in zip(network.layers, weights, strict=True):
        write(layer, value)
    return network


def _check(
    model: PatchCNN,
    inputs: Tensor,
    targets: Tensor,
    sizes: StepSizes,
    regime: str,
    steps: int,
    tolerance: float,
) -> tuple[Tensor, Tensor]:
    """Patches of the inputs, and the targets as a matrix."""
    rows = model.patches(inputs)
    if not inputs.shape[0]:
        raise InputError("training needs at least one input; got n = 0")
    if not torch.isfinite(rows).all():
        raise InputError("training inputs must be finite; got NaN or infinite entries; remove or fill them first")
    if targets.shape != (inputs.shape[0],):
        raise InputError(f"targets must be [{inputs.shape[0]}], one per input; got {list(targets.shape)}")
    hidden = 1.0 if sizes.hidden is None else sizes.hidden
    for name, size in (("gamma", sizes.output), ("gamma of hidden layers", hidden)):
        if not 0.0 < size < math.inf:
            raise InputError(f"{name} must be a positive number; got {size}")
    if regime not in ("joint", "sequential", "sequential-fixed"):
        raise InputError(f'regime must be "joint", "sequential" or "sequential-fixed"; got {regime!r}')
    if steps < 0 or not tolerance >= 0.0:
        raise InputError(f"steps and tolerance must not be negative; got {steps} and {tolerance}")
    return rows, _goal(model, targets, rows.dtype)


def _goal(model: PatchCNN, targets: Tensor, dtype: torch.dtype) -> Tensor:
    if model.classes is None:
        if not torch.isfinite(targets).all():
            raise InputError("targets must be finite; got NaN or infinite entries")
        return targets.to(dtype)[:, None]
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise InputError(f"class labels must be whole numbers; got {targets.dtype}")
    low, high = int(targets.min()), int(targets.max())
    if low < 0 or high >= model.classes:
        raise InputError(
            f"labels must lie in 0 .. {model.classes - 1} for {model.classes} classes; got {low} .. {high}"
        )
    return torch.nn.functional.one_hot(targets.long(), model.classes).to(dtype)
