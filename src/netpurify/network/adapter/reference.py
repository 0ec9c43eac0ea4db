"""The initial weights, from any source, and which layers of a network can be purified with them."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.checkpoint import raw_bytes, unusual
from netpurify.errors import InputError
from netpurify.network.adapter.kinds import Layer, SharedLayer, join_shared
from netpurify.network.adapter.layers import as_layers, is_examined, refusal

_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
UNEXAMINED = "and is of a kind that is not examined: it may have been trained, or altered"


@dataclass(frozen=True, slots=True)
class Seeded:
    """Initial weights that a factory makes again from a seed, as ``torch.manual_seed(seed); factory()`` would.

    Attributes:
        factory: Builds the network. This is the caller's own code, and it is run.
        seed: Seed of torch's global generator during that call; the generator's state is restored afterwards.
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
    """A module with weights that is left as it is.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        reason: Why it is left as it is.
        missed: Whether its weights may be wrong, so that a network with it must not be called repaired: a Linear or
            Conv layer that could not be examined, a module that was asked for by name, or a module of any other kind
            with a tensor that differs from the initial one.
        settled: Whether all its tensors were compared with their initial values, and have these bits now.
    """

    name: str
    kind: str
    reason: str
    missed: bool = False
    settled: bool = False

    @property
    def changed(self) -> bool:
        """Whether it is missed because its kind is not examined and it differs from its initial weights."""
        return self.reason.endswith(UNEXAMINED)


def resolve(initial: Initial) -> dict[str, Tensor]:
    """The initial weights as a state dict.

    Raises:
        InputError: They are not of a known type.
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
    """Whether a tensor has no values yet: it is lazy, or on the meta device."""
    return isinstance(value, nn.UninitializedParameter | nn.UninitializedBuffer) or value.is_meta


def sort_layers(
    model: nn.Module,
    initial: Mapping[str, Tensor] | None,
    chosen: "list[str] | None",
    tied: Mapping[str, set[str]],
) -> tuple[list[Layer], list[Skipped]]:
    """The layers that can be written as regressions and have initial weights, and the modules to leave as they are.

    Raises:
        InputError: A chosen name is not a layer, none of the initial weights fits, or some are not finite.
    """
    named = {name: module for name, module in model.named_modules() if list(module.parameters(recurse=False))}
    found: list[Layer] = []
    skipped: list[Skipped] = []
    within: set[int] = set()  # modules that are described together with the one that they are in
    for name, module in named.items():
        if id(module) in within:
            continue
        reason = refusal(module)
        if reason is None:
            found += as_layers(name, module)
            within |= {id(layer.module) for layer in found}
        else:
            missed = is_examined(module) if chosen is None else name in chosen
            skipped.append(Skipped(name, type(module).__name__, reason, missed))
    _check_names(chosen, named, found)
    joined, shared = join_shared(model, found, tied)
    layers: list[Layer] = []
    for layer, reason in [*((layer, None) for layer in joined), *shared]:
        asked = chosen is None or layer.asked_for(chosen)
        reason = (reason if asked else "not asked for") or (None if initial is None else _unfit(layer, initial))
        if reason is None:
            layers.append(layer)
        else:
            skipped += [Skipped(one.name, one.kind, reason, missed=asked) for one in _uses(layer)]
    order = {name: number for number, name in enumerate([*named, *(layer.name for layer in found)])}
    skipped.sort(key=lambda skip: order[skip.name])
    if initial is not None and not layers and all(skip.reason.startswith("the initial weights") for skip in skipped):
        raise InputError(
            f"the initial weights must be of the same network; the model has {list(named)[:5]} ..., "
            f"the initial weights {list(initial)[:5]} ..."
        )
    return layers, skipped


def _check_names(chosen: "list[str] | None", named: Collection[str], found: Sequence[Layer]) -> None:
    parts = [layer.name for layer in found if layer.name not in named]
    for name in chosen or ():
        if name not in named and name not in parts:
            raise InputError(f"layers must be names of layers with weights; {name!r} is none of {[*named, *parts]}")


def _uses(layer: Layer) -> tuple[Layer, ...]:
    return layer.uses if isinstance(layer, SharedLayer) else (layer,)


def unreached(layer: Layer) -> Skipped:
    """A layer that no clean input reaches."""
    return Skipped(layer.name, layer.kind, "the clean inputs never reach it", missed=True)


def require_layers(layers: Collection[Layer], skipped: Sequence[Skipped], what: str) -> None:
    """Refuse a network in which nothing can be examined: its result would look as if all weights were right.

    Raises:
        InputError: There is no layer; the message says why.
    """
    if not layers:
        reasons = "; ".join(f"{skip.name or 'the network'} ({skip.kind}): {skip.reason}" for skip in skipped[:5])
        raise InputError(f"at least one layer must be open to {what}; none is; {reasons or 'it has no weights'}")


def reference_matrix(layer: Layer, initial: Mapping[str, Tensor] | None) -> Tensor:
    """The layer's initial weights as [groups, fan-in, units of a group], zero where there are none."""
    if initial is None:
        return torch.zeros_like(layer.matrix())
    values = {name: _initial_of(name, layer, initial) for name in layer.tensors}
    weight = layer.weight
    return layer.form.matrix({name: value.to(weight) for name, value in values.items() if value is not None})


def initial_dtypes(layer: Layer, initial: Mapping[str, Tensor]) -> tuple[torch.dtype, ...]:
    """Dtypes of the initial values of a layer's tensors."""
    values = (_initial_of(name, layer, initial) for name in layer.tensors)
    return tuple(value.dtype for value in values if value is not None)


def _initial_of(tensor: str, layer: Layer, initial: Mapping[str, Tensor]) -> Tensor | None:
    """The initial value of one of a layer's tensors; a file may have a tied tensor under any one of its names."""
    names = [tensor, *(other for other, name in layer.form.tied if name == tensor)]
    return next((initial[name] for name in names if name in initial), None)


def differs(module: nn.Module, name: str, initial: Mapping[str, Tensor] | None) -> bool:
    """Whether any of a module's own tensors differs from the initial one, so that it may be wrong."""
    return any(initial is None or not _same(value, initial.get(key)) for key, value in own_tensors(module, name))


def own_tensors(module: nn.Module, name: str) -> Iterator[tuple[str, Tensor]]:
    """A module's own tensors by their names in a state dict; buffers outside it come from code, not from training."""
    prefix = f"{name}." if name else ""
    for key, value in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        # Torch has no public name for this set. The keys of ``state_dict()`` would not do: a module's own hooks and
        # overrides may leave tensors out of it, which must be examined all the same.
        if key not in module._non_persistent_buffers_set:
            yield prefix + key, value


def _same(value: Tensor, given: Tensor | None) -> bool:
    """Whether a tensor has the bits of the initial one, which may have been stored in another floating dtype."""
    if given is None or _empty(value) or unusual(value) or unusual(given) or value.shape != given.shape:
        return False
    if value.dtype != given.dtype and not (value.is_floating_point() and given.is_floating_point()):
        return False
    return bool((raw_bytes(value) == raw_bytes(given.to(value.dtype))).all())


def ties(model: nn.Module) -> dict[str, set[str]]:
    """For each parameter by its name, the other parameters that use the same memory, whole or in part.

    This must be the caller's network: in a copy, views of the same memory have become separate tensors.
    """
    extents = []
    for name, module in model.named_modules():
        for key, value in module.named_parameters(recurse=False, remove_duplicate=False):
            if not _empty(value) and value.numel():
                start = value.data_ptr()
                extent = 1 + sum((size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True))
                extents.append(
                    (value.device.index or 0, start, start + extent * value.element_size(), f"{name}.{key}".lstrip("."))
                )
    tied: dict[str, set[str]] = {name: set() for *_, name in extents}
    extents.sort()
    for position, (device, _, end, name) in enumerate(extents):
        for other_device, start, _, other in extents[position + 1 :]:
            if (other_device, start) >= (device, end):
                break
            tied[name].add(other)
            tied[other].add(name)
    return tied


def _unfit(layer: Layer, initial: Mapping[str, Tensor]) -> str | None:
    for tensor, value in layer.parameters.items():
        given = _initial_of(tensor, layer, initial)
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
