"""The paper's network, equation 1: non-overlapping patches, ReLU, sum over patches."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from netpurify.errors import InputError


class PatchCNN(nn.Module):
    """f(x) = p^-1/2 sum_j sum_i beta_j relu(W_j' P_i x), with P_i x the i-th of m patches of k entries.

    With ``classes`` beta becomes a matrix [p, classes] and f gives one score per class. Further hidden layers are
    1x1 convolutions: the same [p, p] layer at every patch, before the sum. With ``bias`` the input of every layer gets
    one more coordinate that is always 1, and its weight is the bias.

    Initial weights, as in Algorithm 1: W_j ~ N(0, I / fan-in), beta ~ N(0, 1); further hidden layers N(0, 2 / fan-in).

    Layers are ``nn.Linear``, so weights are stored [units, fan-in], the transpose of the paper's; ``matrix`` gives the
    paper's.

    Args:
        m: Number of patches.
        k: Entries of a patch.
        p: Filters of every hidden layer.
        classes: Number of classes; ``None`` for the paper's scalar output.
        layers: Number of hidden layers.
        bias: Whether every layer has biases.
        generator: Source of the initial weights.
        dtype: Of the weights. float64 by default: exact recovery to 1e-12 needs its digits.
    """

    def __init__(  # noqa: D107 (the class says it)
        self,
        *,
        m: int,
        k: int,
        p: int,
        classes: int | None = None,
        layers: int = 1,
        bias: bool = False,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        sizes = {"m": m, "k": k, "p": p, "layers": layers} | ({} if classes is None else {"classes": classes})
        for name, size in sizes.items():
            if size < 1 or size != int(size):
                raise InputError(f"{name} must be a whole number, at least 1; got {size}")
        self.m, self.k, self.p, self.classes = m, k, p, classes
        self.hidden = nn.ModuleList(_linear(k if i == 0 else p, p, bias, dtype) for i in range(layers))
        self.output = _linear(p, classes or 1, bias, dtype)
        for i, layer in enumerate(self.layers):
            fan_in = matrix(layer).shape[0]
            variance = 1.0 / fan_in if i == 0 else 1.0 if layer is self.output else 2.0 / fan_in
            draw = torch.randn(fan_in, layer.out_features, generator=generator, dtype=dtype)
            write(layer, math.sqrt(variance) * draw)

    @property
    def layers(self) -> list[nn.Linear]:
        """Hidden layers in forward order, then the output layer."""
        return [*self.hidden, self.output]  # type: ignore[list-item] # ModuleList does not say what it holds

    @property
    def names(self) -> list[str]:
        """Names of the layers, as in ``state_dict`` and in the order of ``layers``."""
        return [*(f"hidden.{i}" for i in range(len(self.hidden))), "output"]

    def patches(self, x: Tensor) -> Tensor:
        """The patches of inputs [n, d], one after the other: [n m, k].

        Raises:
            InputError: x is not [n, m k].
        """
        if x.ndim != 2 or x.shape[1] != self.m * self.k:
            raise InputError(
                f"inputs must be [n, {self.m * self.k}]: m = {self.m} patches of k = {self.k} entries, no rest; "
                f"got {list(x.shape)}; flatten the inputs, or choose m and k with m k = d"
            )
        return x.to(self.output.weight.dtype).reshape(-1, self.k)

    def pool(self, rows: Tensor) -> Tensor:
        """Sum over the patches of each input: [n m, p] -> [n, p]."""
        return rows.reshape(-1, self.m, self.p).sum(1)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs [n], or scores [n, classes]."""
        rows = self.patches(x)
        for layer in self.hidden:
            rows = layer(rows).relu()
        out = self.output(self.pool(rows)) / math.sqrt(self.p)
        return out[:, 0] if self.classes is None else out


def matrix(layer: nn.Linear) -> Tensor:
    """Weights of a layer as in the paper, one unit per column: [fan-in, units]; a bias is the last row."""
    weight = layer.weight.detach()
    return (weight if layer.bias is None else torch.cat([weight, layer.bias.detach()[:, None]], 1)).T


def write(layer: nn.Linear, values: Tensor) -> None:
    """Set the weights of a layer, and its bias if it has one, from a matrix [fan-in, units]."""
    with torch.no_grad():
        layer.weight.copy_(values[: layer.in_features].T)
        if layer.bias is not None:
            layer.bias.copy_(values[layer.in_features])


def with_bias(rows: Tensor, layer: nn.Linear) -> Tensor:
    """Inputs of a layer [n, in], with the coordinate that is always 1 if the layer has a bias: [n, fan-in]."""
    return rows if layer.bias is None else torch.cat([rows, rows.new_ones(rows.shape[0], 1)], 1)


def _linear(inputs: int, outputs: int, bias: bool, dtype: torch.dtype) -> nn.Linear:  # noqa: FBT001
    # Without skip_init nn.Linear would draw from the global generator, which is not ours to move.
    layer: Any = nn.utils.skip_init(nn.Linear, inputs, outputs, bias=bias, dtype=dtype)
    return layer
