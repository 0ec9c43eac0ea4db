"""Guards: modules that keep every channel within the range of clean inputs."""

import copy
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.errors import InputError
from netpurify.network.adapter.layers import as_layers, refusal

_NAME = "guard"
_TENSORS = ("low", "high", "centre", "spread")


class Guard(nn.Module):
    """Keeps each channel, and its RMS deviation over one image, within the range of clean inputs.

    A trigger in one spot drives some values out of their channel's range: they are clamped. A trigger that covers the
    image, such as a faint wave, keeps every value in range, but raises the channel's RMS deviation over the image above
    that of clean images: such a channel of the image is shrunk towards the channel's mean. The guard has buffers only;
    it can be scripted, exported and compiled.

    Attributes:
        low: Smallest allowed value of each channel, [channels, 1...], with a 1 for each dimension after the channels.
        high: Largest allowed value of each channel.
        centre: Mean of each channel over clean inputs.
        spread: Largest allowed RMS deviation of each channel from its centre over one image; infinite where no
            dimension follows the channels.
    """

    low: Tensor
    high: Tensor
    centre: Tensor
    spread: Tensor
    trailing: list[int]

    def __init__(self, low: Tensor, high: Tensor, centre: Tensor, spread: Tensor) -> None:  # noqa: D107
        super().__init__()
        self.register_buffer("low", low)
        self.register_buffer("high", high)
        self.register_buffer("centre", centre)
        self.register_buffer("spread", spread)
        self.trailing = list(range(1 - low.dim(), 0))

    def forward(self, values: Tensor) -> Tensor:
        """The values, kept in range; NaN stays NaN."""
        values = torch.clamp(values, self.low, self.high)
        if self.low.dim() == 1:
            return values
        deviation = self.deviation(values)
        within = torch.ones_like(deviation)
        factor = torch.where(deviation > self.spread, self.spread / deviation, within).to(values.dtype)
        return torch.lerp(self.centre, values, factor)  # exactly the values where the factor is 1

    def deviation(self, values: Tensor) -> Tensor:
        """RMS deviation of each channel from its centre over one image, [..., channels, 1...]."""
        offsets = values - self.centre
        if offsets.dtype == torch.float16 or offsets.dtype == torch.bfloat16:
            offsets = offsets.float()  # the square of 256 is beyond half precision
        # Above 0, where the root has no gradient: a caller may train the network further, or attack it.
        return offsets.square().mean(dim=self.trailing, keepdim=True).clamp(min=2e-38).sqrt()


def attach_guard(module: nn.Module, guard: Guard) -> None:
    """Pass a module's output through a guard; if the module has a guard already, the narrower range applies.

    The guard is a child of the module, so that all other names in the state dict stay as they are.
    """
    present = getattr(module, _NAME, None)
    if isinstance(present, Guard):
        present.low, present.high = torch.maximum(present.low, guard.low), torch.minimum(present.high, guard.high)
        present.centre, present.spread = guard.centre, torch.minimum(present.spread, guard.spread)
        return
    module.add_module(_NAME, guard)
    module.register_forward_hook(_guard_output)


# TorchScript compiles a hook together with its module: it needs these types, and allows none for the module.
def _guard_output(self, _: tuple[Tensor], output: Tensor) -> Tensor:
    return self.guard(output)


def load_defended(model: nn.Module, weights: Mapping[str, Tensor] | str | os.PathLike) -> nn.Module:
    """A copy of a network that has the weights and the guards of a defended one.

    Args:
        model: The network as its own code builds it, without guards.
        weights: The defended network's state dict, or the path of the file that it was saved in.

    Raises:
        InputError: The weights are not those of this network.
        CheckpointError: The file cannot be read safely.
    """
    state = dict(weights) if isinstance(weights, Mapping) else checkpoint.load_weights(Path(weights))
    if any(value.is_meta for value in model.state_dict().values() if isinstance(value, Tensor)):
        raise InputError("the network must have room for weights; it is on the meta device; call its to_empty first")
    defended = copy.deepcopy(model)
    place_guards(defended, state)
    try:
        defended.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"the weights must be of the same network; {error}; give its own factory") from error
    return defended


def place_guards(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Attach the guards that a state dict names and the network lacks; loading the state dict then fills them.

    Raises:
        InputError: A guard lacks a tensor, has a range that makes no sense, or does not fit its module.
    """
    own, modules = model.state_dict().keys(), dict(model.named_modules())
    ends = tuple(f".{_NAME}.{tensor}" for tensor in _TENSORS)
    # A network that is one layer has no name of its own, and no dot before the guard.
    owners = {f".{name}".rpartition(f".{_NAME}.")[0] for name in state if name not in own and f".{name}".endswith(ends)}
    for owner in sorted(name.removeprefix(".") for name in owners):
        prefix = f"{owner}.{_NAME}" if owner else _NAME
        bounds = [state[f"{prefix}.{tensor}"] for tensor in _TENSORS if f"{prefix}.{tensor}" in state]
        whole = len(bounds) == len(_TENSORS) and all(bound.shape == bounds[0].shape for bound in bounds)
        if owner not in modules or not whole or not _fits(modules[owner], bounds[0]):
            raise InputError(
                f"the weights must be of the same network; they have {prefix}, and the network has no such module to "
                "guard, or the guard is not whole; give the factory of the network that was defended"
            )
        low, high, centre, spread = bounds
        finite = all(bool(bound.isfinite().all()) for bound in (low, high, centre))
        if not finite or not bool((low <= high).all() and (spread >= 0.0).all()):
            raise InputError(
                f"a guard's range must be finite and go from low to high; that of {owner or 'the network'} does not; "
                "the file is damaged; defend the network again"
            )
        attach_guard(modules[owner], Guard(*(_like(modules[owner], bound) for bound in bounds)))


def _like(module: nn.Module, bound: Tensor) -> Tensor:
    """An empty tensor for one tensor of a guard, with the device and the dtype of its module."""
    floats = [value for value in (*module.parameters(), *module.buffers()) if value.is_floating_point()]
    if not floats:
        return torch.empty_like(bound)
    return torch.empty_like(bound, device=floats[0].device, dtype=floats[0].dtype)


def _fits(module: nn.Module, low: Tensor) -> bool:
    """Whether a guard has one value for each channel of a module's output."""
    if refusal(module) is None:
        layer = as_layers("", module)[0]
        return layer.called_alone and low.shape == (layer.units, *[1] * layer.trailing)
    # After a Linear layer the channels come last, and the norm need not know how many there are.
    known = isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)
    return known and (low.dim() == 1 or (low.dim() > 1 and len(low) == module.num_features == low.numel()))
