"""How clean inputs go through a network: which layers can be fitted in one pass, and what each guard watches."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from netpurify.network.adapter.capture import Runner
from netpurify.network.adapter.layers import Layer

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True, slots=True)
class Trace:
    """How inputs go through a network.

    Attributes:
        order: Names of the layers to fit, in the order of execution.
        watched: By the layer's name, the module whose output the layer's guard watches: a BatchNorm, if it is the only
            one that takes the layer's output and takes nothing else; otherwise the layer itself.
        left_out: Why the other layers cannot be fitted, by their names.
        output: The network's output, if it is a tensor.
    """

    order: tuple[str, ...]
    watched: Mapping[str, str]
    left_out: Mapping[str, str]
    output: Tensor | None


def trace(model: nn.Module, runner: Runner, layers: Sequence[Layer], *, inputs: int) -> Trace:
    """Follow one batch of clean inputs through a network.

    Args:
        model: The network.
        runner: Runs it on the batch.
        layers: The layers that are to be fitted if they can be.
        inputs: How many inputs the batch has.
    """
    calls = _Calls()
    handles = [calls.watch_layer(layer) for layer in layers]
    handles += [calls.watch_norm(name, module) for name, module in model.named_modules() if isinstance(module, _NORMS)]
    with removing(handles):
        (output,) = runner.outputs()
    reasons = {layer.name: calls.reason_against(layer.name, inputs) for layer in layers}
    order = tuple(name for name in calls.count if not reasons[name])
    watched = {name: calls.only_norm(name) or name for name in order}
    return Trace(order, watched, {name: reason for name, reason in reasons.items() if reason}, output)


class _Calls:
    """What hooks note of the calls of layers and norms.

    Attributes:
        count: How often each layer was called, in the order of the first call.
    """

    def __init__(self) -> None:
        self.count: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        self._sources: dict[str, list[str]] = {}
        """By the name of a norm, the layers whose output it took, call by call; empty for anything else."""
        # Weak references, so that no more activations are held than the network itself holds. The version tells
        # whether a tensor was changed in place since: after an in-place ReLU it is still the same object.
        self._outputs: list[tuple[weakref.ref[Tensor], int, str]] = []

    def watch_layer(self, layer: Layer) -> Any:
        """Note every call of a layer, and its output; gives the hook's handle."""

        def hook(_: nn.Module, given: tuple, named: dict[str, Any], output: Tensor) -> None:
            self.count[layer.name] = self.count.get(layer.name, 0) + 1
            taken = first_argument(given, named)
            self._lengths[layer.name] = len(taken) if taken.dim() else 0
            self._outputs.append((weakref.ref(output), _version(output), layer.name))

        return layer.module.register_forward_hook(hook, with_kwargs=True)

    def watch_norm(self, name: str, norm: nn.Module) -> Any:
        """Note which layer's output a norm takes; gives the hook's handle."""

        def hook(_: nn.Module, given: tuple, named: dict[str, Any]) -> None:
            taken = first_argument(given, named)
            sources = (
                layer for output, version, layer in self._outputs if output() is taken and _version(taken) == version
            )
            self._sources.setdefault(name, []).append(next(sources, ""))

        return norm.register_forward_pre_hook(hook, with_kwargs=True)

    def only_norm(self, layer: str) -> str | None:
        """The norm that takes this layer's output, if it is the only one and was called only once."""
        norms = [norm for norm, sources in self._sources.items() if layer in sources]
        return norms[0] if len(norms) == 1 and len(self._sources[norms[0]]) == 1 else None

    def reason_against(self, layer: str, inputs: int) -> str:
        """Why a layer cannot be fitted; empty if it can."""
        calls, length = self.count.get(layer, 0), self._lengths.get(layer, 0)
        if not calls:
            return "the clean inputs never reach it"
        if calls > 1:
            return f"one pass calls it {calls} times"
        if not length or length % inputs:
            return f"it sees {length} along the first dimension where {inputs} inputs go through, so not one by one"
        return ""


def first_argument(given: tuple, named: Mapping[str, Any]) -> Tensor:
    """The input of a layer or norm, which may be given by position or by name."""
    return given[0] if given else named["input"]


@contextmanager
def removing(handles: Sequence[Any]) -> Iterator[None]:
    """Remove hooks at the end, whatever happens."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _version(output: Tensor) -> int:
    # Torch has no public name for a tensor's version counter, by which autograd notices in-place changes.
    return 0 if output.is_inference() else output._version
