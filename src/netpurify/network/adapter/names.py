"""Which tensor of a network a name in a file means: prefixes may be there or lack, and versions have other names."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from torch import nn

_Value = TypeVar("_Value")
_WRAPPERS = ("module.", "_orig_mod.")
"""What ``DataParallel`` and ``torch.compile`` put before every name."""
_LEGACY = {"gamma": "weight", "beta": "bias"}
"""Names of LayerNorm's weights in the oldest files."""


def under_names_of(model: nn.Module, state: Mapping[str, _Value]) -> dict[str, _Value]:
    """Weights under the names of a network, as far as ``names_in`` finds them."""
    return {name: state[given] for given, name in names_in(model, state).items()}


def names_in(model: nn.Module, names: Iterable[str]) -> dict[str, str]:
    """For each name of a file, the name of the same tensor in a network; a name that is not known stays as it is.

    - If no name is one of the network's, a prefix ``module.`` or ``_orig_mod.`` that all of them have is taken off.
    - Files of a network of transformers may have or lack the prefix of its body, such as ``bert.``, and may have the
      names of another version of transformers, which knows them. No tensor is joined, split or turned.
    """
    own = set(model.state_dict())
    bare = _unwrapped(list(names), own)
    body, modern = _transformers_names(model)
    found: dict[str, str] = {}
    taken = own.intersection(bare.values())
    for given, name in bare.items():
        best = name if name in own else _best(name, own, body, modern)
        if best != name and best in taken:
            best = name
        taken.add(best)
        found[given] = best
    return found


def _unwrapped(names: Collection[str], own: Collection[str]) -> dict[str, str]:
    bare = {name: name for name in names}
    while bare and own and not any(name in own for name in bare.values()):
        shared = next((prefix for prefix in _WRAPPERS if all(one.startswith(prefix) for one in bare.values())), None)
        if shared is None:
            break
        bare = {name: one.removeprefix(shared) for name, one in bare.items()}
    return bare


def _best(name: str, own: Collection[str], body: str, modern: Callable[[str], str]) -> str:
    for one in (name, modern(name)):
        others = (one, f"{body}.{one}", one.removeprefix(f"{body}.")) if body else (one,)
        for other in (*others, *map(modern, others)):
            if other in own:
                return other
    return name


def _transformers_names(model: nn.Module) -> tuple[str, Callable[[str], str]]:
    """The name of the network's body, and what makes today's names of other versions' ones."""
    library = sys.modules.get("transformers")  # where it was not imported, the network is not one of its own
    if library is None or not isinstance(model, library.PreTrainedModel):
        return "", lambda name: name
    return str(model.base_model_prefix or ""), _renaming(model)


def _renaming(model: Any) -> Callable[[str], str]:
    try:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import WeightRenaming, rename_source_key

        changes = [change for change in get_model_conversion_mapping(model) if isinstance(change, WeightRenaming)]
    except (ImportError, TypeError, AttributeError):  # versions before 5 keep the names of their files
        return _modern
    return lambda name: _modern(rename_source_key(name, changes, [])[0])


def _modern(name: str) -> str:
    head, _, tail = name.rpartition(".")
    return f"{head}.{_LEGACY[tail]}" if tail in _LEGACY else name
