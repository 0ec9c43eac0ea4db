"""The guard: every channel is kept within the range that clean inputs use."""

import copy
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.errors import InputError
from netpurify.network.adapter.layers import as_layer, refusal

_NAME = "guard"
_PARTS = ("low", "high", "centre", "spread")


class Guard(nn.Module):
    """Clamps each channel to its own range, and its spread over an image to what clean images have.

    A trigger in one place leaves the range. One that covers the image, such as a faint wave, stays in the range
    everywhere, but no clean image has it everywhere: the channel's mean square over the image gives it away. An image
    beyond is drawn towards the channel's centre. The guard has buffers only, and scripts, exports and compiles.

    Attributes:
        low: Smallest value of each channel, [channels, 1...], with as many ones as dimensions follow the channels.
        high: Largest value of each channel.
        centre: Mean of each channel.
        spread: Largest root mean square about the centre that a channel has over one image; infinite where nothing
            follows the channels.
    """

    low: Tensor
    high: Tensor
    centre: Tensor
    spread: Tensor
    places: list[int]

    def __init__(self, low: Tensor, high: Tensor, centre: Tensor, spread: Tensor) -> None:  # noqa: D107
        super().__init__()
        self.register_buffer("low", low)
        self.register_buffer("high", high)
        self.register_buffer("centre", centre)
        self.register_buffer("spread", spread)
        self.places = list(range(1 - low.dim(), 0))

    def forward(self, values: Tensor) -> Tensor:
        """The values within range; NaN stays."""
        values = torch.clamp(values, self.low, self.high)
        if self.low.dim() == 1:
            return values
        size = self.size(values)
        share = torch.where(size > self.spread, self.spread / size, torch.ones_like(size)).to(values.dtype)
        return torch.lerp(self.centre, values, share)  # the very values where the share is 1

    def size(self, values: Tensor) -> Tensor:
        """Root mean square of each channel about its centre over one image, [..., channels, 1...]."""
        offsets = values - self.centre
        if offsets.dtype == torch.float16 or offsets.dtype == torch.bfloat16:
            offsets = offsets.float()  # the square of 256 is beyond half precision
        # Above 0, where the root has no slope: who trains on, or attacks, needs gradients.
        return offsets.square().mean(dim=self.places, keepdim=True).clamp(min=2e-38).sqrt()


def place(module: nn.Module, guard: Guard) -> None:
    """Let a guard watch over what a module gives; where one does already, the narrower range counts.

    The guard is a child of the module, so that all other names in the state dict stay as they are.
    """
    there = module._modules.get(_NAME)
    if isinstance(there, Guard):
        there.low, there.high = torch.maximum(there.low, guard.low), torch.minimum(there.high, guard.high)
        there.centre, there.spread = guard.centre, torch.minimum(there.spread, guard.spread)
        return
    module.add_module(_NAME, guard)
    module.register_forward_hook(_keep)


# TorchScript compiles a hook with its module, so it reads these types, and takes none for the module.
def _keep(self, _: tuple[Tensor], output: Tensor) -> Tensor:
    return self.guard(output)


def load_defended(model: nn.Module, weights: Mapping[str, Tensor] | str | os.PathLike) -> nn.Module:
    """A copy of a network with the weights and the guards of a defended one.

    Args:
        model: The network as its own code builds it, without guards.
        weights: The defended network's state dict, or the file that it was saved in.

    Raises:
        InputError: The weights are not those of this network.
        CheckpointError: The file cannot be read safely.
    """
    state = dict(weights) if isinstance(weights, Mapping) else checkpoint.load_weights(Path(weights))
    if any(value.is_meta for value in model.state_dict().values() if isinstance(value, Tensor)):
        raise InputError("the network must have room for weights; it is on the meta device; call its to_empty first")
    found = copy.deepcopy(model)
    place_guards(found, state)
    try:
        found.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(f"the weights must be of the same network; {error}; give its own factory") from error
    return found


def place_guards(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Place the guards that a state dict names and the network does not have yet; loading it then fills them.

    Raises:
        InputError: A guard is not whole, is out of order, or is none for this network.
    """
    own, modules = model.state_dict().keys(), dict(model.named_modules())
    ends = tuple(f".{_NAME}.{part}" for part in _PARTS)
    # A network that is one layer has no name of its own, and no dot before the guard.
    owners = {f".{name}".rpartition(f".{_NAME}.")[0] for name in state if name not in own and f".{name}".endswith(ends)}
    for owner in sorted(name.removeprefix(".") for name in owners):
        prefix = f"{owner}.{_NAME}" if owner else _NAME
        parts = [state[f"{prefix}.{part}"] for part in _PARTS if f"{prefix}.{part}" in state]
        whole = len(parts) == len(_PARTS) and all(part.shape == parts[0].shape for part in parts)
        if owner not in modules or not whole or not _fits(modules[owner], parts[0]):
            raise InputError(
                f"the weights must be of the same network; they have {prefix}, and the network has no such module to "
                "guard, or the guard is not whole; give the factory of the network that was defended"
            )
        low, high, centre, spread = parts
        finite = all(bool(part.isfinite().all()) for part in (low, high, centre))
        if not finite or not bool((low <= high).all() and (spread >= 0.0).all()):
            raise InputError(
                f"a guard's range must be finite and go from low to high; that of {owner or 'the network'} does not; "
                "the file is damaged; defend the network again"
            )
        place(modules[owner], Guard(*(_like(modules[owner], part) for part in parts)))


def _like(module: nn.Module, part: Tensor) -> Tensor:
    """Room for a part of a guard where its module is, and of the same dtype."""
    own = [it for it in (*module.parameters(), *module.buffers()) if it.is_floating_point()]
    return torch.empty_like(part, device=own[0].device, dtype=own[0].dtype) if own else torch.empty_like(part)


def _fits(module: nn.Module, low: Tensor) -> bool:
    """Whether a guard has one value for each channel of what a module gives."""
    if refusal(module) is None:
        layer = as_layer("", module)
        return low.shape == (layer.units, *[1] * layer.trailing)
    # Behind a Linear layer the channels come last, and a norm need not know how many they are.
    known = isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)
    return known and (low.dim() == 1 or (low.dim() > 1 and len(low) == module.num_features == low.numel()))
