"""Layers as matrices: the output of a layer is the product of the rows of its inputs and its weight matrix.

A layer is ``groups`` independent regressions. Its weight matrix is [groups, fan-in, units of a group], its rows are
[groups, rows, fan-in]; a bias is one more coordinate of the fan-in, the last, whose input is always 1.

A kind of layer is one subclass of ``Layer`` in the table ``KINDS``, in the room ``kinds``; ``register_layer`` adds one.
This file finds the layers of a network, and says why a module has none.
"""

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.utils import parametrize

from netpurify.network.adapter.kinds import KINDS, Layer, SharedLayer, register_layer

__all__ = ["KINDS", "Layer", "SharedLayer", "as_layers", "is_examined", "layers_of", "refusal", "register_layer"]

_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def layers_of(model: nn.Module) -> Iterator[Layer]:
    """Every layer of a network that can be written as regressions, in the order of ``named_modules``."""
    within: set[int] = set()  # modules that are described together with the one that they are in
    for name, module in model.named_modules():
        if id(module) not in within and refusal(module) is None:
            layers = as_layers(name, module)
            within |= {id(layer.module) for layer in layers}
            yield from layers


def as_layers(name: str, module: nn.Module) -> tuple[Layer, ...]:
    """The layers of a module that ``refusal`` lets pass."""
    kind = _kind_of(module)
    assert kind is not None, "a module that is refused is not written as regressions"
    return kind.parts(name, module)


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
        known = ", ".join(base.__name__ for kind in KINDS for base in kind.bases())
        return _of_a_norm(module) or f"{kind_name} is none of {known}"
    base = next(base for base in kind.bases() if isinstance(module, base))
    if any(getattr(type(module), method) is not getattr(base, method) for method in kind.computing):
        return f"{kind_name} computes its output in its own way, not as {base.__name__} does"
    parameters = dict(module.named_parameters(recurse=False, remove_duplicate=False))
    names = kind.weight_names(module)
    if parametrize.is_parametrized(module) or not parameters.keys() >= set(names):
        return "its weight is computed from other parameters (a parametrisation); remove that first"
    weight = parameters[names[0]]
    if not weight.numel():
        return f"its weight is of shape {list(weight.shape)}: there is nothing in it"
    if weight.is_meta:
        return "its weights are on the meta device: there are no values"
    if weight.dtype not in _FLOATS:
        return (
            f"its weights are {weight.dtype}, whose rounding hides what training changed; float64, float32, bfloat16 "
            "or float16 is needed"
        )
    return kind.refusal(module)


def _kind_of(module: nn.Module) -> type[Layer] | None:
    return next((kind for kind in KINDS if isinstance(module, kind.bases())), None)


def _of_a_norm(module: nn.Module) -> str | None:
    """Why a norm is not written as regressions; ``None`` if it is no norm.

    Each unit of a norm sees one number of every input, so that a scale and a shift fit any change of the two.
    """
    values = list(module.parameters(recurse=False))
    usual = isinstance(module, nn.LayerNorm) or all(value.dim() == 1 for value in values)
    if "norm" not in type(module).__name__.lower() or not usual or module._parameters.get("weight") is None:
        return None
    what = "a scale and a shift" if module._parameters.get("bias") is not None else "a scale"
    return (
        f"{type(module).__name__} has {what} for each unit, which training may set freely, so that no regression can "
        "tell an alteration; it is only compared with the initial weights"
    )
