"""Hugging Face folders as sources and targets of commands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import netpurify
from netpurify.cli.screen import note
from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

_INDEX = ".index.json"
_SHOWN = 5


def writes_folder(weights: Path, out: Path) -> bool:
    """Whether ``-o`` names a folder: the weights came in one, and it is not called like a file of weights."""
    return out.suffix != ".safetensors" and (weights.is_dir() or weights.name.endswith(_INDEX))


def check_new_folder(weights: Path, out: Path, others: Iterable[Path | None], *, force: bool) -> None:
    """Refuse a folder that could not be written like the one of the weights, before the long work.

    Args:
        weights: The folder or index that was read.
        out: The folder to write.
        others: Other files that the command writes, which must lie outside of it.
        force: Whether a folder that is there may be replaced.

    Raises:
        InputError: It cannot be written.
        CheckpointError: The weights cannot be read safely.
    """
    place = Path(os.path.realpath(out))
    if place == Path(os.path.realpath(_folder(weights))):
        raise InputError(f"{out} is an input, which is never overwritten; name another folder")
    for other in others:
        if other is not None and Path(os.path.realpath(other)).is_relative_to(place):
            raise InputError(f"{other} must lie outside of {out}, which will hold weights alone; name another place")
    if os.path.lexists(out) and not force:
        raise InputError(f"{out} is there already; name another folder, or give --force to replace it")
    netpurify.checkpoint.check_like(weights, out, replace=force)


def save_folder(
    state: Mapping[str, Tensor], weights: Path, out: Path, *, metadata: Mapping[str, str], force: bool
) -> None:
    """Write weights in the shards of the folder from which they came, and say what of it was not copied.

    Raises:
        InputError: There are weights that the folder has no place for.
        CheckpointError: They could not be written.
    """
    with netpurify.checkpoint.open_weights(weights) as opened:
        known = set(opened.entries)
    # Of tied weights a folder has one copy, under one of their names.
    places = {value.data_ptr() for name, value in state.items() if name in known}
    more = [name for name, value in state.items() if name not in known and value.data_ptr() not in places]
    if more:
        shown = ", ".join(more[:_SHOWN]) + (" and more" if len(more) > _SHOWN else "")
        raise InputError(
            f"{out} can hold the tensors of {weights} alone; the network has others too: {shown}; give -o a name that "
            "ends in .safetensors"
        )
    kept = {name: value for name, value in state.items() if name in known}
    left = netpurify.checkpoint.save_like(weights, out, kept, metadata=metadata, replace=force)
    if left:
        note(f"not copied to {out}: {', '.join(left)}")


def note_others(path: Path) -> None:
    """Say which other files of a folder may hold weights too, since nothing is said about them."""
    others = netpurify.checkpoint.find_files(path).others
    if others:
        note(f"not read, though it may hold weights too, in {_folder(path)}: {', '.join(others)}")


def same_weights(first: Path, second: Path) -> bool:
    """Whether two paths lead to the same files of weights, such as a folder and the one file in it.

    Raises:
        CheckpointError: A folder or an index is damaged.
    """
    if first.samefile(second):
        return True
    if not any(path.is_dir() or path.name.endswith(_INDEX) for path in (first, second)):
        return False
    files = [{os.path.realpath(shard) for shard in netpurify.checkpoint.find_files(path).shards}
             for path in (first, second)]  # fmt: skip
    return files[0] == files[1]


def within_input(path: Path, source: Path) -> bool:
    """Whether a file that is there belongs to a folder that is read, or lies beside the index of shards that is."""
    if not os.path.lexists(path) or not (source.is_dir() or source.name.endswith(_INDEX)):
        return False
    # Not where links lead: in a cache of models, the files of a folder are links to other places.
    return Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(_folder(source)))


def _folder(weights: Path) -> Path:
    return weights.parent if weights.name.endswith(_INDEX) else weights
