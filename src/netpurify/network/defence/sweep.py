"""One sweep of the defence: layer by layer in the order of execution, each fitted to what it used to do."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from netpurify.network.capture import Runner
from netpurify.network.defence.guard import Guard, Tails, place
from netpurify.network.defence.moments import Moments
from netpurify.network.layers import Layer

Progress = Callable[[str, int, int], None]
TAIL = 0.1
"""Share of a channel's clean values that the guard cuts off at either end, for a strength of 1."""
_MOST = 0.45
"""Largest share of anything that the guard cuts off."""
_ROWS = 20
"""Rows for each coordinate of the fan-in that decide a layer's fit; patches of one image repeat each other."""
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True, slots=True)
class Walk:
    """How the clean inputs go through a network.

    Attributes:
        layers: The layers that are to be fitted, in the order of execution.
        calls: How often a batch calls a layer at most, by name.
        rows: Rows of all clean inputs, by name.
        watched: What the guard of a layer watches over: the BatchNorm that alone takes the layer's output, else the
            layer itself. By the layer's name.
    """

    layers: tuple[Layer, ...]
    calls: Mapping[str, int]
    rows: Mapping[str, int]
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


def look(model: nn.Module, runner: Runner, known: Sequence[Layer]) -> Walk:
    """How the clean inputs go through a network; one pass.

    Args:
        model: The network.
        runner: Runs it on the clean inputs.
        known: The layers that can be fitted.
    """
    calls = runner.order(known)
    layers = tuple(layer for name in calls for layer in known if layer.name == name)
    norms = {name: module for name, module in model.named_modules() if isinstance(module, _NORMS)}
    rows = dict.fromkeys(calls, 0)
    followers: dict[str, set[str]] = {name: set() for name in calls}
    outputs: list[tuple[Tensor, str]] = []

    def note(layer: Layer) -> Callable:
        def hook(_: nn.Module, __: tuple, output: Tensor) -> None:
            rows[layer.name] += output.numel() // layer.units
            outputs.append((output, layer.name))

        return hook

    def follow(norm: str) -> Callable:
        def hook(_: nn.Module, given: tuple) -> None:
            for output, name in outputs:
                if given and given[0] is output:
                    followers[name].add(norm)

        return hook

    handles = [layer.module.register_forward_hook(note(layer)) for layer in layers]
    handles += [module.register_forward_pre_hook(follow(name)) for name, module in norms.items()]
    try:
        for _ in runner.outputs():
            outputs.clear()
    finally:
        for handle in handles:
            handle.remove()
    alone = [next(iter(found)) for found in followers.values() if len(found) == 1]
    watched = {
        name: next(iter(found)) if len(found) == 1 and alone.count(next(iter(found))) == 1 else name
        for name, found in followers.items()
    }
    return Walk(layers, calls, rows, watched)


def sweep(
    contaminated: Runner,
    before: Mapping[str, Layer],
    purified: Runner,
    model: nn.Module,
    walk: Walk,
    *,
    strength: float,
    guard: bool,
    progress: Progress | None = None,
) -> list[LayerFit]:
    """Fit every layer of ``model`` in place, and place the guards.

    Args:
        contaminated: Runs the contaminated network.
        before: Its layers, by name.
        purified: Runs the network that is being purified.
        model: That network; it comes with the contaminated weights.
        walk: How inputs go through it; its layers are those of ``model``.
        strength: Ridge, relative to the mean energy of a layer's inputs. The guard cuts off ``TAIL`` times as much of a
            channel's values, and as much of the images by a channel's spread.
        guard: Whether to place guards.
        progress: Called before each layer.
    """
    fits = []
    modules = dict(model.named_modules())
    for number, layer in enumerate(walk.layers):
        if progress is not None:
            progress(layer.name, number, len(walk.layers))
        calls = walk.calls[layer.name]
        moments = _moments(contaminated, before[layer.name], purified, layer, calls, walk.rows[layer.name])
        old = layer.matrix().double().cpu().numpy()
        new, kept = moments.fit(old, strength)
        layer.write(torch.from_numpy(new).to(layer.module.weight))
        guarded, clipped = "", 0.0
        if guard:
            guarded = walk.watched[layer.name]
            clipped = _guard(purified, modules[guarded], layer, calls, walk.rows[layer.name], strength)
        change = float(np.linalg.norm(new - old) / max(float(np.linalg.norm(old)), 1e-300))
        fits.append(
            LayerFit(
                layer.name,
                layer.kind,
                layer.units,
                layer.fan_in,
                moments.count,
                kept.mean(axis=0),
                change,
                guarded,
                clipped,
            )
        )
    return fits


def _moments(contaminated: Runner, old: Layer, purified: Runner, new: Layer, calls: int, rows: int) -> Moments:
    """Second moments of what both networks' layers see, of every so many-th row, chosen by its position."""
    moments = Moments(new.groups, new.fan_in)
    every = max(1, rows // (_ROWS * max(new.fan_in, 1000)))
    every += 1 - every % 2  # odd, so that it does not fall in step with the width of images
    for inputs in purified.batches():
        ours = purified.seen(new.module, inputs, calls=calls)
        theirs = contaminated.seen(old.module, inputs, calls=calls)
        for now, before in zip(ours, theirs, strict=True):
            for part, other in zip(new.parts(now), old.parts(before), strict=True):
                moments.add(new.rows(part)[:, ::every], old.rows(other)[:, ::every])
    return moments


def _guard(runner: Runner, module: nn.Module, layer: Layer, calls: int, rows: int, strength: float) -> float:
    """Place a guard, and give the share of clean values that its range cuts off."""
    dims = 0 if isinstance(layer.module, nn.Linear) else layer.module.weight.dim() - 2

    def outputs() -> Iterator[Tensor]:
        """What the module gives, [images, channels, ...]."""
        for inputs in runner.batches():
            for output in runner.seen(module, inputs, calls=calls, given=True):
                yield output.reshape(-1, *output.shape[output.dim() - dims - 1 :])

    beyond = math.floor(min(TAIL * strength, _MOST) * rows)
    tails, total, images = Tails(beyond), torch.zeros(()), 0
    for output in outputs():
        values = output.movedim(1, 0).flatten(1)
        tails.add(values)
        total = total + values.double().sum(dim=1)
        images += len(output)
    low, high = tails.range()
    low, high, centre = (value.to(low).reshape(-1, *[1] * dims) for value in (low, high, total / rows))
    guard = Guard(low, high, centre, torch.full_like(low, torch.inf))
    if dims:
        spreads = Tails(math.floor(min(strength, _MOST) * images))
        for output in outputs():
            spreads.add((guard(output) - centre).square().flatten(2).mean(dim=2).sqrt().T)
        guard.spread = spreads.range()[1].reshape(low.shape)
    place(module, guard)
    return 2.0 * beyond / max(rows, 1)
