"""A network made ready to be purified: a copy, its layers, the clean inputs, the initial weights. Written once."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.errors import InputError
from netpurify.network.adapter.admission import (
    duplicate,
    require_unquantised,
    require_values,
    unwrapped,
)
from netpurify.network.adapter.capture import BATCH, Data, Forward, Runner, digest_of_data
from netpurify.network.adapter.grid import HalfGrid, as_stored, in_float32, without_rounding
from netpurify.network.adapter.layers import Layer
from netpurify.network.adapter.names import under_names_of
from netpurify.network.adapter.reference import (
    Initial,
    Skipped,
    differs,
    initial_dtypes,
    reference_matrix,
    require_layers,
    resolve,
    sort_layers,
    ties,
    unreached,
)
from netpurify.network.adapter.span import Span, SpanError
from netpurify.network.adapter.weights import Array, Weights, to_tensor
from netpurify.network.comparison.records import TensorComparison


@dataclass(slots=True)
class Network:
    """A copy of the caller's network that may be changed, and everything that purifying it needs.

    Attributes:
        model: The copy, in evaluation mode; what came in half precision is computed in float32.
        data: The clean inputs.
        runner: Runs the copy on the clean inputs.
        initial: The initial weights; ``None`` if there are none.
        contaminated: The weights as they came.
        layers: The layers that can be written as regressions; after ``in_order``, those that clean inputs reach.
        skipped: Everything else that has weights, with the reason.
        chosen: Names of the layers that were asked for; ``None`` for all.
        calls: How often a batch calls each layer at most, by name; known after ``in_order``.
        frozen: Names of layers that were never trained, as far as a comparison of their tensors has shown.
        rounded_away: Whether that comparison has shown a tensor whose training was mostly rounded away.
        compared_layers: The tensors of the layers beside their initial values, if they were compared.
    """

    model: nn.Module
    data: Data
    runner: Runner
    initial: dict[str, Tensor] | None
    contaminated: dict[str, Tensor]
    layers: list[Layer]
    skipped: list[Skipped]
    chosen: list[str] | None
    calls: dict[str, int] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    rounded_away: bool = False
    compared_layers: "tuple[TensorComparison, ...]" = ()
    _modes: dict[str, bool] = field(default_factory=dict)
    _dtypes: dict[str, torch.dtype] = field(default_factory=dict)
    _exact: set[str] = field(default_factory=set)

    def require_layers(self, purpose: str) -> None:
        """Refuse a network of which nothing can be examined: it would come back as if all were well.

        Raises:
            InputError: There is no layer; the message says why.
        """
        require_layers(self.layers, self.skipped, purpose)

    def in_order(self) -> list[Layer]:
        """The layers in the order of execution; those that no clean input reaches become skipped. One pass, once."""
        if self.calls:
            return self.layers
        self.calls = self.runner.order(self.layers)
        self.skipped += [unreached(layer) for layer in self.layers if layer.name not in self.calls]
        self.layers = [layer for name in self.calls for layer in self.layers if layer.name == name]
        return self.layers

    @property
    def partly_unknown(self) -> bool:
        """Whether a part that is not examined differs from its initial weights, so that its output may be wrong."""
        modules = dict(self.model.named_modules())
        initial = None if self.initial is None else self._comparable()
        owners = (
            part.name if part.name in modules else part.name.rpartition(".")[0]
            for part in self.skipped
            if not part.settled
        )
        return any(differs(modules[name], name, initial) for name in owners)

    def _comparable(self) -> dict[str, Tensor]:
        """The initial weights; those of tensors that came in half precision are rounded as these are in ``model``."""
        comparable = dict(self.initial or {})
        for name in self._dtypes.keys() & comparable.keys():
            if comparable[name].is_floating_point():
                exact = name in self._exact
                comparable[name] = comparable[name].to(torch.float32 if exact else self._dtypes[name]).float()
        return comparable

    def weights(self, layer: Layer) -> Weights:
        """A layer's contaminated and initial weights as matrices."""
        initial = reference_matrix(layer, self.initial)
        came = tuple(self._dtypes.get(name, layer.weight.dtype) for name in layer.tensors)
        base = () if self.initial is None else initial_dtypes(layer, self.initial)
        weights = Weights.of(layer.matrix(), initial, bias=layer.has_bias, grid=HalfGrid(came, base))
        return replace(weights, frozen=layer.name in self.frozen, rounded_away=self.rounded_away)

    def write(self, layer: Layer, matrix: Array) -> None:
        """Set a layer's weights from [groups, fan-in, units of a group]."""
        layer.write(to_tensor(matrix, layer.weight))

    def outputs(self) -> list[Tensor | None]:
        """The network's outputs on the clean inputs, batch by batch; ``None`` where a batch gives no tensor."""
        return [None if output is None else output.detach().cpu() for output in self.runner.outputs()]

    def restore_modes(self, model: nn.Module) -> nn.Module:
        """A network like this one, in the mode (training or evaluation) in which the caller's network came."""
        for name, training in self._modes.items():
            model.get_submodule(name).training = training
        return model

    def rounded(self, model: nn.Module) -> nn.Module:
        """A network like this one, in float32, changed in place to the numbers that it will have as it came."""
        in_float32(as_stored(model, self._dtypes, self.contaminated))
        return model

    def as_it_came(self, model: nn.Module) -> nn.Module:
        """A network like this one, changed in place to the dtypes and the mode in which the caller's network came."""
        return self.restore_modes(as_stored(model, self._dtypes, self.contaminated))


def prepare(
    model: nn.Module,
    data: Data,
    *,
    initial: Initial | None = None,
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = BATCH,
) -> Network:
    """Make a network ready to be purified. Arguments are those of ``purify``.

    Raises:
        InputError: An argument does not fit.
    """
    if isinstance(layers, str):
        raise InputError(f"layers must be a collection of names; got the single string {layers!r}; give [{layers!r}]")
    if batch < 1:
        raise InputError(f"batch must be at least 1; got {batch}")
    copy = duplicate(model)
    contaminated = {name: value.clone() for name, value in resolve(copy).items()}
    dtypes = in_float32(copy)
    modes = {name: module.training for name, module in copy.named_modules()}
    reference = None if initial is None else _fitting(initial, copy)
    if isinstance(initial, nn.Module | Mapping) and reference is not None:  # the caller may go on training it
        reference = {name: value.clone() for name, value in reference.items()}
    chosen = None if layers is None else list(layers)
    # Before any input goes through: a pass would fill lazy layers with random weights.
    known, skipped = sort_layers(copy, reference, chosen, ties(unwrapped(model)))
    examined = {tensor for layer in known for tensor in layer.tensors}
    exact = without_rounding(copy, dtypes, reference or {}, examined)
    return Network(
        model=copy,
        data=data,
        runner=Runner(copy, data, forward=forward, batch=batch),
        initial=reference,
        contaminated=contaminated,
        layers=known,
        skipped=skipped,
        chosen=chosen,
        _modes=modes,
        _dtypes=dtypes,
        _exact=exact,
    )


def _fitting(initial: Initial, model: nn.Module) -> dict[str, Tensor]:
    """The initial weights under the model's names: files may have or lack a prefix."""
    if isinstance(initial, nn.Module):
        require_values(initial, "the initial network")
    given = initial.state_dict() if isinstance(initial, nn.Module) else initial
    if isinstance(given, Mapping):  # before the resolved ones, from which packed values that are no tensors are gone
        require_unquantised(given, "the initial weights")
    found = resolve(given)
    require_unquantised(found, "the initial weights")
    return under_names_of(model, found)


def capture(network: Network, layer: Layer) -> list[Span]:
    """What a layer's clean inputs span, group by group, as they come through the network in its present state.

    Raises:
        SpanError: The inputs cannot be used: they are not finite, or too many.
    """
    spans = network.runner.spans([layer], calls=network.calls.get(layer.name))[layer.name]
    if isinstance(spans, SpanError):
        raise spans
    return spans


def provenance(network: Network, purified: nn.Module, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Where a result comes from: digests of weights and data, versions of the libraries, settings."""
    return {
        "model": checkpoint.digest(network.contaminated),
        "initial": None if network.initial is None else checkpoint.digest(network.initial),
        "purified": checkpoint.digest(resolve(purified)),
        "data": digest_of_data(network.data),
        "versions": {name: version(name) for name in ("netpurify", "torch", "numpy", "scipy", "numba")},
        "settings": dict(settings),
    }


def peak_bytes() -> int:
    """Most memory that this process has had so far; 0 where the system does not say."""
    if sys.platform == "win32":  # which does not have the module
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
