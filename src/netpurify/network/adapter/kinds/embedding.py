"""Embeddings: a call changes only the rows of the tokens that it looks up, and these in any way."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from netpurify.network.adapter.form import Form, module_form
from netpurify.network.adapter.kinds.layer import Layer, register_layer
from netpurify.network.adapter.tokens import TokenSpan


@register_layer
class EmbeddingLayer(Layer):
    """An Embedding. Every token is a unit, and its row of the weight the unit's weights.

    Training changes the row of a token that it saw in any direction, and leaves that of any other token as it was. So
    there is no regression: the span only notes which tokens the clean inputs use. The row of ``padding_idx`` is never
    trained.
    """

    modules = (nn.Embedding,)
    called_alone = False

    @classmethod
    def refusal(cls, module: nn.Module) -> str | None:  # noqa: D102
        if getattr(module, "max_norm", None) is not None:
            return "it has max_norm, so that every call rescales rows of its weight"
        return None

    @property
    def form(self) -> Form:  # noqa: D102
        return replace(module_form(self.name, bias=False), tied=self.tied)

    def spans(self) -> list[Any]:
        """What notes the tokens."""
        return [TokenSpan.of(self.weight.shape[1], self.weight.shape[0])]

    def gather(self, spans: Sequence[Any], given: tuple, named: dict[str, Any]) -> None:
        """Note the tokens of one call."""
        tokens = given[0] if given else named["input"]
        spans[0].note(tokens, self.module.padding_idx)

    def input_rows(self, inputs: Tensor) -> Tensor:
        """Not needed: the rows would be as long as the vocabulary, with a single 1."""
        raise NotImplementedError
