"""Layers as matrices: for every supported layer, rows of its inputs times its weight matrix are its own output.

A layer is ``groups`` independent regressions. Its weight matrix is [groups, fan-in, units of a group], its rows are
[groups, rows, fan-in]; a bias is one more coordinate of the fan-in, the last, whose input is always 1.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.nn.utils import parametrize

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_FLOATS = (torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer that can be written as regressions.

    Attributes:
        name: Its name in the network.
        module: The layer itself.
    """

    name: str
    module: nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d

    @property
    def kind(self) -> str:
        """Name of its class."""
        return type(self.module).__name__

    @property
    def groups(self) -> int:
        """How many regressions, each with its own inputs."""
        return self.module.groups if isinstance(self.module, _CONVOLUTIONS) else 1

    @property
    def units(self) -> int:
        """Units of all groups."""
        return self.module.weight.shape[0]

    @property
    def fan_in(self) -> int:
        """Length of a unit's weight vector, bias included."""
        return self.module.weight[0].numel() + (self.module.bias is not None)

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of its tensors in a state dict: the weight, and the bias if there is one."""
        prefix = f"{self.name}." if self.name else ""
        return (f"{prefix}weight", f"{prefix}bias") if self.module.bias is not None else (f"{prefix}weight",)

    def matrix(self) -> Tensor:
        """Its weights, [groups, fan-in, units of a group]."""
        bias = self.module.bias
        return to_matrix(self.module.weight.detach(), None if bias is None else bias.detach(), self.groups)

    def parts(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """``inputs`` cut into what is best written as rows at a time: patches of many images take a lot of memory."""
        images = isinstance(self.module, _CONVOLUTIONS) and inputs.dim() == self.module.weight.dim()
        return inputs.split(1) if images else (inputs,)

    def rows(self, inputs: Tensor) -> Tensor:
        """What the units see when the layer is called with ``inputs``, [groups, rows, fan-in]."""
        rows = _patches(self.module, inputs) if isinstance(self.module, _CONVOLUTIONS) else _vectors(inputs)
        if self.module.bias is not None:
            rows = torch.cat([rows, rows.new_ones(*rows.shape[:2], 1)], dim=2)
        return rows

    def write(self, matrix: Tensor) -> None:
        """Set its weights from [groups, fan-in, units of a group]."""
        weight, bias = from_matrix(matrix, self.module.weight.shape, bias=self.module.bias is not None)
        with torch.no_grad():
            self.module.weight.copy_(weight)
            if self.module.bias is not None and bias is not None:
                self.module.bias.copy_(bias)


def to_matrix(weight: Tensor, bias: Tensor | None, groups: int) -> Tensor:
    """A weight [units, ...] and its bias as [groups, fan-in, units of a group]."""
    flat = weight.reshape(weight.shape[0], -1)
    if bias is not None:
        flat = torch.cat([flat, bias[:, None]], dim=1)
    return flat.reshape(groups, -1, flat.shape[1]).transpose(1, 2)


def from_matrix(matrix: Tensor, shape: torch.Size, *, bias: bool) -> tuple[Tensor, Tensor | None]:
    """The inverse of ``to_matrix``."""
    flat = matrix.transpose(1, 2).reshape(shape[0], -1)
    return (flat[:, :-1].reshape(shape), flat[:, -1]) if bias else (flat.reshape(shape), None)


def is_examined(module: nn.Module) -> bool:
    """Whether a module with parameters of its own is of a kind that is written as regressions, or its parametrisation.

    One that is and yet cannot be written so has weights of which nothing is known; of other kinds nothing is promised.
    """
    values = list(module.parameters(recurse=False))
    filled = any(isinstance(value, nn.UninitializedParameter) or value.numel() for value in values)
    return filled and isinstance(module, (nn.Linear, *_CONVOLUTIONS, parametrize.ParametrizationList))


def refusal(module: nn.Module) -> str | None:
    """Why a module with parameters of its own cannot be written as regressions; ``None`` if it can."""
    kind = type(module).__name__
    base = next((base for base in (nn.Linear, *_CONVOLUTIONS) if isinstance(module, base)), None)
    if any(isinstance(value, nn.UninitializedParameter) for value in module.parameters(recurse=False)):
        return f"{kind} is lazy and has no weights yet; call the network once, then purify it"
    if base is None:
        return f"{kind} is neither Linear nor Conv1d, Conv2d or Conv3d"
    methods = ("forward", "_conv_forward") if base is not nn.Linear else ("forward",)
    if any(getattr(type(module), method) is not getattr(base, method) for method in methods):
        return f"{kind} computes its output in its own way, not as {base.__name__} does"
    if parametrize.is_parametrized(module) or not isinstance(module._parameters.get("weight"), nn.Parameter):
        return "its weight is computed from other parameters (a parametrisation); remove that first"
    weight = module.get_parameter("weight")
    if not weight.numel():
        return f"its weight is of shape {list(weight.shape)}: there is nothing in it"
    if weight.is_meta:
        return "its weights are on the meta device: there are no values"
    if weight.dtype not in _FLOATS:
        return (
            f"its weights are {weight.dtype}, whose rounding hides what training changed; float32 or float64 is needed"
        )
    return None


def _vectors(inputs: Tensor) -> Tensor:
    return inputs.reshape(1, -1, inputs.shape[-1])


def _patches(module: nn.Conv1d | nn.Conv2d | nn.Conv3d, inputs: Tensor) -> Tensor:
    """The patches of a convolution of any number of dimensions, [groups, rows, channels of a group times kernel]."""
    dimensions = len(module.kernel_size)
    if inputs.dim() == dimensions + 1:  # one image without a batch
        inputs = inputs[None]
    padded = F.pad(inputs, *_padding(module))
    sizes = zip(module.kernel_size, module.stride, module.dilation, strict=True)
    for axis, (kernel, stride, dilation) in enumerate(sizes, start=2):
        padded = padded.unfold(axis, (kernel - 1) * dilation + 1, stride)[..., ::dilation]
    # [batch, channels, positions..., kernel...] -> [groups, batch and positions, channels of a group and kernel]
    padded = padded.unflatten(1, (module.groups, -1))
    places = range(3, 3 + dimensions)
    taps = range(3 + dimensions, 3 + 2 * dimensions)
    return padded.permute(1, 0, *places, 2, *taps).reshape(module.groups, -1, module.weight[0].numel())


def _padding(module: nn.Conv1d | nn.Conv2d | nn.Conv3d) -> tuple[list[int], str]:
    """Arguments of ``F.pad``; with "same" and an even kernel there is one more at the end than at the beginning."""
    ends: list[int] = []
    for axis in reversed(range(len(module.kernel_size))):
        if module.padding == "same":
            total = module.dilation[axis] * (module.kernel_size[axis] - 1)
            ends += [total // 2, total - total // 2]
        elif module.padding == "valid":
            ends += [0, 0]
        else:
            ends += [int(module.padding[axis])] * 2
    return ends, "constant" if module.padding_mode == "zeros" else module.padding_mode
