"""Networks of Hugging Face folders: built by transformers from ``config.json``, filled from files that are read safely.

Only classes of the transformers package itself are built, on the CPU. Nothing is downloaded, and no code that comes
with a model is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.checkpoint import read_settings
from netpurify.errors import InputError
from netpurify.network.adapter.admission import require_unquantised
from netpurify.network.adapter.names import under_names_of
from netpurify.network.filling import check_shapes, fill

CONFIG = "config.json"
_REMOTE = ("auto_map", "trust_remote_code", "attn_implementation", "experts_implementation", "use_kernels")
"""Settings that can make transformers load code from elsewhere; names that begin with _ are its own notes."""
_REPEATED = re.compile("layer|block|depth|expert|stage")
"""Parts of the names of settings that say how many modules are built."""
_MOST_MODULES = 1_000
"""How many modules of one kind are believed at least, even if the file of weights has fewer tensors."""
_UNUSED = re.compile(
    r"(^|\.)(attn\.(masked_)?bias|attention\.(masked_)?bias|position_ids|rotary_emb\.inv_freq|embeddings\.token_type_ids)$"
)
"""Tables that older versions of transformers saved and that newer ones compute: they are no weights."""


def load_pretrained(weights: str | Path, *, config: str | Path | None = None) -> nn.Module:
    """The network of a Hugging Face folder, with its weights in the dtypes of the file, in evaluation mode.

    The class that ``architectures`` of ``config.json`` names is built by transformers, without a download and without
    code of the model's own. The weights are read by ``checkpoint.load_weights``, and are not copied. Names may have or
    lack the prefix of the network's body (``bert.``); tied weights may be stored once; everything else must fit.

    Args:
        weights: The folder, or a file of weights.
        config: The settings; by default ``config.json`` in the folder, or beside the file.

    Raises:
        InputError: Transformers is not installed or does not have this network, the settings are malformed or ask for
            code of their own, or the weights do not fit the network.
        CheckpointError: A file cannot be read safely.
    """
    weights = Path(weights)
    beside = (weights if weights.is_dir() else weights.parent) / CONFIG
    path = beside if config is None else Path(config)
    state = checkpoint.load_weights(weights)
    require_unquantised(state, str(weights))
    build = _builder(path, most=max(_MOST_MODULES, len(state)))
    network = _shell(build, state, path, weights)
    fill(network, _named(state, network), file=weights, builder=_builder_words(path))
    return network.eval()


def from_config(config: str | Path) -> nn.Module:
    """The network that settings describe, with random weights from torch's global generator.

    Raises:
        InputError: As for ``load_pretrained``.
        CheckpointError: The settings cannot be read.
    """
    return _builder(Path(config), most=_MOST_MODULES)()


def _builder_words(path: Path) -> tuple[str, str]:
    remedy = f"give the {CONFIG} of these weights, or a factory that builds a network with the names of the file"
    return f"that {path} describes", remedy


def _builder(path: Path, *, most: int) -> Callable[[], nn.Module]:
    """Builds the network that settings describe; ``most`` is how many modules of one kind are believed."""
    settings = read_settings(path)
    _require_sizes(path, settings, most)
    transformers = _transformers()
    if settings.get("quantization_config"):
        raise InputError(
            f"{path} must be of a network in floating point; it has a quantization_config; purify the model before "
            "it is quantised; quantised weights can only be compared bit for bit (netpurify diff, netpurify scan)"
        )
    with _own_errors(path), _offline():
        config = _config(path, settings, transformers)
        architecture = _architecture(path, settings, config, transformers)

    def build() -> nn.Module:
        with _own_errors(path), _offline():
            return architecture(config)

    return build


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as problem:
        raise InputError(
            f"a network is built from its {CONFIG} by transformers, which is not installed; "
            "pip install 'netpurify[hf]', or give a factory"
        ) from problem
    return transformers


def _config(path: Path, settings: Mapping[str, Any], transformers: Any) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise InputError(
            f"{path}: model_type must be one that transformers {transformers.__version__} has; got {str(kind)[:80]!r}; "
            f"{_without_own_code(settings)}"
        )
    return CONFIG_MAPPING[kind].from_dict(_cleaned(settings))


def _architecture(path: Path, settings: Mapping[str, Any], config: Any, transformers: Any) -> Any:
    """The class of the network: a public one of transformers, named exactly."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    names = settings.get("architectures") or []
    if not names and type(config) in MODEL_MAPPING:
        return MODEL_MAPPING[type(config)]
    name = names[0] if isinstance(names, list) and len(names) == 1 else None
    public = isinstance(name, str) and name.isidentifier() and not name.startswith("_")
    found = getattr(transformers, str(name), None) if public else None
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        raise InputError(
            f"{path}: architectures must name one network of transformers {transformers.__version__}; got "
            f"{str(names)[:80]}; {_without_own_code(settings)}"
        )
    if not isinstance(config, found.config_class or ()):
        raise InputError(
            f"{path}: the architecture must be of the model_type; {name} is not of {settings.get('model_type')!r}; "
            "get the file again"
        )
    return found


def _without_own_code(settings: Mapping[str, Any]) -> str:
    own = "code that comes with a model (auto_map) is not run; " if settings.get("auto_map") else ""
    return f"{own}install a version that has it, or give a factory"


def _cleaned(settings: Any) -> Any:
    """The settings without those that could make transformers fetch something."""
    if isinstance(settings, Mapping):
        kept = {
            name: _cleaned(value)
            for name, value in settings.items()
            if name not in _REMOTE and not str(name).startswith("_")
        }
        return kept | ({"use_pretrained_backbone": False} if "use_pretrained_backbone" in kept else {})
    return [_cleaned(value) for value in settings] if isinstance(settings, list) else settings


def _require_sizes(path: Path, settings: Any, most: int, name: str = "") -> None:
    """Refuse numbers of modules that the file of weights cannot fill: building them could take for ever."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            _require_sizes(path, value, most, str(key))
    elif isinstance(settings, list):
        for value in settings:
            _require_sizes(path, value, most, name)
    elif type(settings) is int and settings > most and _REPEATED.search(name) and not name.endswith(("_id", "_size")):
        raise InputError(
            f"{path}: {name} must be at most {most}, since there are no more tensors for them; got {settings}; get "
            "the settings of these weights"
        )


def _shell(build: Callable[[], nn.Module], state: Mapping[str, Tensor], path: Path, weights: Path) -> nn.Module:
    """The network with parameters on the meta device, once its shapes are known to be those of the weights."""
    try:
        with torch.device("meta"):
            outline = build()
    except InputError:  # some networks compute with values while they are built
        outline = None
    if outline is not None:
        # Without memory for anything: sizes that the file does not confirm are never allocated.
        check_shapes(outline, _named(state, outline), file=weights, builder=_builder_words(path))
    with _meta_parameters():
        return build()


def _named(state: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """The weights under the network's names, without tables that it computes itself."""
    own = network.state_dict()
    found = under_names_of(network, state)
    return {name: value for name, value in found.items() if name in own or not _UNUSED.search(name)}


@contextmanager
def _meta_parameters() -> Iterator[None]:
    """Parameters that are made within have no values, so that none are drawn that the file replaces; buffers have."""
    plain = nn.Module.register_parameter

    def register(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        plain(self, name, param)
        if param is not None and not param.is_meta:
            self._parameters[name] = nn.Parameter(param.detach().to("meta"), requires_grad=param.requires_grad)

    nn.Module.register_parameter = register
    try:
        yield
    finally:
        nn.Module.register_parameter = plain


@contextmanager
def _offline() -> Iterator[None]:
    """Whatever asks the hub within is refused."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _own_errors(path: Path) -> Iterator[None]:
    """What transformers raises on settings becomes an ``InputError``."""
    try:
        yield
    except (InputError, KeyboardInterrupt):
        raise
    except Exception as error:
        first = str(error).split("\n", maxsplit=1)[0][:300]
        raise InputError(
            f"{path} must describe a network that transformers can build; it raised {type(error).__name__}: {first}; "
            "get the file again, install what it asks for, or give a factory"
        ) from error
