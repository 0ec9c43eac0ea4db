"""Tied weights: one tensor that several modules use. The rows of all its uses explain its change together."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from netpurify.network.adapter.form import Form
from netpurify.network.adapter.kinds.embedding import EmbeddingLayer
from netpurify.network.adapter.kinds.layer import Gather, Layer, with_biases
from netpurify.network.adapter.span import Span


@dataclass(frozen=True, slots=True)
class SharedLayer(Layer):
    """Layers that share a weight, as one layer: the rows of all of them are its rows, and each bias is a coordinate.

    Attributes:
        uses: The layers. The first gives its name, its module and its kind.
    """

    uses: tuple[Layer, ...] = ()

    modules = ()
    called_alone = False

    @property
    def groups(self) -> int:  # noqa: D102
        return self.uses[0].groups

    @property
    def form(self) -> Form:  # noqa: D102
        biases = {id(value): name for use in reversed(self.uses) for name, value in _biases(use).items()}
        return replace(self.uses[0].form, biases=tuple(sorted(biases.values())), tied=self.tied)

    @property
    def parameters(self) -> Mapping[str, Tensor]:  # noqa: D102
        known = {name: value for use in self.uses for name, value in use.parameters.items()}
        return {name: known[name] for name in self.form.tensors}

    def spans(self) -> list[Span]:  # noqa: D102
        return self.uses[0].spans() if isinstance(self.uses[0], EmbeddingLayer) else Layer.spans(self)

    def watch(self) -> list[tuple[nn.Module, Gather]]:  # noqa: D102
        if isinstance(self.uses[0], EmbeddingLayer):
            return [(use.watched, use.gather) for use in self.uses]
        return [(use.watched, partial(self._gather, use)) for use in self.uses]

    def _gather(self, use: Layer, spans: Sequence[Span], given: tuple, named: dict[str, Any]) -> None:
        biases = list(self.parameters.values())[1:]
        own = (
            None
            if use.free_bias
            else next(
                (place for place, bias in enumerate(biases) for value in _biases(use).values() if bias is value), None
            )
        )
        for groups in use.seen(given, named):
            for span, rows in zip(spans, groups, strict=True):
                span.add(with_biases(rows, len(biases), own))

    def asked_for(self, names: Collection[str]) -> bool:  # noqa: D102
        return any(use.asked_for(names) for use in self.uses)

    def input_rows(self, inputs: Tensor) -> Tensor:
        """The rows of a call of the first use."""
        return self.uses[0].input_rows(inputs)


def join_shared(
    model: nn.Module, layers: Iterable[Layer], tied: Mapping[str, set[str]]
) -> tuple[list[Layer], list[tuple[Layer, str]]]:
    """The layers, those that share a weight as one, and those that share memory in another way, with the reason.

    Args:
        model: The network.
        layers: Its layers.
        tied: For each parameter by its name, the other parameters that use the same memory, in the caller's network.
    """
    names: dict[int, list[str]] = {}
    for name, value in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(value), []).append(name)
    by_weight: dict[int, list[Layer]] = {}
    for layer in layers:
        by_weight.setdefault(id(layer.weight), []).append(layer)
    joined: list[Layer] = []
    refused: list[tuple[Layer, str]] = []
    for identity, uses in by_weight.items():
        others = set().union(*(tied[use.form.weight] for use in uses))
        reason = _reason(uses, others, names[identity])
        if reason is not None:
            refused += [(use, reason.format(", ".join(sorted(tied[use.form.weight])))) for use in uses]
            continue
        uses = [_without_foreign_bias(use, uses, tied) for use in uses]
        # Where a weight is both an embedding and a Linear layer, the rows are those of the Linear layer. Tokens that an
        # input uses have changed in other directions too, and no fit of theirs is proven.
        chosen = [use for use in uses if not isinstance(use, EmbeddingLayer)] or uses
        first = chosen[0]
        layer = first if len(uses) == 1 else SharedLayer(first.name, first.module, uses=tuple(chosen))
        aliases = tuple(
            (other, name) for name, value in layer.parameters.items() for other in names[id(value)] if other != name
        )
        joined.append(replace(layer, tied=aliases) if aliases else layer)
    return joined, refused


def _reason(uses: Sequence[Layer], others: set[str], same: Sequence[str]) -> str | None:
    """Why layers with one weight cannot be written as regressions together; ``None`` if they can."""
    known = {use.form.weight for use in uses}
    if others - set(same):
        return "its weights are tied with {}, which would change with them, in part or in another shape"
    if others - known:
        return "its weights are tied with {}, whose use of them is not known"
    regressions = [use for use in uses if not isinstance(use, EmbeddingLayer)]
    if len({(use.form.layout, use.groups) for use in regressions}) > 1:
        return "its weights are tied with {}, which uses them in another way"
    if regressions and len(regressions) < len(uses) and regressions[0].form.layout != "plain":
        return "its weights are tied with {}, which uses them in another way"
    return None


def _without_foreign_bias(use: Layer, uses: Sequence[Layer], tied: Mapping[str, set[str]]) -> Layer:
    """The layer, without its bias if a module that does not share the weight uses that bias too."""
    own = {name for other in uses for name in other.form.biases}
    return replace(use, without_bias=True) if any(tied[name] - own for name in use.form.biases) else use


def _biases(layer: Layer) -> dict[str, Tensor]:
    return {name: layer.parameters[name] for name in layer.form.biases}
