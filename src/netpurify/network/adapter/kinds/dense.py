"""Layers whose rows are the vectors that they are called with: Linear, Conv1D of transformers, Bilinear."""

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from netpurify.network.adapter.kinds.layer import Layer, Rows, register_layer


@register_layer
class DenseLayer(Layer):
    """A Linear layer: a row for each vector that it is called with."""

    modules = (nn.Linear,)

    def input_rows(self, inputs: Tensor) -> Tensor:  # noqa: D102
        return inputs.reshape(1, -1, inputs.shape[-1])


@register_layer
class TransposedDenseLayer(Layer):
    """The ``Conv1D`` of transformers, of which GPT-2 is made: a Linear layer whose weight is [inputs, units]."""

    modules = ()
    layout = "transposed"

    @classmethod
    def bases(cls) -> tuple[type[nn.Module], ...]:
        """The class, if the program has loaded transformers; if it has not, it has no such module either."""
        found = getattr(sys.modules.get("transformers.pytorch_utils"), "Conv1D", None)
        return (found,) if isinstance(found, type) else ()

    def input_rows(self, inputs: Tensor) -> Tensor:  # noqa: D102
        return inputs.reshape(1, -1, inputs.shape[-1])


@register_layer
class BilinearLayer(Layer):
    """A Bilinear layer: a row for each pair of vectors, with the products of all their entries."""

    modules = (nn.Bilinear,)
    called_alone = False

    def seen(self, given: tuple, named: dict[str, Any]) -> Iterator[Rows]:  # noqa: D102
        first, second = (
            (given[place] if len(given) > place else named[f"input{place + 1}"]).detach().flatten(0, -2)
            for place in (0, 1)
        )
        for a, b in zip(first.split(1024), second.split(1024), strict=True):  # the products take a lot of memory
            yield (a[:, :, None] * b[:, None, :]).reshape(1, len(a), -1)

    def input_rows(self, inputs: Tensor) -> Tensor:
        """The products, for inputs that are two vectors one after the other: [..., first and second]."""
        first = self.module.in1_features
        pieces = self.seen((inputs[..., :first], inputs[..., first:]), {})
        return torch.cat([torch.stack(tuple(rows)) for rows in pieces], dim=1)
