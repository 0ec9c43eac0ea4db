"""One pass of the defence over a network: every layer is fitted to the outputs that it gave before.

All clean inputs go through the network at once, and twice side by side along the first dimension. The first half passes
through the layers that are already purified, the second half through the contaminated network. When a layer is called,
it therefore has its purified and its contaminated inputs at hand.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.network.adapter.capture import Halt
from netpurify.network.adapter.layers import Layer, as_layers
from netpurify.network.policies.defence.guard import Guard, attach_guard
from netpurify.network.policies.defence.moments import Moments
from netpurify.network.policies.defence.tracing import Trace, first_argument, removing
from netpurify.network.policies.policy import Progress

TAIL = 0.1
"""Share of a channel's clean values that the guard cuts off at either end, for a strength of 1."""
_LARGEST_CUT = 0.45
"""Largest share of the values, or of the images, that the guard cuts off."""
_CALLS_CHANGED = (
    "which layers a network calls must not depend on its weights or inputs; {name} is called {how} while others "
    "change; leave this layer out"
)


@dataclass(frozen=True, slots=True)
class DefendedLayer:
    """What became of one layer.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        units: Units of all groups.
        fan_in: Length of a unit's weight vector, bias included.
        rows: Rows of clean inputs that the fit uses.
        kept: Share of the layer's response that is kept in each principal direction of the clean inputs, strongest
            first; the mean over groups.
        change: Norm of the change of the weights, relative to the norm of the weights.
        guarded: Name of the module whose output the guard keeps in range; empty without a guard.
        clipped: Share of the clean values that lie outside the guard's range.
    """

    name: str
    kind: str
    units: int
    fan_in: int
    rows: int
    kept: NDArray[np.float64]
    change: float
    guarded: str
    clipped: float

    @property
    def forgotten(self) -> float:
        """Share of the directions of the fan-in that the layer no longer responds to: 1 minus the mean of ``kept``."""
        return 1.0 - float(self.kept.mean())


@dataclass(frozen=True, slots=True)
class Sweep:
    """How copies of one network are defended.

    Attributes:
        contaminated: The network.
        layers: Those of its layers that are to be fitted.
        trace: How inputs go through it.
        run: Calls a network on all clean inputs, twice side by side along the first dimension.
        inputs: How many inputs these are, counted once.
        guard: Whether to attach guards.
    """

    contaminated: nn.Module
    layers: Sequence[Layer]
    trace: Trace
    run: Callable[[nn.Module], Any]
    inputs: int
    guard: bool

    def defend(self, strength: float, progress: Progress | None = None) -> tuple[nn.Module, list[DefendedLayer]]:
        """A defended copy of the network, and what became of its layers.

        Args:
            strength: Ridge, relative to the mean energy of a layer's inputs. The guard cuts off the share
                ``TAIL * strength`` of a channel's values at either end, and the share ``strength`` of the images with
                the widest spread.
            progress: Called before each layer.

        Raises:
            InputError: Weights or inputs of a layer are not finite, or the network does not treat its inputs one by
                one.
            Exception: Whatever ``progress`` raises.
        """
        defended = copy.deepcopy(self.contaminated)
        modules = dict(defended.named_modules())
        one_pass = _Pass(self, strength, progress)
        # The fit comes before all hooks that the layer has already (guards, the caller's own), so that these see the
        # output of the fitted layer; the new guard comes after them.
        handles = [
            modules[layer.name].register_forward_hook(
                one_pass.fitting(as_layers(layer.name, modules[layer.name])[0]), prepend=True, with_kwargs=True
            )
            for layer in self.layers
        ]
        if self.guard:
            watched = {self.trace.watched[layer.name]: layer.trailing for layer in self.layers}
            handles += [
                modules[name].register_forward_hook(one_pass.guarding(name, trailing), with_kwargs=True)
                for name, trailing in watched.items()
            ]
        with _own_errors(), removing(handles):
            self.run(defended)
        for name, guard in one_pass.guards.items():
            attach_guard(modules[name], guard)
        return defended, one_pass.layers()


class _Pass:
    """The hooks of one pass, and what they have found so far.

    Attributes:
        guards: By the name of the module whose output they keep in range.
    """

    def __init__(self, sweep: Sweep, strength: float, progress: Progress | None) -> None:
        self._sweep, self._strength, self._progress = sweep, strength, progress
        self._fitted: dict[str, DefendedLayer] = {}
        self._clipped: dict[str, float] = {}
        self.guards: dict[str, Guard] = {}

    def fitting(self, layer: Layer) -> Callable:
        """A hook that fits a layer when it is called, and gives the output of the fitted layer."""

        def hook(_: nn.Module, given: tuple, named: dict[str, Any], output: Tensor) -> Tensor:
            if self._progress is not None:
                self._progress(layer.name, len(self._fitted), len(self._sweep.trace.order))
            if layer.name in self._fitted:
                raise InputError(_CALLS_CHANGED.format(name=layer.name, how="once more"))
            purified, contaminated = self._halves(first_argument(given, named), layer.name)
            self._fitted[layer.name] = _fit(layer, Moments(layer, purified, contaminated), self._strength)
            return torch.cat([layer.module.forward(purified), output[len(purified) :]])

        return _marking_errors(hook)

    def guarding(self, name: str, trailing: int) -> Callable:
        """A hook that makes the guard of a module's output, with ``trailing`` dimensions after the channels."""

        def hook(_: nn.Module, __: tuple, ___: dict[str, Any], output: Tensor) -> Tensor:
            purified, contaminated = self._halves(output, name)
            guard = self.guards[name] = fit_guard(purified, trailing, self._strength)
            outside = (purified < guard.low) | (purified > guard.high)
            self._clipped[name] = float(outside.mean(dtype=torch.float64))
            return torch.cat([guard(purified), contaminated])

        return _marking_errors(hook)

    def layers(self) -> list[DefendedLayer]:
        """What became of the layers, in the order of execution.

        Raises:
            InputError: A layer was not called in this pass, though it was before.
        """
        trace = self._sweep.trace
        for name in trace.order:
            if name not in self._fitted:
                raise InputError(_CALLS_CHANGED.format(name=name, how="no longer"))
        return [_with_guard(self._fitted[name], trace.watched[name], self._clipped) for name in trace.order]

    def _halves(self, values: Tensor, name: str) -> tuple[Tensor, Tensor]:
        """What comes from the purified and from the contaminated network."""
        inputs = self._sweep.inputs
        if len(values) % (2 * inputs):
            raise InputError(
                f"the network must treat its inputs one by one along the first dimension; {name} sees {len(values)} "
                f"where {2 * inputs} go through; leave this layer out"
            )
        return values[: len(values) // 2], values[len(values) // 2 :]


def _fit(layer: Layer, moments: Moments, strength: float) -> DefendedLayer:
    """Fit a layer and write its new weights."""
    old = layer.matrix().to("cpu", torch.float64, copy=True).numpy()  # a copy, since the layer is written below
    new, kept = moments.fit(old, strength)
    layer.write(torch.from_numpy(new).to(layer.module.weight))
    return DefendedLayer(
        name=layer.name,
        kind=layer.kind,
        units=layer.units,
        fan_in=layer.fan_in,
        rows=moments.count,
        kept=kept.mean(axis=0),
        change=float(np.linalg.norm(new - old) / max(float(np.linalg.norm(old)), 1e-300)),
        guarded="",
        clipped=0.0,
    )


def fit_guard(values: Tensor, trailing: int, strength: float) -> Guard:
    """The guard for clean values [images, ..., channels, ...], with ``trailing`` dimensions after the channels."""
    channels = values.movedim(values.dim() - trailing - 1, 0).flatten(1)
    low, high = _range(channels, TAIL * strength)
    centre = channels.mean(dim=1, dtype=torch.float64).to(values)
    low, high, centre = (bound.reshape(-1, *[1] * trailing) for bound in (low, high, centre))
    guard = Guard(low, high, centre, torch.full_like(low, torch.inf))
    if trailing:
        deviations = guard.deviation(torch.clamp(values, low, high)).flatten(1).T
        guard.spread = _range(deviations, strength)[1].reshape(low.shape)
    return guard


def _range(values: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """For each row of values [channels, n], the two that have this share of the row below and above them."""
    cut = math.floor(min(share, _LARGEST_CUT) * values.shape[1]) + 1
    return values.topk(cut, dim=1, largest=False).values[:, -1], values.topk(cut, dim=1).values[:, -1]


def _with_guard(layer: DefendedLayer, watched: str, clipped: Mapping[str, float]) -> DefendedLayer:
    return replace(layer, guarded=watched, clipped=clipped[watched]) if watched in clipped else layer


class _OwnError(Halt):
    """Carries an error of our own hooks out of a model's call, where it would be taken for an error of the model."""


def _marking_errors(hook: Callable) -> Callable:
    def marked(*arguments: Any) -> Tensor:
        try:
            return hook(*arguments)
        except Exception as error:
            raise _OwnError(error) from error

    return marked


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raise the errors of our own hooks as they were before ``_marking_errors`` wrapped them."""
    try:
        yield
    except _OwnError as carrier:
        (error,) = carrier.args
        raise error from error.__cause__
