"""How reports name modules, tensors and policies."""

from collections.abc import Iterable, Sequence
from typing import Any

from netpurify.network import Skipped

_MOST_NAMED = 5
"""Modules that a sentence names; further ones are counted."""
_OTHER_KINDS = (
    "modules of a kind that is not examined, which differ from their initial weights or have none, so that they may "
    "have been trained, or altered"
)


def module_name(name: str) -> str:
    """The name of a module in the network; the root module has none, so this gives it one."""
    return name or "the network itself"


def policy_name(result: Any) -> str:
    """The name of the policy that made a result."""
    return getattr(result.policy, "name", result.policy)


def missed_modules(skipped: Iterable[Skipped], words: str) -> list[str]:
    """Modules whose weights nobody knows to be right, by name.

    Args:
        skipped: What was not examined.
        words: What the sentence says about Linear and Conv layers.

    Returns:
        At most two clauses: one about Linear and Conv layers, one about modules of other kinds.
    """
    missed = [module for module in skipped if module.missed]
    layers = [_quoted(module.name) for module in missed if not module.changed]
    others = [_quoted(module.name) for module in missed if module.changed]
    return [f"{text}: {first_few(names)}" for text, names in ((words, layers), (_OTHER_KINDS, others)) if names]


def first_few(names: Sequence[str]) -> str:
    """The first few of many names; further ones are counted."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _quoted(name: str) -> str:
    """A name in quotes, because a layer may be called 0."""
    return f'"{name}"' if name else module_name(name)
