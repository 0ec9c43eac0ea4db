"""Layers as matrices: the output of a layer is the product of the rows of its inputs and its weight matrix.

A layer is ``groups`` independent regressions. Its weight matrix is [groups, fan-in, units of a group], its rows are
[groups, rows, fan-in]; a bias is one more coordinate of the fan-in, the last, whose input is always 1.

A kind of layer is one subclass of ``Layer`` in the table ``KINDS``; ``register_layer`` adds one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.nn.utils import parametrize

_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class Layer(ABC):
    """One layer of a network, written as regressions. A kind of layer derives from this class once.

    A kind must have a ``weight`` [units, ...] and may have a ``bias`` [units]. It says which classes of modules it
    describes (``modules``), and what one unit sees of the layer's inputs (``input_rows``).

    Attributes:
        name: Name of the layer in the network.
        module: The module itself.
    """

    name: str
    module: Any

    modules: ClassVar[tuple[type[nn.Module], ...]]
    """Classes of modules that this kind describes."""
    computing: ClassVar[tuple[str, ...]] = ("forward",)
    """Methods that compute the output; a subclass that overrides one of them is refused."""

    @abstractmethod
    def input_rows(self, inputs: Tensor) -> Tensor:
        """What the units see when the layer is called with ``inputs``, without the bias: [groups, rows, fan-in]."""

    def pieces(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """``inputs``, cut into pieces whose rows take little memory at a time."""
        return (inputs,)

    @property
    def groups(self) -> int:
        """How many independent regressions the layer is, each with its own inputs."""
        return 1

    @property
    def trailing(self) -> int:
        """How many dimensions follow the channels in the layer's output, such as height and width."""
        return 0

    @property
    def kind(self) -> str:
        """Name of the module's class."""
        return type(self.module).__name__

    @property
    def units(self) -> int:
        """Units of all groups."""
        return self.module.weight.shape[0]

    @property
    def fan_in(self) -> int:
        """Length of a unit's weight vector, bias included."""
        return self.module.weight[0].numel() + self.has_bias

    @property
    def has_bias(self) -> bool:
        """Whether the layer has a bias."""
        return self.module.bias is not None

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the layer's tensors in a state dict: the weight, and the bias if there is one."""
        return tensor_names(self.name, bias=self.has_bias)

    def matrix(self) -> Tensor:
        """The layer's weights, [groups, fan-in, units of a group]. Without a bias it is a view of the weights."""
        bias = self.module.bias
        return to_matrix(self.module.weight.detach(), None if bias is None else bias.detach(), self.groups)

    def rows(self, inputs: Tensor) -> Tensor:
        """What the units see when the layer is called with ``inputs``: [groups, rows, fan-in], bias included."""
        rows = self.input_rows(inputs)
        return torch.cat([rows, rows.new_ones(*rows.shape[:2], 1)], dim=2) if self.has_bias else rows

    def write(self, matrix: Tensor) -> None:
        """Set the layer's weights from [groups, fan-in, units of a group]."""
        weight, bias = from_matrix(matrix, self.module.weight.shape, bias=self.has_bias)
        with torch.no_grad():
            self.module.weight.copy_(weight)
            if bias is not None:
                self.module.bias.copy_(bias)


_Kind = TypeVar("_Kind", bound=type[Layer])
KINDS: list[type[Layer]] = []
"""Every kind of layer that can be purified."""


def register_layer(kind: _Kind) -> _Kind:
    """Add a kind of layer to ``KINDS``; to be used as a class decorator."""
    KINDS.append(kind)
    return kind


@register_layer
class DenseLayer(Layer):
    """A Linear layer: a row for each vector that it is called with."""

    modules = (nn.Linear,)

    def input_rows(self, inputs: Tensor) -> Tensor:  # noqa: D102
        return inputs.reshape(1, -1, inputs.shape[-1])


@register_layer
class ConvolutionLayer(Layer):
    """A convolution of one, two or three dimensions: a row for each patch that it is applied to."""

    modules = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    computing = ("forward", "_conv_forward")

    @property
    def groups(self) -> int:  # noqa: D102
        return self.module.groups

    @property
    def trailing(self) -> int:  # noqa: D102
        return self.module.weight.dim() - 2

    def pieces(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """One image at a time: the patches of many images take a lot of memory."""
        return inputs.split(1) if inputs.dim() == self.module.weight.dim() else (inputs,)

    def input_rows(self, inputs: Tensor) -> Tensor:
        """The patches of the inputs, [groups, rows, channels of a group times kernel]."""
        module = self.module
        dimensions = len(module.kernel_size)
        if inputs.dim() == dimensions + 1:  # one image without a batch
            inputs = inputs[None]
        padded = F.pad(inputs, *_padding(module))
        sizes = zip(module.kernel_size, module.stride, module.dilation, strict=True)
        for axis, (kernel, stride, dilation) in enumerate(sizes, start=2):
            padded = padded.unfold(axis, (kernel - 1) * dilation + 1, stride)[..., ::dilation]
        # [batch, channels, positions..., kernel...] -> [groups, batch and positions, channels of a group and kernel]
        padded = padded.unflatten(1, (module.groups, -1))
        positions = range(3, 3 + dimensions)
        taps = range(3 + dimensions, 3 + 2 * dimensions)
        return padded.permute(1, 0, *positions, 2, *taps).reshape(module.groups, -1, module.weight[0].numel())


def layers_of(model: nn.Module) -> Iterator[Layer]:
    """Every layer of a network that can be written as regressions, in the order of ``named_modules``."""
    for name, module in model.named_modules():
        if refusal(module) is None:
            yield as_layer(name, module)


def as_layer(name: str, module: nn.Module) -> Layer:
    """A module that ``refusal`` lets pass, as a layer."""
    kind = _kind_of(module)
    assert kind is not None, "a module that is refused is not written as regressions"
    return kind(name, module)


def tensor_names(name: str, *, bias: bool) -> tuple[str, ...]:
    """Names of a layer's weight and bias in a state dict."""
    prefix = f"{name}." if name else ""
    return (f"{prefix}weight", f"{prefix}bias") if bias else (f"{prefix}weight",)


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
    """Whether a module with parameters is of a kind that is written as regressions, or a parametrisation of one.

    If such a module cannot be written so, nothing is known of its weights. Of other kinds nothing is promised.
    """
    values = list(module.parameters(recurse=False))
    filled = any(isinstance(value, nn.UninitializedParameter) or value.numel() for value in values)
    return filled and (_kind_of(module) is not None or isinstance(module, parametrize.ParametrizationList))


def refusal(module: nn.Module) -> str | None:
    """Why a module with parameters of its own cannot be written as regressions; ``None`` if it can."""
    kind_name, kind = type(module).__name__, _kind_of(module)
    if any(isinstance(value, nn.UninitializedParameter) for value in module.parameters(recurse=False)):
        return f"{kind_name} is lazy and has no weights yet; call the network once, then purify it"
    if kind is None:
        known = ", ".join(base.__name__ for kind in KINDS for base in kind.modules)
        return f"{kind_name} is none of {known}"
    base = next(base for base in kind.modules if isinstance(module, base))
    if any(getattr(type(module), method) is not getattr(base, method) for method in kind.computing):
        return f"{kind_name} computes its output in its own way, not as {base.__name__} does"
    parameters = dict(module.named_parameters(recurse=False))
    if parametrize.is_parametrized(module) or "weight" not in parameters:
        return "its weight is computed from other parameters (a parametrisation); remove that first"
    weight = parameters["weight"]
    if not weight.numel():
        return f"its weight is of shape {list(weight.shape)}: there is nothing in it"
    if weight.is_meta:
        return "its weights are on the meta device: there are no values"
    if weight.dtype not in _FLOATS:
        return (
            f"its weights are {weight.dtype}, whose rounding hides what training changed; float64, float32, bfloat16 "
            "or float16 is needed"
        )
    return None


def _kind_of(module: nn.Module) -> type[Layer] | None:
    return next((kind for kind in KINDS if isinstance(module, kind.modules)), None)


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
