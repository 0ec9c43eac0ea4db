"""What the layers of a network see: clean inputs in batches, the order of execution, the rows of one layer."""

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.network.adapter.layers import Layer
from netpurify.network.adapter.span import Span, SpanError

Data = Tensor | Iterable[Any]
"""Clean inputs: one tensor, or anything that gives batches every time it is asked: a list, a ``DataLoader``."""
Forward = Callable[[nn.Module, Any], Any]
"""Calls a model on one batch, for models that want more than ``model(inputs)``."""
BATCH = 32
"""Inputs of a tensor that go through the network at a time."""
_LABELS = ("label", "labels", "target", "targets")


class Halt(BaseException):  # not an error, and nothing for a model's own ``except Exception``
    """What our own hooks raise to leave a pass; it goes through the network as it is."""


class _Done(Halt):
    """The layer has been reached for the last time in this pass; the rest of it is not needed."""


def batches(data: Data, batch: int = BATCH) -> Iterator[Any]:
    """The inputs, batch by batch, labels left out.

    Raises:
        InputError: There is nothing in them, they are not finite, or they can be read only once.
    """
    if isinstance(data, Tensor):
        if not data.dim() or not data.shape[0]:
            raise InputError(f"data must hold at least one clean input; got shape {list(data.shape)}")
        data = data.split(batch)
    if isinstance(data, Iterator) or not isinstance(data, Iterable):
        raise InputError(
            "data must be a tensor, a DataLoader or a list of batches, since every layer reads it once more; got "
            f"{type(data).__name__}; make a list of it, or give a DataLoader"
        )
    empty = True
    for number, found in enumerate(data):
        empty = False
        yield _inputs(found, number)
    if empty:
        raise InputError("data must hold at least one batch of clean inputs; got none")


def _inputs(batch: Any, number: int) -> Any:
    """The inputs of a batch: a tensor as it is, the first of a tuple, a mapping without its labels."""
    if isinstance(batch, Mapping):
        inputs: Any = {name: value for name, value in batch.items() if name not in _LABELS}
    elif isinstance(batch, Sequence) and not isinstance(batch, str) and len(batch):
        inputs = batch[0]
    else:
        inputs = batch
    for value in _tensors(inputs):
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise InputError(f"clean inputs must be finite; batch {number} has NaN or infinite entries; leave them out")
    return inputs


def _tensors(inputs: Any) -> Iterator[Tensor]:
    if isinstance(inputs, Tensor):
        yield inputs
    elif isinstance(inputs, Mapping | list | tuple):
        for value in inputs.values() if isinstance(inputs, Mapping) else inputs:
            yield from _tensors(value)


def digest_of_data(data: Data) -> str:
    """SHA-256 of the inputs' kinds, shapes and bytes, whatever their order and their cut into batches."""
    found = []
    with _quiet(data):
        for inputs in batches(data):
            for value in _tensors(inputs):
                for row in torch.atleast_1d(value.detach().cpu()).contiguous():
                    content = row.reshape(-1).view(torch.uint8).numpy().tobytes() if row.numel() else b""
                    found.append(hashlib.sha256(f"{row.dtype}{list(row.shape)}".encode() + content).digest())
    return hashlib.sha256(b"".join(sorted(found))).hexdigest()


class Runner:
    """Runs a network on the clean inputs, in evaluation mode, without gradients, and leaves nothing behind."""

    def __init__(self, model: nn.Module, data: Data, *, forward: Forward | None = None, batch: int = BATCH) -> None:
        """``model`` must be a copy of the caller's: it is switched to evaluation."""
        self._model = model.eval()
        self._data = data
        self._forward = forward
        self._batch = batch
        first = next(model.parameters(), None)
        self._device = torch.device("cpu") if first is None else first.device
        self._dtype = torch.float32 if first is None or not first.is_floating_point() else first.dtype

    def with_data(self, data: Data, model: nn.Module | None = None) -> "Runner":
        """A runner that runs this network, or another one, on other data in the same way."""
        return Runner(model or self._model, data, forward=self._forward, batch=self._batch)

    def inputs(self) -> list[Any]:
        """The clean inputs, batch by batch, read once; labels left out."""
        with _quiet(self._data):
            return list(batches(self._data, self._batch))

    def outputs(self) -> Iterator[Tensor | None]:
        """The network's output for each batch, as a tensor if there is one in it.

        A copy: a network may give a tensor of its own, and write it over when it is called again.
        """
        with _quiet(self._data):
            for inputs in batches(self._data, self._batch):
                found = _first_tensor(self._call(inputs))
                yield None if found is None else found.clone()

    def order(self, layers: Sequence[Layer]) -> dict[str, int]:
        """Names of the layers that the inputs reach, in the order of execution, and how often a batch does at most."""
        most: dict[str, int] = {}
        calls: dict[str, int] = {}

        def note(layer: Layer) -> Callable:
            def hook(*_: object) -> None:
                calls[layer.name] = calls.get(layer.name, 0) + 1

            return hook

        with _quiet(self._data), _hooked([(layer.module, note(layer)) for layer in layers]):
            for inputs in batches(self._data, self._batch):
                calls.clear()
                self._call(inputs)
                most |= {name: max(count, most.get(name, 0)) for name, count in calls.items()}
        return most

    def spans(self, layers: Sequence[Layer], *, calls: int | None = None) -> dict[str, list[Span] | SpanError]:
        """What the inputs of the layers span, group by group, in one pass over the data.

        Args:
            layers: Layers to watch.
            calls: If there is one layer only, how often a batch calls it at most: what comes after is not run.

        Returns:
            For each layer one span per group, or the reason why there is none.
        """
        found: dict[str, list[Span] | SpanError] = {
            layer.name: [Span(layer.fan_in, torch.finfo(layer.module.weight.dtype).eps) for _ in range(layer.groups)]
            for layer in layers
        }
        seen = dict.fromkeys(found, 0)

        def watch(layer: Layer) -> Callable:
            def hook(_: nn.Module, given: tuple, named: dict[str, Any]) -> None:
                inputs = given[0] if given else named["input"]
                spans = found[layer.name]
                if isinstance(spans, list):
                    try:
                        for part in layer.pieces(inputs.detach()):
                            for span, rows in zip(spans, layer.rows(part), strict=True):
                                span.add(rows)
                    except SpanError as error:
                        found[layer.name] = error
                seen[layer.name] += 1
                if calls is not None and seen[layer.name] >= calls:
                    raise _Done

            return hook

        with _quiet(self._data), _hooked([(layer.module, watch(layer)) for layer in layers]):
            for inputs in batches(self._data, self._batch):
                seen.update(dict.fromkeys(seen, 0))
                try:
                    self._call(inputs)
                except _Done:
                    continue
        return found

    def _call(self, inputs: Any) -> Any:
        moved = self._move(inputs)
        try:
            if self._forward is not None:
                return self._forward(self._model, moved)
            return self._model(**moved) if isinstance(moved, Mapping) else self._model(moved)
        except (InputError, KeyboardInterrupt, Halt):
            raise
        except BaseException as error:  # a network that ends itself (SystemExit, GeneratorExit) must not end the caller
            shapes = [list(value.shape) for value in _tensors(moved)]
            raise InputError(
                f"the model must accept the clean inputs; called with {shapes or type(moved).__name__} it raised "
                f"{type(error).__name__}: {error}; give inputs of the right shape, or a forward function"
            ) from error

    def _move(self, inputs: Any) -> Any:
        """The inputs where the model is; a copy, since a model may work in place."""
        if isinstance(inputs, Tensor):
            return inputs.to(self._device, self._dtype if inputs.is_floating_point() else None, copy=True)
        if isinstance(inputs, Mapping):
            return {name: self._move(value) for name, value in inputs.items()}
        return [self._move(value) for value in inputs] if isinstance(inputs, list) else inputs


def _first_tensor(output: Any) -> Tensor | None:
    if isinstance(output, Tensor):
        return output
    parts = output.values() if isinstance(output, Mapping) else output if isinstance(output, list | tuple) else ()
    named = getattr(output, "logits", None)
    return named if isinstance(named, Tensor) else next((part for part in parts if isinstance(part, Tensor)), None)


@contextmanager
def _quiet(data: Data) -> Iterator[None]:
    """No gradients, and the caller's random numbers as they were, those of a loader too.

    A loader that shuffles or augments draws from them; so every pass sees the same inputs in the same order.
    """
    own = getattr(data, "generator", None) or getattr(getattr(data, "sampler", None), "generator", None)
    own = own if isinstance(own, torch.Generator) else torch.Generator()
    state = own.get_state()
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002  # augmentations still draw from it
    try:
        with torch.random.fork_rng(), torch.no_grad():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        own.set_state(state)


@contextmanager
def _hooked(hooks: Sequence[tuple[nn.Module, Callable]]) -> Iterator[None]:
    """Hooks before the modules' calls, gone at the end whatever happens."""
    handles: list[Any] = []
    try:
        for module, hook in hooks:
            handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
