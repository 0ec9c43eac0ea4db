"""The projections of ``nn.MultiheadAttention``: of the queries, keys and values, and of the output."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from netpurify.network.adapter.form import Form
from netpurify.network.adapter.kinds.layer import Layer, Rows, register_layer

_ARGUMENTS = ("query", "key", "value")


@register_layer
@dataclass(frozen=True, slots=True)
class AttentionProjection(Layer):
    """A projection of queries, keys or values; if one weight has all three, they are the three groups of one layer.

    Attributes:
        part: Name of the weight within the module.
    """

    part: str = "in_proj_weight"

    modules = (nn.MultiheadAttention,)
    called_alone = False

    @classmethod
    def weight_names(cls, module: nn.Module) -> tuple[str, ...]:  # noqa: D102
        together = getattr(module, "_qkv_same_embed_dim", True)
        return ("in_proj_weight",) if together else ("q_proj_weight", "k_proj_weight", "v_proj_weight")

    @classmethod
    def parts(cls, name: str, module: nn.Module) -> tuple[Layer, ...]:
        """The projections of the inputs, then that of the output."""
        prefix = f"{name}." if name else ""
        inputs = [cls(prefix + part.removesuffix("_weight"), module, part=part) for part in cls.weight_names(module)]
        output = module.get_submodule("out_proj")
        if type(output).forward is not nn.Linear.forward or "weight" not in output._parameters:
            return tuple(inputs)
        return *inputs, AttentionOutput(f"{prefix}out_proj", output, attention=module)

    @property
    def groups(self) -> int:  # noqa: D102
        return 3 if self.part == "in_proj_weight" else 1

    @property
    def form(self) -> Form:  # noqa: D102
        prefix = self.name.removesuffix(self.part.removesuffix("_weight"))
        biases = (f"{prefix}in_proj_bias",) if self.module.in_proj_bias is not None and not self.without_bias else ()
        first = 0 if self.groups == 3 else self.module.embed_dim * "qkv".index(self.part[0])
        return Form(prefix + self.part, biases, groups=self.groups, first=first, tied=self.tied)

    def seen(self, given: tuple, named: dict[str, Any]) -> Iterator[Rows]:
        """A row for each query, key and value."""
        inputs = [given[place] if len(given) > place else named[name] for place, name in enumerate(_ARGUMENTS)]
        chosen = inputs if self.groups == 3 else [inputs["qkv".index(self.part[0])]]
        yield [values.detach().reshape(-1, values.shape[-1]) for values in chosen]

    def input_rows(self, inputs: Tensor) -> Tensor:
        """The rows if queries, keys and values are the same."""
        return inputs.reshape(1, -1, inputs.shape[-1]).expand(self.groups, -1, -1)


@dataclass(frozen=True, slots=True)
class AttentionOutput(Layer):
    """The projection of an attention's output. Torch never calls it as a module, so the attention itself is watched.

    Attributes:
        attention: The attention that it belongs to.
    """

    attention: Any = None

    modules = ()
    called_alone = False

    @property
    def watched(self) -> nn.Module:  # noqa: D102
        return self.attention

    @property
    def kind(self) -> str:  # noqa: D102
        return type(self.attention).__name__

    def seen(self, given: tuple, named: dict[str, Any]) -> Iterator[Rows]:
        """What torch's own attention gives for this call if its output is projected by the identity."""
        attention = copy.copy(self.attention)
        size = self.module.in_features
        identity = nn.Linear(size, size, bias=False, device="meta")
        weight = self.module.weight
        identity.weight = nn.Parameter(torch.eye(size, dtype=weight.dtype, device=weight.device), requires_grad=False)
        attention._modules = {**self.attention._modules, "out_proj": identity}
        output, _ = attention.forward(*given, **named)
        yield self.input_rows(output.detach())

    def input_rows(self, inputs: Tensor) -> Tensor:
        """A row for each vector that is projected."""
        return inputs.reshape(1, -1, inputs.shape[-1])
