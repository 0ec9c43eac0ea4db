"""Running a network on clean inputs: its outputs, the order of its layers, and the inputs of each layer."""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.network.adapter.batches import BATCH, Data, batches, remedy, tensors_in
from netpurify.network.adapter.kinds import Gather, Layer
from netpurify.network.adapter.span import Span, SpanError

Forward = Callable[[nn.Module, Any], Any]
"""Calls a model on one batch, for models that need more than ``model(inputs)``."""


class Halt(BaseException):  # not an Exception, so that a model's own ``except Exception`` does not catch it
    """Raised by our own hooks to leave a pass; the network's code does not catch it."""


class _Done(Halt):
    """The layer was called for the last time in this pass; the rest of the pass is not needed."""


def digest_of_data(data: Data) -> str:
    """SHA-256 of the inputs' dtypes, shapes and bytes; it does not depend on their order or their batches."""
    digests = []
    with _quiet(data):
        for inputs in batches(data):
            for value in tensors_in(inputs):
                for row in torch.atleast_1d(value.detach().cpu()).contiguous():
                    content = row.reshape(-1).view(torch.uint8).numpy().tobytes() if row.numel() else b""
                    digests.append(hashlib.sha256(f"{row.dtype}{list(row.shape)}".encode() + content).digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


class Runner:
    """Runs a network on the clean inputs, in evaluation mode, without gradients, and leaves nothing behind."""

    def __init__(self, model: nn.Module, data: Data, *, forward: Forward | None = None, batch: int = BATCH) -> None:
        """``model`` must be a copy of the caller's network: it is switched to evaluation mode."""
        self._model = model.eval()
        self._data = data
        self._forward = forward
        self._batch = batch
        first = next((value for value in model.parameters() if not value.is_meta), None)
        self._device = torch.device("cpu") if first is None else first.device
        self._dtype = torch.float32 if first is None or not first.is_floating_point() else first.dtype

    @property
    def forward(self) -> Forward | None:
        """What calls the network on a batch; ``None`` for ``model(inputs)``."""
        return self._forward

    def with_data(self, data: Data, model: nn.Module | None = None) -> "Runner":
        """A runner that runs this network, or another one, on other data in the same way."""
        return Runner(model or self._model, data, forward=self._forward, batch=self._batch)

    def inputs(self) -> list[Any]:
        """The clean inputs as a list of batches, without labels."""
        with _quiet(self._data):
            return list(batches(self._data, self._batch))

    def outputs(self) -> Iterator[Tensor | None]:
        """The network's output for each batch: the first tensor in it, or ``None``.

        It is a copy, because a network may return a tensor that it overwrites in its next call.
        """
        with _quiet(self._data):
            for inputs in batches(self._data, self._batch):
                output = first_tensor(self._call(inputs))
                yield None if output is None else output.clone()

    def order(self, layers: Sequence[Layer]) -> dict[str, int]:
        """Layers that the inputs reach, in the order of execution, each with the most calls that one batch makes."""
        most: dict[str, int] = {}
        calls: dict[str, int] = {}

        def note(layer: Layer) -> Callable:
            def hook(*_: object) -> None:
                calls[layer.name] = calls.get(layer.name, 0) + 1

            return hook

        watched = [(module, note(layer)) for layer in layers for module, _ in layer.watch()]
        with _quiet(self._data), _hooked(watched):
            for inputs in batches(self._data, self._batch):
                calls.clear()
                self._call(inputs)
                most |= {name: max(count, most.get(name, 0)) for name, count in calls.items()}
        return most

    def spans(self, layers: Sequence[Layer], *, calls: int | None = None) -> dict[str, list[Span] | SpanError]:
        """The span of each layer's inputs, group by group, in one pass over the data.

        Args:
            layers: Layers to watch.
            calls: For a single layer, how often a batch calls it at most: the network is not run beyond that call.

        Returns:
            For each layer one span per group, or the reason why there is none.
        """
        captured: dict[str, list[Span] | SpanError] = {layer.name: layer.spans() for layer in layers}
        seen = dict.fromkeys(captured, 0)

        def watch(layer: Layer, gather: Gather) -> Callable:
            def hook(_: nn.Module, given: tuple, named: dict[str, Any]) -> None:
                spans = captured[layer.name]
                if isinstance(spans, list):
                    try:
                        gather(spans, given, named)
                    except SpanError as error:
                        captured[layer.name] = error
                seen[layer.name] += 1
                if calls is not None and seen[layer.name] >= calls:
                    raise _Done

            return hook

        watched = [(module, watch(layer, gather)) for layer in layers for module, gather in layer.watch()]
        with _quiet(self._data), _hooked(watched):
            for inputs in batches(self._data, self._batch):
                seen.update(dict.fromkeys(seen, 0))
                try:
                    self._call(inputs)
                except _Done:
                    continue
        return captured

    def _call(self, inputs: Any) -> Any:
        moved = self._move(inputs)
        try:
            if self._forward is not None:
                return self._forward(self._model, moved)
            return self._model(**moved) if isinstance(moved, Mapping) else self._model(moved)
        except (InputError, KeyboardInterrupt, Halt):
            raise
        except BaseException as error:  # a network that ends itself (SystemExit, GeneratorExit) must not end the caller
            shapes = [list(value.shape) for value in tensors_in(moved)]
            raise InputError(
                f"the model must accept the clean inputs; called with {shapes or type(moved).__name__} it raised "
                f"{type(error).__name__}: {error}; {remedy(error)}"
            ) from error

    def _move(self, inputs: Any) -> Any:
        """A copy of the inputs on the model's device, in its dtype; a copy, because a model may change its input."""
        if isinstance(inputs, Tensor):
            return inputs.to(self._device, self._dtype if inputs.is_floating_point() else None, copy=True)
        if isinstance(inputs, Mapping):
            return {name: self._move(value) for name, value in inputs.items()}
        return [self._move(value) for value in inputs] if isinstance(inputs, list) else inputs


def first_tensor(output: Any) -> Tensor | None:
    """The first tensor of what a network returns, or its ``logits``; ``None`` if there is none."""
    if isinstance(output, Tensor):
        return output
    values = output.values() if isinstance(output, Mapping) else output if isinstance(output, list | tuple) else ()
    logits = getattr(output, "logits", None)
    return (
        logits if isinstance(logits, Tensor) else next((value for value in values if isinstance(value, Tensor)), None)
    )


@contextmanager
def _quiet(data: Data) -> Iterator[None]:
    """Compute no gradients, and restore the state of all random generators at the end, those of a loader too.

    A loader that shuffles or augments draws from them; so every pass sees the same inputs in the same order. Torch's
    fast path for attention is off: it calls no layer within a ``TransformerEncoderLayer``, so no hook would see one.
    """
    loader = getattr(data, "generator", None) or getattr(getattr(data, "sampler", None), "generator", None)
    loader = loader if isinstance(loader, torch.Generator) else torch.Generator()
    state = loader.get_state()
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002  # augmentations still draw from this generator
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.random.fork_rng(), torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        loader.set_state(state)


@contextmanager
def _hooked(hooks: Sequence[tuple[nn.Module, Callable]]) -> Iterator[None]:
    """Register hooks that run before each module's call, and remove them at the end, whatever happens."""
    handles: list[Any] = []
    try:
        for module, hook in hooks:
            handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
