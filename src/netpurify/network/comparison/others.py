"""Everything in a network that is not written as regressions: compared with its initial value, and restored."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from netpurify.network.adapter.reference import UNEXAMINED, Skipped, own_tensors
from netpurify.network.comparison.comparing import Options, compare_tensors, require_matches
from netpurify.network.comparison.records import Entries, TensorComparison, TensorVerdict
from netpurify.network.comparison.settling import ROUNDED
from netpurify.network.prepared import Network
from netpurify.network.records import Altered, Grade


def restore_others(network: Network, frozen: Sequence[str] = ()) -> tuple[TensorComparison, ...]:
    """Compare every tensor with its initial value; set back what is altered in those that are not part of a layer.

    Tensors that were never trained get their initial bits again. In trained ones, entries that are impossible take
    their initial values, which are approximately right. ``network.skipped`` says afterwards what is known of each
    module, ``network.frozen`` which layers were never trained, and ``network.rounded_away`` whether steps of training
    were rounded away. If layers were chosen by name, nothing is set back, since the others are not asked for.

    Args:
        network: The network; its copy of the model is changed.
        frozen: Patterns of names of tensors that were never trained.
    """
    if network.initial is None:
        return ()
    examined = {tensor for layer in network.layers for tensor in layer.tensors}
    examined |= {name for layer in network.layers for name, _ in layer.form.tied}
    tensors = {name: tensor for name, tensor, _ in _tensors(network.model) if name in network.contaminated}
    contaminated = {name: network.contaminated[name] for name in tensors}
    options = Options(tuple(frozen))
    require_matches(options, contaminated)
    everything = compare_tensors(contaminated, network.initial, options)
    settled = {one.name for one in everything if one.verdict in (TensorVerdict.SAME, TensorVerdict.ALTERED)}
    settled |= {name for name, first in _aliases(network.model) if first in settled}
    network.frozen = frozenset(layer.name for layer in network.layers if settled.issuperset(layer.tensors))
    network.rounded_away = any(one.reason == ROUNDED for one in everything)
    if network.chosen is not None:
        return ()
    network.compared_layers = tuple(one for one in everything if one.name in examined)
    found = tuple(one for one in everything if one.name not in examined)
    for one in found:
        if one.verdict == TensorVerdict.ALTERED:
            with torch.no_grad():  # in half precision the working copy is float32, and training saw unrounded weights
                tensors[one.name].copy_(network.initial[one.name])
        elif len(one.impossible):
            _write(tensors[one.name], one.impossible)
    network.skipped = _settle(network, {one.name: one for one in found}, examined)
    return found


def restored_entries(compared: Sequence[TensorComparison]) -> Altered:
    """All entries that were set back, as a table; of a trained tensor they are only approximately right."""
    return Altered.join([_table(one.name, one.altered, Grade.RESTORED) for one in compared]
                        + [_table(one.name, one.impossible, Grade.APPROXIMATE) for one in compared])  # fmt: skip


def standing_out(compared: Sequence[TensorComparison]) -> Altered:
    """All entries that stand far out of a trained tensor and were left as they are, as a table."""
    tables = [_table(one.name, one.outliers, Grade.LEFT_ALONE) for one in compared]
    return Altered.join([replace(table, now=table.was) for table in tables])


def standing_out_of_layers(compared: Sequence[TensorComparison], told: Sequence[Altered]) -> Altered:
    """Entries of layers that no training leaves or that stand far out, of which nothing was told so far.

    Args:
        compared: The tensors of the layers beside their initial values.
        told: What was replaced or listed already.
    """
    known: dict[str, list[NDArray[np.int64]]] = {}
    for table in told:
        for number, name in enumerate(table.names):
            known.setdefault(name, []).append(table.index[table.tensor == number])
    tables = []
    for one in compared:
        for entries in (one.impossible, one.outliers):
            new = ~np.isin(entries.index, np.concatenate([np.zeros(0, np.int64), *known.get(one.name, [])]))
            kept = Entries(entries.index[new], entries.was[new], entries.base[new])
            tables.append(replace(_table(one.name, kept, Grade.LEFT_ALONE), now=kept.was))
    return Altered.join(tables)


def _table(name: str, entries: Entries, grade: Grade) -> Altered:
    grades = np.full(len(entries), grade, np.int8)
    return Altered(
        np.zeros(len(entries), np.int32), entries.index, entries.was, entries.base, grade=grades, names=(name,)
    )


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor, str]]:
    """Name, tensor and module of every tensor in a network's state; a shared one comes once, by its first name."""
    seen: set[int] = set()
    for name, module in model.named_modules():
        for key, value in own_tensors(module, name):
            if id(value) not in seen:
                seen.add(id(value))
                yield key, value, name


def _aliases(model: nn.Module) -> Iterator[tuple[str, str]]:
    """Further names of shared tensors, each with the first name of its tensor."""
    first: dict[int, str] = {}
    for name, module in model.named_modules():
        for key, value in own_tensors(module, name):
            if first.setdefault(id(value), key) != key:
                yield key, first[id(value)]


def _write(tensor: Tensor, entries: Entries) -> None:
    with torch.no_grad():
        flat = tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
        flat[torch.from_numpy(entries.index).to(tensor.device)] = torch.from_numpy(entries.base).to(flat)
        tensor.copy_(flat.reshape(tensor.shape))


def _settle(network: Network, found: dict[str, TensorComparison], examined: set[str]) -> list[Skipped]:
    """What is known of each module, or part of one, that is not examined, or has tensors that are not."""
    by_name = {skip.name: skip for skip in network.skipped}
    kinds = {name: type(module).__name__ for name, module in network.model.named_modules()}
    own: dict[str, list[TensorComparison]] = {name: [] for name in by_name}
    for key, _, module in _tensors(network.model):
        if key not in examined and key in found:
            part = key if key in by_name else module  # a module with several weights is several parts, named after them
            own.setdefault(part, []).append(found[key])
    for name, compared in own.items():
        skip = by_name.get(name)
        told = _told(skip, name, kinds[name] if skip is None else skip.kind, compared)
        if told is not None:
            by_name[name] = told
    return list(by_name.values())


def _told(skip: Skipped | None, name: str, kind: str, compared: list[TensorComparison]) -> Skipped | None:
    """A module that is not examined, with what the comparison shows of it; ``None`` if there is nothing to say."""
    open_ones = [one for one in compared if one.verdict in (TensorVerdict.TRAINED, TensorVerdict.UNKNOWN)]
    altered = sum(one.altered_count for one in compared)
    if open_ones:
        if skip is not None and skip.missed:
            return skip
        first = next((one for one in open_ones if one.verdict == TensorVerdict.UNKNOWN), open_ones[0])
        reason = "it differs from its initial weights"
        if first.verdict == TensorVerdict.UNKNOWN:
            reason = f"it has no initial {first.name}" + (f" to compare: {first.reason}" if first.base_dtype else "")
        return Skipped(name, kind, f"{reason}, {UNEXAMINED}", missed=True)
    if not compared:  # all that it has is shared with a module that comes before
        return skip
    if altered:
        total = sum(one.entries for one in compared)
        reason = f"never trained: {altered} of {total} weights differed from the initial ones, and were set back"
        return Skipped(name, kind, reason, settled=True)
    return None if skip is None else replace(skip, missed=False, settled=True)
