"""Which models can be examined at all: every other kind is refused by its name, with what to give instead."""

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from netpurify.errors import InputError

_QUANTISED_MODULES = (
    "torch.ao.nn.quantized",
    "torch.ao.nn.intrinsic.quantized",
    "torch.nn.quantized",
    "torch.nn.intrinsic.quantized",
    "torchao",
    "bitsandbytes",
    "auto_gptq",
    "gptqmodel",
    "awq",
    "hqq",
    "optimum.quanto",
    "transformers.integrations.bitsandbytes",
    "transformers.integrations.finegrained_fp8",
    "compressed_tensors",
)
"""Packages whose layers keep whole numbers instead of weights."""
_PACKED = (
    "qweight",
    "qzeros",
    "SCB",
    "weight_format",
    "absmax",
    "quant_map",
    "nested_absmax",
    "weight_packed",
    "weight_scale",
    "weight_scale_inv",
    "_packed_params",
    "packed_params",
)
"""Last parts of names under which GPTQ, AWQ, bitsandbytes, compressed-tensors and torch keep packed weights."""
_SMALL = (torch.uint8, torch.int8, torch.int32, torch.float8_e4m3fn, torch.float8_e5m2)
"""Types of packed weights."""
_ONLY_BITS = (
    "quantised weights can only be compared bit for bit (netpurify diff, netpurify scan); purify the model in floating "
    "point, then quantise it"
)


_LOAD = "load its weights first, for example with load_state_dict(state, assign=True)"


def duplicate(model: nn.Module) -> nn.Module:
    """A copy of the caller's network to work on; what ``DataParallel`` wraps is copied without the wrapper.

    Raises:
        InputError: It is of a kind that cannot be examined, or it cannot be copied.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a torch.nn.Module; got {type(model).__name__}")
    model = unwrapped(model)
    _require_plain_modules(model)
    require_values(model, "the model")
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise InputError(
            f"the model must allow copy.deepcopy, since the caller's is never changed; it raised "
            f"{type(error).__name__}: {error}"
        ) from error


def unwrapped(model: nn.Module) -> nn.Module:
    """The network within ``DataParallel`` or ``DistributedDataParallel``; any other as it is."""
    while isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        model = model.module
    return model


def require_unquantised(state: Mapping[str, object], what: str) -> None:
    """Refuse weights that are packed into whole numbers or eight bits.

    Raises:
        InputError: There are some.
    """
    tensors = [value for value in state.values() if isinstance(value, Tensor) and not is_lazy(value)]
    # A name alone says nothing: a float network may have a parameter that is called weight_scale.
    small = any(value.dim() > 1 and value.dtype in _SMALL for value in tensors)
    for name, value in state.items():
        named = str(name).rpartition(".")[2] in _PACKED
        if (isinstance(value, Tensor) and not is_lazy(value) and value.is_quantized) or (
            named and (small or not isinstance(value, Tensor))
        ):
            raise InputError(f"{what} must be in floating point; {name} is of a quantised layer; {_ONLY_BITS}")


def _require_plain_modules(model: nn.Module) -> None:
    for name, module in model.named_modules():
        where = f"its part {name}" if name else "it"
        if "_orig_mod" in name.split(".") or type(module).__name__ == "OptimizedModule":
            raise InputError(
                "the model must not be compiled, since hooks do not see the layers of a compiled one; give the model "
                "that torch.compile was given (its _orig_mod), and compile the purified network"
            )
        if isinstance(module, torch.jit.ScriptModule):
            raise InputError(
                f"the model must be of Python modules, since hooks do not see the layers of TorchScript; {where} is "
                f"{type(module).__name__}; build the model from its Python class, and load the script's state_dict()"
            )
        origin = type(module).__module__
        if any(origin == package or origin.startswith(f"{package}.") for package in _QUANTISED_MODULES):
            raise InputError(
                f"the model must have floating-point weights; {where} is quantised "
                f"({origin}.{type(module).__name__}); {_ONLY_BITS}"
            )
        if type(module).__name__ in ("FullyShardedDataParallel", "FSDPModule"):
            raise InputError(
                f"the model must be whole on this machine; {where} is sharded ({type(module).__name__}); gather its "
                "full state dict, and load it into a plain copy of the model"
            )


def require_values(model: nn.Module, what: str) -> None:
    """Refuse a network whose tensors have no values, are sharded, or are quantised.

    Raises:
        InputError: Some are.
    """
    values = dict([*model.named_parameters(), *model.named_buffers()])
    for name, value in values.items():
        problem = None if is_lazy(value) else _unfit(value)
        if problem:
            raise InputError(f"{what} must have plain tensors with values; {name} {problem}")
    require_unquantised(values, what)
    parameters = [value for value in values.values() if isinstance(value, nn.Parameter)]
    if parameters and all(value.is_meta for value in parameters):
        raise InputError(
            f"{what} must have plain tensors with values; its weights are on the meta device, which has none; {_LOAD}"
        )


def is_lazy(value: object) -> bool:
    """Whether a tensor will be made when the network is called for the first time."""
    return isinstance(value, nn.UninitializedParameter | nn.UninitializedBuffer)


def _unfit(value: Tensor) -> str | None:
    """What is wrong with a tensor, and what to do; ``None`` if nothing is."""
    kind = type(value)
    if kind.__name__ == "DTensor":
        return (
            "is sharded over processes (DTensor); gather it with full_tensor(), or load the full state dict into a "
            "plain copy of the model"
        )
    if kind.__name__ == "FakeTensor":
        return f"is a FakeTensor, which has none; {_LOAD}"
    # Such a class computes its own operations, so that it need not be an array of values.
    if any("__torch_dispatch__" in vars(base) for base in kind.__mro__ if base not in Tensor.__mro__):
        return f"is a {kind.__module__}.{kind.__name__}, often quantised or sharded; {_ONLY_BITS}"
    return None
