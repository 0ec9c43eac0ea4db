"""Read a folder that PEFT wrote: ``adapter_config.json`` and ``adapter_model.safetensors``. Neither is trusted.

Of PEFT's methods only LoRA is known here. Whatever would make the change something else than a product of two factors
is refused by name.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from netpurify.checkpoint import load_weights, open_regular
from netpurify.errors import CheckpointError, InputError

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_LARGEST_CONFIG = 1 << 20
"""Bytes that a configuration may have; PEFT's have some thousand."""
_PREFIX = "base_model.model."
_CHANGES_THE_SUM = (
    "use_dora", "use_qalora", "use_bdlora", "alora_invocation_tokens", "trainable_token_indices", "layer_replication",
    "target_parameters", "megatron_config", "arrow_config", "kasa_config", "monteclora_config", "velora_config",
)  # fmt: skip
"""Options of LoRA in PEFT with which merged weights are not base + scale * B A; refused if they are set."""
_KEEPS_THE_BASE = (True, False, None, "gaussian", "orthogonal", "eva")
"""Values of ``init_lora_weights`` that leave the base as it was. Others, such as PiSSA, subtract the first product."""
_FACTORS = (".lora_A.weight", ".lora_B.weight", ".lora_embedding_A", ".lora_embedding_B", ".lora_B.bias")


@dataclass(frozen=True, slots=True)
class Factors:
    """The change of one module's weight: scale * up @ down, and of its bias: scale * bias.

    Attributes:
        down: ``lora_A``, [rank, inputs] or, for convolutions, [rank, inputs, ...]; for embeddings [rank, entries].
        up: ``lora_B``, [outputs, rank] or, for convolutions, [outputs, rank, 1, ...].
        scale: alpha / rank, or alpha / sqrt(rank).
        transposed: Whether the weight is [inputs, outputs], as in an embedding or in transformers' Conv1D.
        bias: The bias of ``lora_B``, if it has one.
    """

    down: Tensor
    up: Tensor
    scale: float
    transposed: bool
    bias: Tensor | None = None

    @property
    def rank(self) -> int:
        """How many directions the change has at most."""
        return self.down.shape[0]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter as PEFT writes it.

    Attributes:
        factors: By name of the module in the base.
        whole: Tensors that take the place of the base's, by their name in the base: biases, ``modules_to_save``.
    """

    factors: Mapping[str, Factors]
    whole: Mapping[str, Tensor]


def load_adapter(folder: str | Path) -> Adapter:
    """Read a LoRA adapter from a folder that PEFT wrote; nothing in it is run.

    Args:
        folder: Has ``adapter_config.json`` and ``adapter_model.safetensors``.

    Raises:
        CheckpointError: A file is not there, too large or damaged.
        InputError: The adapter is of another kind than LoRA, or uses an option that cannot be merged by a sum.
    """
    folder = Path(folder)
    config = _config(folder / CONFIG)
    _require_lora(folder, config)
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(
            f"{folder} must have {WEIGHTS}, which is not there; a pickle (adapter_model.bin) is not read: "
            "load the adapter with PEFT and save it again with safe_serialization=True"
        )
    modules: dict[str, dict[str, Tensor]] = {}
    whole: dict[str, Tensor] = {}
    for name, value in load_weights(folder / WEIGHTS).items():
        plain = name.removeprefix(_PREFIX)
        suffix = next((suffix for suffix in _FACTORS if plain.endswith(suffix)), None)
        if not value.is_floating_point():
            raise InputError(f"{folder}: {name} must have a floating dtype; got {value.dtype}")
        if suffix is not None:
            modules.setdefault(plain.removesuffix(suffix), {})[suffix] = value
        elif plain.rpartition(".")[2] in ("weight", "bias") and "lora_" not in plain:
            whole[plain.replace(".base_layer.", ".")] = value
        else:
            raise InputError(f"{folder}: {name} is no part of a LoRA adapter that can be merged by a sum")
    if not modules and not whole:
        raise InputError(f"{folder}: the adapter must change something; {WEIGHTS} has no tensors")
    return Adapter({name: _factors(folder, name, parts, config) for name, parts in modules.items()}, whole)


def _config(path: Path) -> dict[str, Any]:
    try:
        with open_regular(path) as stream:
            text = stream.read(_LARGEST_CONFIG + 1)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}; give the folder that PEFT wrote") from error
    if len(text) > _LARGEST_CONFIG:
        raise CheckpointError(f"{path} must have at most {_LARGEST_CONFIG} bytes, as every configuration of PEFT has")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} must be JSON, as PEFT writes it; it is damaged") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} must hold one JSON object, as PEFT writes it; got {type(config).__name__}")
    return config


def _require_lora(folder: Path, config: Mapping[str, Any]) -> None:
    kind = config.get("peft_type")
    if kind != "LORA":
        raise InputError(f"{folder}: only adapters of the type LORA can be checked; this one is {_short(kind)}")
    for option in _CHANGES_THE_SUM:
        if config.get(option):
            raise InputError(f"{folder}: an adapter with {option} is not the sum of base and product; it is not known")
    start = config.get("init_lora_weights", True)
    if not isinstance(start, bool | str | None) or (start not in _KEEPS_THE_BASE):
        raise InputError(
            f"{folder}: an adapter that began with init_lora_weights={_short(start)} may have changed its base; "
            "convert it to plain LoRA when it is saved (path_initial_model_for_weight_conversion of PEFT)"
        )
    for option in ("alpha_pattern", "rank_pattern"):
        pattern = config.get(option) or {}
        if not isinstance(pattern, dict) or not all(_is_number(value) for value in pattern.values()):
            raise CheckpointError(f"{folder}: {option} must give a number for each name; got {_short(pattern)}")
        odd = [key for key in pattern if not all(mark.isalnum() or mark in "._-" for mark in _literal(key))]
        if odd:
            raise InputError(f"{folder}: {option} must have plain names of modules; {_short(odd[0])} is a pattern")


def _factors(folder: Path, module: str, parts: Mapping[str, Tensor], config: Mapping[str, Any]) -> Factors:
    embedded = ".lora_embedding_A" in parts
    down, up = (parts.get(name) for name in (_FACTORS[2:4] if embedded else _FACTORS[:2]))
    if (
        down is None
        or up is None
        or down.dim() < 2
        or up.dim() < 2
        or up.shape[1] != down.shape[0]
        or not down.shape[0]
    ):
        shapes = {name: list(value.shape) for name, value in parts.items()}
        raise InputError(f"{folder}: {module} must have two factors [rank, inputs] and [outputs, rank]; got {shapes}")
    rank, alpha = (_matching(config, option, module, config.get(single)) for option, single in
                   (("rank_pattern", "r"), ("alpha_pattern", "lora_alpha")))  # fmt: skip
    if rank != down.shape[0] or not _is_number(alpha):
        raise InputError(
            f"{folder}: {module} must have the rank {_short(rank)} and a number as lora_alpha, by {CONFIG}; "
            f"its factors have rank {down.shape[0]}, and lora_alpha is {_short(alpha)}"
        )
    divisor = math.sqrt(rank) if config.get("use_rslora") else rank
    transposed = embedded or bool(config.get("fan_in_fan_out"))
    return Factors(down, up, alpha / divisor, transposed, parts.get(".lora_B.bias"))


def _matching(config: Mapping[str, Any], option: str, module: str, otherwise: Any) -> Any:
    """What a pattern says of a module: that of the first key with which the module's name ends, at a full stop."""
    for key, value in (config.get(option) or {}).items():
        name = _literal(key)
        if module == name or (not key.startswith("^") and module.endswith("." + name)):
            return value
    return otherwise


def _literal(key: str) -> str:
    return key.removeprefix("^").replace(r"\.", ".")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _short(value: object) -> str:
    return repr(value)[:80]
