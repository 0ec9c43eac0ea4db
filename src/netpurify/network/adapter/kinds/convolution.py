"""Convolutions and transposed convolutions: a row for each position of the output."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from netpurify.network.adapter.kinds.layer import Layer, Rows, register_layer


class _PatchLayer(Layer):
    """What convolutions of both directions share: groups of channels, and patches of images."""

    computing = ("forward", "_conv_forward")

    @property
    def groups(self) -> int:
        return self.module.groups

    @property
    def trailing(self) -> int:
        return self.module.weight.dim() - 2

    def pieces(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """One image at a time: the patches of many images take a lot of memory."""
        return inputs.split(1) if inputs.dim() == self.module.weight.dim() else (inputs,)

    def _batched(self, inputs: Tensor) -> Tensor:
        """Inputs with a batch dimension; one image may come without."""
        return inputs[None] if inputs.dim() == self.trailing + 1 else inputs

    def _patches(self, windows: Tensor) -> Tensor:
        """[batch, channels, positions..., kernel...] as [groups, batch and positions, channels of a group and taps]."""
        dimensions = self.trailing
        windows = windows.unflatten(1, (self.groups, -1))
        positions = range(3, 3 + dimensions)
        taps = range(3 + dimensions, 3 + 2 * dimensions)
        return windows.permute(1, 0, *positions, 2, *taps).reshape(
            self.groups, -1, self.module.in_channels // self.groups * self.module.weight[0, 0].numel()
        )


@register_layer
class ConvolutionLayer(_PatchLayer):
    """A convolution of one, two or three dimensions: a row for each patch that it is applied to."""

    modules = (nn.Conv1d, nn.Conv2d, nn.Conv3d)

    def input_rows(self, inputs: Tensor) -> Tensor:
        """The patches of the inputs, [groups, rows, channels of a group times kernel]."""
        module = self.module
        padded = F.pad(self._batched(inputs), *_padding(module))
        sizes = zip(module.kernel_size, module.stride, module.dilation, strict=True)
        for axis, (kernel, stride, dilation) in enumerate(sizes, start=2):
            padded = padded.unfold(axis, (kernel - 1) * dilation + 1, stride)[..., ::dilation]
        return self._patches(padded)


@register_layer
class TransposedConvolutionLayer(_PatchLayer):
    """A transposed convolution: a row for each position of the output, with the inputs that reach it.

    It is the convolution of the inputs, spread out by the stride with zeros between them, with the flipped kernel.
    """

    modules = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    computing = ("forward", "_output_padding")
    layout = "transposed"

    def seen(self, given: tuple, named: dict[str, Any]) -> Iterator[Rows]:
        """As for every layer; the output's size may be given with the call."""
        inputs = (given[0] if given else named["input"]).detach()
        wanted = given[1] if len(given) > 1 else named.get("output_size")
        for piece in self.pieces(inputs):
            yield self._rows(piece, wanted)

    @property
    def free_bias(self) -> bool:
        """No input reaches some positions if the stride leaves gaps, or more is added at the end than was cut off."""
        module = self.module
        options = zip(module.kernel_size, module.stride, module.dilation, strict=True)
        gaps = any(
            len({tap * dilation % stride for tap in range(kernel)}) < stride for kernel, stride, dilation in options
        )
        return gaps or any(added > cut for added, cut in zip(module.output_padding, module.padding, strict=True))

    def input_rows(self, inputs: Tensor) -> Tensor:  # noqa: D102
        return self._rows(inputs, None)

    def _rows(self, inputs: Tensor, wanted: Sequence[int] | None) -> Tensor:
        inputs = self._batched(inputs)
        added = self._added(inputs.shape[2:], wanted)
        module = self.module
        for axis in range(self.trailing):
            kernel, stride, dilation = (size[axis] for size in (module.kernel_size, module.stride, module.dilation))
            spread = inputs.new_zeros(
                *inputs.shape[: axis + 2], (inputs.shape[axis + 2] - 1) * stride + 1, *inputs.shape[axis + 3 :]
            )
            spread[(slice(None),) * (axis + 2) + (slice(None, None, stride),)] = inputs
            margin = dilation * (kernel - 1) - module.padding[axis]  # below zero, the ends are cut off
            ends = [0, 0] * (self.trailing - 1 - axis) + [margin, margin + added[axis]]
            inputs = F.pad(spread, ends)
        for axis, (kernel, dilation) in enumerate(zip(module.kernel_size, module.dilation, strict=True), start=2):
            inputs = inputs.unfold(axis, (kernel - 1) * dilation + 1, 1)[..., ::dilation].flip(-1)
        return self._patches(inputs)

    def _added(self, sizes: Sequence[int], wanted: Sequence[int] | None) -> list[int]:
        """How many positions are added at the end of each axis of the output."""
        module = self.module
        if wanted is None:
            return list(module.output_padding)
        options = zip(sizes, module.stride, module.padding, module.dilation, module.kernel_size, strict=True)
        least = [(size - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1
                 for size, stride, pad, dilation, kernel in options]  # fmt: skip
        return [int(size) - small for size, small in zip(list(wanted)[-len(least) :], least, strict=True)]


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
