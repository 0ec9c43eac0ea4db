"""How clean inputs go through a network: which layers can be fitted in one pass, and what their guards watch over."""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from netpurify.network.adapter.capture import Runner
from netpurify.network.adapter.layers import Layer

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True, slots=True)
class Walk:
    """How inputs go through a network.

    Attributes:
        order: Names of the layers to fit, in the order of execution.
        watched: What the guard of a layer watches over: the BatchNorm that alone takes the layer's output, else the
            layer itself. By the layer's name.
        left: Why the other layers cannot be fitted, by their names.
        output: What the network gives, if it is a tensor.
    """

    order: tuple[str, ...]
    watched: Mapping[str, str]
    left: Mapping[str, str]
    output: Tensor | None


def look(model: nn.Module, runner: Runner, layers: Sequence[Layer], *, inputs: int) -> Walk:
    """How inputs go through a network; one pass.

    Args:
        model: The network.
        runner: Runs it on one batch of clean inputs.
        layers: The layers to fit, if they can be.
        inputs: How many inputs the batch has.
    """
    calls: dict[str, int] = {}
    lengths: dict[str, int] = {}
    takers: dict[str, list[str]] = {}
    # Weak, so that no more activations are held than the network itself holds. The version tells what was worked on in
    # place since: behind an in-place ReLU comes another tensor in all but its identity.
    made: list[tuple[weakref.ref[Tensor], int, str]] = []

    def note(name: str) -> Callable:
        def hook(_: nn.Module, given: tuple, named: dict[str, Any], output: Tensor) -> None:
            calls[name] = calls.get(name, 0) + 1
            taken = given_to(given, named)
            lengths[name] = len(taken) if taken.dim() else 0
            made.append((weakref.ref(output), _version(output), name))

        return hook

    def follow(norm: str) -> Callable:
        def hook(_: nn.Module, given: tuple, named: dict[str, Any]) -> None:
            taken = given_to(given, named)
            found = [name for output, version, name in made if output() is taken and _version(taken) == version]
            takers.setdefault(norm, []).append(found[0] if found else "")

        return hook

    handles = [layer.module.register_forward_hook(note(layer.name), with_kwargs=True) for layer in layers]
    for name, module in model.named_modules():
        if isinstance(module, _NORMS):
            handles.append(module.register_forward_pre_hook(follow(name), with_kwargs=True))
    with removed(handles):
        (output,) = runner.outputs()
    reasons = {layer.name: _reason(calls.get(layer.name, 0), lengths.get(layer.name, 0), inputs) for layer in layers}
    order = tuple(name for name in calls if not reasons[name])
    norms = {name: [norm for norm, taken in takers.items() if name in taken] for name in order}
    alone = {name: found[0] for name, found in norms.items() if len(found) == 1 and len(takers[found[0]]) == 1}
    watched = {name: alone.get(name, name) for name in order}
    return Walk(order, watched, {name: reason for name, reason in reasons.items() if reason}, output)


def given_to(given: tuple, named: Mapping[str, Any]) -> Tensor:
    """What a layer or norm is called with, by place or by name."""
    return given[0] if given else named["input"]


@contextmanager
def removed(handles: Sequence[Any]) -> Iterator[None]:
    """Hooks that are gone at the end, whatever happens."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _version(output: Tensor) -> int:
    return 0 if output.is_inference() else output._version


def _reason(calls: int, length: int, inputs: int) -> str:
    """Why a layer cannot be fitted; empty if it can."""
    if not calls:
        return "the clean inputs never reach it"
    if calls > 1:
        return f"one pass calls it {calls} times"
    if not length or length % inputs:
        return f"it sees {length} along the first dimension where {inputs} inputs go through, so not one by one"
    return ""
