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
from netpurify.network.capture import Runner
from netpurify.network.defence.guard import Guard, guarded, place
from netpurify.network.defence.moments import Moments
from netpurify.network.layers import Layer

Progress = Callable[[str, int, int], None]
TAIL = 0.1
"""Share of a channel's clean values that the guard cuts off at either end, for a strength of 1."""
_MOST = 0.45
"""Largest share of anything that the guard cuts off."""
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True, slots=True)
class Walk:
    """How inputs go through a network.

    Attributes:
        order: Names of the layers to fit, in the order of execution.
        watched: What the guard of a layer watches over: the BatchNorm that alone takes the layer's output, else the
            layer itself. By the layer's name.
    """

    order: tuple[str, ...]
    watched: Mapping[str, str]


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


def look(model: nn.Module, runner: Runner, layers: Sequence[Layer]) -> Walk:
    """How inputs go through a network; one pass over those of the runner.

    Args:
        model: The network.
        runner: Runs it on some of the clean inputs.
        layers: The layers to fit, each of which is called once.
    """
    followers: dict[str, set[str]] = {}
    outputs: list[tuple[Tensor, str]] = []

    def note(name: str) -> Callable:
        def hook(_: nn.Module, __: tuple, output: Tensor) -> None:
            followers.setdefault(name, set())
            outputs.append((output, name))

        return hook

    def follow(norm: str) -> Callable:
        def hook(_: nn.Module, given: tuple) -> None:
            for output, name in outputs:
                if given and given[0] is output:
                    followers[name].add(norm)

        return hook

    handles = [layer.module.register_forward_hook(note(layer.name)) for layer in layers]
    norms = {name: module for name, module in model.named_modules() if isinstance(module, _NORMS)}
    handles += [module.register_forward_pre_hook(follow(name)) for name, module in norms.items()]
    with _removed(handles):
        for _ in runner.outputs():
            outputs.clear()
    taken = [norm for found in followers.values() for norm in found]
    watched = {
        name: next(iter(found)) if len(found) == 1 and taken.count(next(iter(found))) == 1 else name
        for name, found in followers.items()
    }
    return Walk(tuple(followers), watched)


def sweep(
    contaminated: nn.Module,
    layers: Sequence[Layer],
    walk: Walk,
    run: Callable[[nn.Module], Any],
    *,
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
        strength: Ridge, relative to the mean energy of a layer's inputs. The guard cuts off ``TAIL`` times as much of a
            channel's values, and as much of the images by a channel's spread.
        guard: Whether to place guards.
        progress: Called before each layer.

    Raises:
        InputError: Weights or inputs of a layer are not finite, or inputs do not go through the network side by side.
    """
    defended = copy.deepcopy(contaminated)
    modules = dict(defended.named_modules())
    fits: dict[str, LayerFit] = {}
    guards: dict[str, Guard] = {}
    clipped: dict[str, float] = {}
    dims = {walk.watched[it.name]: _trailing(it) for it in layers if it.name in walk.watched}

    def fit(layer: Layer) -> Callable:
        def hook(_: nn.Module, given: tuple, output: Tensor) -> Tensor:
            if progress is not None:
                progress(layer.name, len(fits), len(walk.order))
            now, before = _halves(given[0], layer.name)
            moments = Moments(layer, now, before)
            old = layer.matrix().double().cpu().numpy()
            new, kept = moments.fit(old, strength)
            layer.write(torch.from_numpy(new).to(layer.module.weight))
            change = float(np.linalg.norm(new - old) / max(float(np.linalg.norm(old)), 1e-300))
            fits[layer.name] = LayerFit(
                layer.name, layer.kind, layer.units, layer.fan_in, moments.count, kept.mean(axis=0), change, "", 0.0
            )
            return torch.cat([guarded(layer.module, layer.module.forward(now)), output[len(now) :]])

        return hook

    def watch(name: str) -> Callable:
        def hook(_: nn.Module, __: tuple, output: Tensor) -> Tensor:
            now, before = _halves(output, name)
            found = guards[name] = measure(now, dims[name], strength)
            clipped[name] = float(((now < found.low) | (now > found.high)).double().mean())
            return torch.cat([found(now), before])

        return hook

    ours = [Layer(it.name, modules[it.name]) for it in layers]  # pyright: ignore[reportArgumentType]  # a copy of one
    handles = [layer.module.register_forward_hook(fit(layer)) for layer in ours]
    handles += [modules[name].register_forward_hook(watch(name)) for name in dims if guard]
    with _removed(handles):
        run(defended)
    for name, found in guards.items():
        place(modules[name], found)
    return defended, [_with_guard(fits[name], walk.watched[name], clipped) for name in walk.order]


def measure(values: Tensor, dims: int, strength: float) -> Guard:
    """The guard that clean values [images, ..., channels, ...] ask for, with ``dims`` dimensions after the channels."""
    channels = values.movedim(values.dim() - dims - 1, 0).flatten(1)
    low, high = _range(channels, TAIL * strength)
    centre = channels.double().mean(dim=1).to(values)
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


def _trailing(layer: Layer) -> int:
    return 0 if isinstance(layer.module, nn.Linear) else layer.module.weight.dim() - 2


def _halves(values: Tensor, name: str) -> tuple[Tensor, Tensor]:
    if len(values) % 2:
        raise InputError(
            f"the network must treat its inputs one by one along the first dimension; {name} sees {len(values)} at "
            "once; leave this layer out"
        )
    return values[: len(values) // 2], values[len(values) // 2 :]


@contextmanager
def _removed(handles: Sequence[Any]) -> Iterator[None]:
    """Hooks that are gone at the end, whatever happens."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
