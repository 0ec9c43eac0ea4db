"""Entries of a table about which there is the same to say are counted in one line, so that the others are seen."""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from netpurify.network import LayerRecord, Skipped
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import plural

_FEW = 4
"""Fewer entries of a kind are listed one by one: that costs no more room than to count them."""
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Folded(Generic[Entry]):
    """Entries to be listed, and groups of others to be counted.

    Attributes:
        listed: Those that are listed one by one, in their order.
        groups: Four or more entries each, of which the same is said.
    """

    listed: list[Entry]
    groups: list[list[Entry]]


def fold(entries: Sequence[Entry], key: Callable[[Entry], Hashable | None]) -> Folded[Entry]:
    """Gather entries with the same key; those whose key is ``None``, or that are few, are listed."""
    groups: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        if (found := key(entry)) is not None:
            groups.setdefault(found, []).append(entry)
    large = {found: group for found, group in groups.items() if len(group) >= _FEW}
    return Folded([entry for entry in entries if key(entry) not in large], list(large.values()))


def fold_healthy(layers: Sequence[LayerRecord]) -> Folded[LayerRecord]:
    """Layers in which something was found come first; those that are intact are counted if they are many."""
    ordered = sorted(layers, key=lambda layer: not layer.affected)
    return fold(ordered, lambda layer: None if layer.affected else layer.frozen)


def fold_skipped(skipped: Sequence[Skipped]) -> Folded[Skipped]:
    """What was not examined: first what should have been; of the rest, the same kind for the same reason is counted."""
    ordered = sorted(skipped, key=lambda module: not module.missed)
    return fold(ordered, lambda module: (module.missed, module.kind, same_reason(module.reason)))


def unsettled(skipped: Sequence[Skipped]) -> list[Skipped]:
    """Without modules of which every tensor was compared and has its initial bits: those are told of by tensor."""
    return [module for module in skipped if not module.settled]


def same_reason(reason: str) -> str:
    """What two reasons have in common that differ in their figures alone."""
    return re.sub(r"\d[\d,.]*", "0", reason)


def healthy_words(group: Sequence[LayerRecord]) -> str:
    """What is said of layers that are intact."""
    layers, units = plural(len(group), "layer"), plural(sum(layer.units for layer in group), "unit")
    if all(layer.frozen for layer in group):
        return f"{layers} intact ({units}): never trained, and every weight has its initial bits"
    return f"{layers} intact ({units}): certified, nothing to replace"


def skipped_words(group: Sequence[Skipped]) -> str:
    """What is said of modules that were not examined for the same reason."""
    reasons = {module.reason for module in group}
    example = "" if len(reasons) == 1 else f"; this is said of {module_name(group[0].name)}"
    return f"{len(group)} {group[0].kind}: {group[0].reason}{example}"
