"""The initial weights, wherever they come from, and which layers of a network they and the data let us purify."""

import copy
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.checkpoint import raw_bytes, unusual
from netpurify.errors import InputError
from netpurify.network.adapter.layers import Layer, as_layer, is_examined, refusal, to_matrix

_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_UNEXAMINED = "and is of a kind that is not examined: it may have been trained, or altered"


@dataclass(frozen=True, slots=True)
class Seeded:
    """Initial weights that a factory makes anew from a seed, as ``torch.manual_seed(seed); factory()`` would.

    Attributes:
        factory: Builds the network; the caller's own code, which is run.
        seed: Seed of torch's global generator while it does; the caller's random numbers are left as they were.
    """

    factory: Callable[[], nn.Module]
    seed: int

    def build(self) -> nn.Module:
        """The network."""
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(self.seed)
            return self.factory()


Initial = nn.Module | Mapping[str, Tensor] | str | os.PathLike | Seeded
"""Initial weights: a network, a state dict, a file, or a factory with its seed."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something with weights that is left alone.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        reason: Why.
        missed: Whether a network with it must not be called well, since nobody knows if its weights are right: a Linear
            or Conv layer that could not be examined, a part that was asked for by name, or a part of any other kind
            with a tensor that is not the initial one.
    """

    name: str
    kind: str
    reason: str
    missed: bool = False

    @property
    def changed(self) -> bool:
        """Whether it is missed because it is of a kind that is not examined and not as it was before training."""
        return self.reason.endswith(_UNEXAMINED)


def resolve(initial: Initial) -> dict[str, Tensor]:
    """The initial weights as a state dict.

    Raises:
        InputError: They are of no known kind.
    """
    if isinstance(initial, str | os.PathLike):
        return checkpoint.load_weights(Path(initial))
    if isinstance(initial, Seeded):
        return resolve(initial.build())
    if isinstance(initial, nn.Module):
        return resolve(initial.state_dict())
    if not isinstance(initial, Mapping):
        raise InputError(
            f"initial must be a network, a state dict, a file or Seeded(factory, seed); got {type(initial).__name__}"
        )
    return {name: value.detach() for name, value in initial.items() if isinstance(value, Tensor) and not _empty(value)}


def _empty(value: Tensor) -> bool:
    """Whether it has no values yet: lazy, or on the meta device."""
    return isinstance(value, nn.UninitializedParameter | nn.UninitializedBuffer) or value.is_meta


def sort_layers(
    model: nn.Module,
    initial: Mapping[str, Tensor] | None,
    chosen: "list[str] | None",
    tied: Mapping[str, set[str]],
) -> tuple[list[Layer], list[Skipped]]:
    """The layers that can be written as regressions and have initial weights, and those to leave alone.

    Raises:
        InputError: A chosen name is not a layer, none of the initial weights fits, or some are not finite.
    """
    named = {name: module for name, module in model.named_modules() if list(module.parameters(recurse=False))}
    for name in chosen or ():
        if name not in named:
            raise InputError(f"layers must be names of layers with weights; {name!r} is none of {list(named)}")
    found: list[Layer] = []
    skipped: list[Skipped] = []
    for name, module in named.items():
        reason = refusal(module)
        if reason is None and chosen is not None and name not in chosen:
            reason = "not asked for"
        if reason is None:
            layer = as_layer(name, module)
            reason = _shared(layer, tied) or (None if initial is None else _unfit(layer, initial))
            if reason is None:
                found.append(layer)
        if reason is not None:
            missed = is_examined(module) if chosen is None else name in chosen
            skipped.append(Skipped(name, type(module).__name__, reason, missed))
    if initial is not None and not found and all(skip.reason.startswith("the initial weights") for skip in skipped):
        raise InputError(
            f"the initial weights must be of the same network; the model has {list(named)[:5]} ..., "
            f"the initial weights {list(initial)[:5]} ..."
        )
    return found, skipped


def mark_changed(
    model: nn.Module, layers: Sequence[Layer], skipped: Sequence[Skipped], initial: Mapping[str, Tensor]
) -> list[Skipped]:
    """``skipped``, where every part that is not as it was before training counts as missed.

    A part of which each tensor has its initial bits is known to be right. Parts that have buffers alone, and tensors of
    a layer beside its weight and bias, are added if they differ.
    """
    examined = {tensor for layer in layers for tensor in layer.tensors}
    parts = {part.name: part for part in skipped}
    for name, module in model.named_modules():
        if name in parts and parts[name].missed:
            continue
        others = ((key, value) for key, value in _own(module, name) if key not in examined)
        key = next((key for key, value in others if not _same(value, initial.get(key))), None)
        if key is not None:
            reason = "it differs from its initial weights" if key in initial else f"it has no initial {key}"
            parts[name] = Skipped(name, type(module).__name__, f"{reason}, {_UNEXAMINED}", missed=True)
    return list(parts.values())


def unreached(layer: Layer) -> Skipped:
    """A layer that no clean input reaches."""
    return Skipped(layer.name, layer.kind, "the clean inputs never reach it", missed=True)


def require_layers(layers: Collection[Layer], skipped: Sequence[Skipped], what: str) -> None:
    """Refuse a network of which nothing can be examined: it would come back as if all were well.

    Raises:
        InputError: There is no layer; the message says why.
    """
    if not layers:
        reasons = "; ".join(f"{part.name or 'the network'} ({part.kind}): {part.reason}" for part in skipped[:5])
        raise InputError(f"at least one layer must be open to {what}; none is; {reasons or 'it has no weights'}")


def reference_matrix(layer: Layer, initial: Mapping[str, Tensor] | None) -> Tensor:
    """The layer's initial weights as [groups, fan-in, units of a group], zero where there are none."""
    if initial is None:
        return torch.zeros_like(layer.matrix())
    weight, *bias = (initial[name].to(layer.module.weight) for name in layer.tensors)
    return to_matrix(weight, bias[0] if bias else None, layer.groups)


def differs(module: nn.Module, name: str, initial: Mapping[str, Tensor] | None) -> bool:
    """Whether a module's own tensors are others than the initial ones, so that nobody knows if they are right."""
    return any(initial is None or not _same(value, initial.get(key)) for key, value in _own(module, name))


def _own(module: nn.Module, name: str) -> Iterator[tuple[str, Tensor]]:
    """A module's own tensors by their names in a state dict; other buffers come from the code, not from training."""
    prefix = f"{name}." if name else ""
    for key, value in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        # Torch has no public name for this set. The keys of ``state_dict()`` would not do: a module's own hooks and
        # overrides may leave tensors out of it, which must be examined all the same.
        if key not in module._non_persistent_buffers_set:
            yield prefix + key, value


def _same(value: Tensor, given: Tensor | None) -> bool:
    """Whether a tensor has the bits of the initial one, which may have been kept in another floating dtype."""
    if given is None or _empty(value) or unusual(value) or unusual(given) or value.shape != given.shape:
        return False
    if value.dtype != given.dtype and not (value.is_floating_point() and given.is_floating_point()):
        return False
    return bool((raw_bytes(value) == raw_bytes(given.to(value.dtype))).all())


def duplicate(model: nn.Module) -> nn.Module:
    """A copy of the caller's network to work on.

    Raises:
        InputError: It cannot be copied.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a torch.nn.Module; got {type(model).__name__}")
    if any("_orig_mod" in name.split(".") for name, _ in model.named_modules()):
        raise InputError(
            "the model must not be compiled, since what is compiled cannot be watched; give what torch.compile was "
            "given (its _orig_mod), and compile the purified network"
        )
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise InputError(
            f"the model must allow copy.deepcopy, since the caller's is never changed; it raised "
            f"{type(error).__name__}: {error}"
        ) from error


def ties(model: nn.Module) -> dict[str, set[str]]:
    """For each parameter by its name, the others that use the same memory, whole or in part.

    To be asked of the caller's network: a copy has its own memory for every view of the same.
    """
    places = []
    for name, module in model.named_modules():
        for key, value in module.named_parameters(recurse=False, remove_duplicate=False):
            if not _empty(value) and value.numel():
                start = value.data_ptr()
                extent = 1 + sum((size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True))
                places.append(
                    (value.device.index or 0, start, start + extent * value.element_size(), f"{name}.{key}".lstrip("."))
                )
    found: dict[str, set[str]] = {name: set() for *_, name in places}
    places.sort()
    for position, (device, _, end, name) in enumerate(places):
        for other_device, start, _, other in places[position + 1 :]:
            if (other_device, start) >= (device, end):
                break
            found[name].add(other)
            found[other].add(name)
    return found


def _shared(layer: Layer, tied: Mapping[str, set[str]]) -> str | None:
    others = set().union(*(tied[tensor] for tensor in layer.tensors))
    return f"its weights are tied with {', '.join(sorted(others))}, which would change with them" if others else None


def _unfit(layer: Layer, initial: Mapping[str, Tensor]) -> str | None:
    for tensor in layer.tensors:
        value = layer.module.get_parameter(tensor.rpartition(".")[2])
        given = initial.get(tensor)
        if given is None:
            return f"the initial weights have no {tensor}"
        if given.shape != value.shape:
            return f"the initial weights have {tensor} as {list(given.shape)}, the model as {list(value.shape)}"
        if given.dtype not in _FLOATS:
            raise InputError(
                f"the initial weights must be float64, float32, float16 or bfloat16; {tensor} is {given.dtype}; give "
                "them as they were before training"
            )
        if not torch.isfinite(given).all():
            raise InputError(f"the initial weights must be finite; {tensor} has NaN or infinite entries")
    return None
