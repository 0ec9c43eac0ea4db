"""One sweep of the defence, in a single pass: layer by layer, each fitted to what it used to do.

All clean inputs go through the network at once, and twice side by side: the first half as the purified network sees
them, the second half as the contaminated one does. So every layer has both at hand when it is called.
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
from netpurify.network.adapter.layers import Layer, as_layer
from netpurify.network.policies.defence.guard import Guard, place
from netpurify.network.policies.defence.moments import Moments
from netpurify.network.policies.defence.walk import Walk, given_to, removed
from netpurify.network.policies.policy import Progress

TAIL = 0.1
"""Share of a channel's clean values that the guard cuts off at either end, for a strength of 1."""
_MOST = 0.45
"""Largest share of anything that the guard cuts off."""
_CHANGED = (
    "which layers a network calls must not depend on its weights or inputs; {name} is called {what} while others "
    "change; leave this layer out"
)


@dataclass(frozen=True, slots=True)
class LayerFit:
    """What one layer became.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        units: Units of all groups.
        fan_in: Length of a unit's weight vector, bias included.
        rows: Rows that decided the fit.
        kept: Share of its response that is kept in each principal direction of the clean inputs, strongest first; the
            mean over groups.
        change: Size of the change of its weights, relative to the weights.
        guarded: Name of the module whose output is kept in range; empty without a guard.
        clipped: Share of the clean values beyond the range.
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
        """Share of the directions of its fan-in that are forgotten: 1 less the mean share kept."""
        return 1.0 - float(self.kept.mean())


def sweep(
    contaminated: nn.Module,
    layers: Sequence[Layer],
    walk: Walk,
    run: Callable[[nn.Module], Any],
    *,
    inputs: int,
    strength: float,
    guard: bool,
    progress: Progress | None = None,
) -> tuple[nn.Module, list[LayerFit]]:
    """A defended copy of a network, and what its layers became.

    Args:
        contaminated: The network.
        layers: Those of its layers that are to be fitted.
        walk: How inputs go through it.
        run: Calls a network on all clean inputs, twice side by side along the first dimension.
        inputs: How many inputs these are, counted once.
        strength: Ridge, relative to the mean energy of a layer's inputs. The guard cuts off ``TAIL`` times as much of a
            channel's values, and as much of the images by a channel's spread.
        guard: Whether to place guards.
        progress: Called before each layer.

    Raises:
        InputError: Weights or inputs of a layer are not finite, or inputs do not go through the network side by side.
        Exception: Whatever ``progress`` raises.
    """
    defended = copy.deepcopy(contaminated)
    modules = dict(defended.named_modules())
    fits: dict[str, LayerFit] = {}
    guards: dict[str, Guard] = {}
    clipped: dict[str, float] = {}
    dims = {walk.watched[it.name]: it.trailing for it in layers if it.name in walk.watched}

    def fit(layer: Layer) -> Callable:
        theirs = list(layer.module._forward_hooks.items())

        def hook(_: nn.Module, given: tuple, named: dict[str, Any], output: Tensor) -> Tensor:
            if progress is not None:
                progress(layer.name, len(fits), len(walk.order))
            if layer.name in fits:
                raise InputError(_CHANGED.format(name=layer.name, what="once more"))
            now, before = _halves(given_to(given, named), layer.name, inputs)
            moments = Moments(layer, now, before)
            old = layer.matrix().to("cpu", torch.float64, copy=True).numpy()  # not the weights that are written below
            new, kept = moments.fit(old, strength)
            layer.write(torch.from_numpy(new).to(layer.module.weight))
            change = float(np.linalg.norm(new - old) / max(float(np.linalg.norm(old)), 1e-300))
            fits[layer.name] = LayerFit(
                layer.name, layer.kind, layer.units, layer.fan_in, moments.count, kept.mean(axis=0), change, "", 0.0
            )
            return torch.cat([_call(layer.module, theirs, now), output[len(now) :]])

        return _ours(hook)

    def watch(name: str) -> Callable:
        def hook(_: nn.Module, __: tuple, ___: dict[str, Any], output: Tensor) -> Tensor:
            now, before = _halves(output, name, inputs)
            found = guards[name] = measure(now, dims[name], strength)
            clipped[name] = float(((now < found.low) | (now > found.high)).mean(dtype=torch.float64))
            return torch.cat([found(now), before])

        return _ours(hook)

    ours = [as_layer(it.name, modules[it.name]) for it in layers]
    handles = [layer.module.register_forward_hook(fit(layer), with_kwargs=True) for layer in ours]
    handles += [modules[name].register_forward_hook(watch(name), with_kwargs=True) for name in dims if guard]
    with _as_they_are(), removed(handles):
        run(defended)
    for name in walk.order:
        if name not in fits:
            raise InputError(_CHANGED.format(name=name, what="no longer"))
    for name, found in guards.items():
        place(modules[name], found)
    return defended, [_with_guard(fits[name], walk.watched[name], clipped) for name in walk.order]


def measure(values: Tensor, dims: int, strength: float) -> Guard:
    """The guard that clean values [images, ..., channels, ...] ask for, with ``dims`` dimensions after the channels."""
    channels = values.movedim(values.dim() - dims - 1, 0).flatten(1)
    low, high = _range(channels, TAIL * strength)
    centre = channels.mean(dim=1, dtype=torch.float64).to(values)
    low, high, centre = (value.reshape(-1, *[1] * dims) for value in (low, high, centre))
    guard = Guard(low, high, centre, torch.full_like(low, torch.inf))
    if dims:
        sizes = guard.size(torch.clamp(values, low, high)).flatten(1).T
        guard.spread = _range(sizes, strength)[1].reshape(low.shape)
    return guard


def _range(values: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Values [channels, n] that occur, with so large a share beyond them on either side."""
    kept = math.floor(min(share, _MOST) * values.shape[1]) + 1
    return values.topk(kept, dim=1, largest=False).values[:, -1], values.topk(kept, dim=1).values[:, -1]


def _with_guard(fit: LayerFit, watched: str, clipped: Mapping[str, float]) -> LayerFit:
    return replace(fit, guarded=watched, clipped=clipped[watched]) if watched in clipped else fit


def _halves(values: Tensor, name: str, inputs: int) -> tuple[Tensor, Tensor]:
    if len(values) % (2 * inputs):
        raise InputError(
            f"the network must treat its inputs one by one along the first dimension; {name} sees {len(values)} where "
            f"{2 * inputs} go through; leave this layer out"
        )
    return values[: len(values) // 2], values[len(values) // 2 :]


def _call(module: nn.Module, hooks: Sequence[tuple[int, Callable]], given: Tensor) -> Tensor:
    """What a module gives, with the hooks that it had before ours: guards, and the caller's own."""
    output = module.forward(given)
    for key, hook in hooks:
        named = ({},) if key in module._forward_hooks_with_kwargs else ()
        changed = hook(module, (given,), *named, output)
        output = output if changed is None else changed
    return output


class _Stop(Halt):
    """Carries an error of ours out of a model's call, where it would be taken for one of the model's."""


def _ours(hook: Callable) -> Callable:
    def caught(*given: Any) -> Tensor:
        try:
            return hook(*given)
        except Exception as error:
            raise _Stop(error) from error

    return caught


@contextmanager
def _as_they_are() -> Iterator[None]:
    """Errors of our hooks leave a model's call as what they are."""
    try:
        yield
    except _Stop as stop:
        (error,) = stop.args
        raise error from error.__cause__
