"""Weights of a file put into a network: every name must fit, ties are kept, and the file's dtypes count."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from netpurify.checkpoint import raw_bytes
from netpurify.errors import InputError
from netpurify.network.adapter.admission import require_unquantised, unwrapped
from netpurify.network.policies.defence import place_guards

_SHOWN = 5
"""Names that a message lists before it only counts."""
_FACTORY = ("that --factory builds", "give the factory or the --factory-args of this file")


def fill(
    model: nn.Module, state: Mapping[str, Tensor], *, file: str | Path, builder: tuple[str, str] = _FACTORY
) -> None:
    """Put the weights of a file into the network, in the dtypes of the file, with the guards of a defended one.

    A network whose parameters are on the meta device takes the tensors of the file themselves, without a copy.

    Args:
        model: The network; it is changed.
        state: The weights.
        file: Where they come from, for messages.
        builder: For messages, what built the network, and what to give instead.

    Raises:
        InputError: Names are missing, unexpected or of another shape; the message lists them. Or a guard is damaged.
    """
    require_unquantised(state, str(file))
    model = unwrapped(model)
    own: dict[str, Any] = model.state_dict(keep_vars=True)
    if any(isinstance(value, Tensor) and value.is_meta for value in own.values()):
        present = {name: value for name, value in state.items() if name in own}
        _check_fit(own, present, file, builder)
        _check_dtypes(own, present, file, builder)
        _assign(model, own, present, file)
    else:
        present = {}
    place_guards(model, state)
    own = model.state_dict(keep_vars=True)
    _check_fit(own, state, file, builder)
    _check_dtypes(own, state, file, builder)
    left = {name: value for name, value in state.items() if name not in present}
    for name, value in left.items():
        # The file's dtype counts: weights that are rounded on the way in would all seem altered a little.
        if own[name].dtype != value.dtype:
            own[name].data = own[name].data.to(value.dtype)
    if left:
        model.load_state_dict(left, strict=False)


def check_shapes(
    outline: nn.Module, state: Mapping[str, Tensor], *, file: str | Path, builder: tuple[str, str] = _FACTORY
) -> None:
    """Refuse weights that are missing or of another shape than the network's, which may be on the meta device.

    Raises:
        InputError: There are some.
    """
    own: dict[str, Any] = outline.state_dict(keep_vars=True)
    _check_fit(own, {name: value for name, value in state.items() if name in own}, file, builder)


def _assign(model: nn.Module, own: Mapping[str, Any], state: Mapping[str, Tensor], file: str | Path) -> None:
    """Let the network have the tensors themselves; names of one parameter get one tensor."""
    tied: dict[int, list[str]] = {}
    for name, value in own.items():
        if isinstance(value, nn.Parameter):
            tied.setdefault(id(value), []).append(name)
    model.load_state_dict(state, strict=False, assign=True)
    for names in tied.values():
        first, *others = sorted(names, key=lambda name: name not in state)
        for name in others:
            if name in state and not _same_bits(state[name], state[first]):
                raise InputError(
                    f"{file} must hold tied weights once, or twice alike; {first} and {name} are one tensor of the "
                    "network and differ in the file; give a file with the one that is meant"
                )
            parent, _, key = name.rpartition(".")
            setattr(model.get_submodule(parent), key, model.get_parameter(first))


def _same_bits(first: Tensor, second: Tensor) -> bool:
    return first.dtype == second.dtype and bool((raw_bytes(first) == raw_bytes(second)).all())


def _check_fit(own: Mapping[str, Any], state: Mapping[str, Tensor], file: str | Path, builder: tuple[str, str]) -> None:
    # A file may hold tied weights once, under any of their names.
    places = {_place(value) for name, value in own.items() if isinstance(value, Tensor) and name in state}
    missing = [
        name
        for name, value in own.items()
        if name not in state and not (isinstance(value, Tensor) and value.numel() and _place(value) in places)
    ]
    shapes = [
        f"{name} {list(state[name].shape)} instead of {list(value.shape)}"
        for name, value in own.items()
        if name in state and state[name].shape != value.shape
    ]
    parts = [("missing", missing), ("unexpected", [name for name in state if name not in own]), ("mis-shaped", shapes)]
    problems = [f"{word}: {_some(names)}" for word, names in parts if names]
    if problems:
        raise InputError(
            f"{file} must hold the weights of the network {builder[0]}; {'; '.join(problems)}; {builder[1]}"
        )


def _place(value: Tensor) -> int:
    """Where a tensor's values are; on the meta device, which tensor it is."""
    return id(value) if value.is_meta else value.data_ptr()


def _check_dtypes(
    own: Mapping[str, Any], state: Mapping[str, Tensor], file: str | Path, builder: tuple[str, str]
) -> None:
    """Refuse whole numbers, truth values and complex numbers where the network has real ones."""
    odd = [
        f"{name} of {value.dtype}"
        for name, value in state.items()
        if own[name].is_floating_point() and not value.is_floating_point()
    ]
    if odd:
        raise InputError(
            f"{file} must hold real floating weights where the network {builder[0]} has them; got "
            f"{_some(odd)}; give the weights as they were trained, not quantised or converted"
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
