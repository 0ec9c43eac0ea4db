"""Weights written in the form in which they came: the same shards, order, dtypes, metadata and index.

One tensor is in memory at a time. What was not replaced is copied byte by byte, so that a model in which nothing
changed gives the same files.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from torch import Tensor

from netpurify.atomic import PARTIAL, check_folder_target, check_target, write_atomically, write_folder
from netpurify.checkpoint.mapping import open_regular
from netpurify.checkpoint.model_files import INDEX, ModelFiles
from netpurify.checkpoint.safetensors_files import head_with
from netpurify.checkpoint.shards import SafetensorsShard, TensorEntry
from netpurify.checkpoint.tensors import raw_bytes, require_plain
from netpurify.checkpoint.weights import require_texts
from netpurify.checkpoint.weights_file import WeightsFile, open_weights
from netpurify.errors import CheckpointError, InputError

COPIED = (".json", ".txt", ".model", ".jinja", ".tiktoken")
"""Suffixes of the small files beside weights that are copied: configurations, tokenizers and their templates."""
LARGEST_COPIED = 1 << 26
"""Bytes of such a file; the largest tokenizers have half of that."""
_PICKLES = (b"PK", b"\x80")
"""How pickles and archives with pickles begin; no configuration or tokenizer does."""
_CHUNK = 1 << 22
_SHOWN = 5

Replacements = Mapping[str, Tensor] | Callable[[str], Tensor | None]
Choice = Callable[[str], Tensor | None]


def save_like(
    source: str | Path,
    target: str | Path,
    tensors: Replacements,
    *,
    metadata: Mapping[str, str] | None = None,
    replace: bool = False,
) -> tuple[str, ...]:
    """Writes the weights of ``source`` to ``target`` with some tensors replaced, whole or not at all.

        save_like("model", "repaired", {"lm_head.weight": weight})

    A folder gives a folder with the same shards and the same index; a file gives a file. Small files beside the weights
    (``COPIED``: config.json, tokenizers) are copied; programs and pickles never are. The folder is written beside
    ``target`` under another name and renamed when all of it is on the disk.

    Args:
        source: A safetensors file, a Hugging Face folder of such files, or an index of shards.
        target: The new file or folder.
        tensors: What replaces a tensor, by name, with the same dtype and shape; or a function that gives it for a name,
            or ``None`` where the tensor is to stay. It is called once for each name, in the order of the files.
        metadata: Text by name, added to that of every shard.
        replace: Whether a target that is there already may be replaced. A folder is replaced only if it holds nothing
            but files of the kinds that this function writes.

    Returns:
        The names in the source's folder that were not copied.

    Raises:
        InputError: The target is there already, a name is not in the source, a tensor has another dtype or shape, or
            the source is a file of ``torch.save``.
        CheckpointError: The source cannot be read safely, or the target could not be written.
    """
    target, notes = Path(target), dict(metadata or {})
    require_texts(notes)
    with open_weights(source) as weights:
        _check(weights, target, replace=replace)
        choice = _choice(weights, tensors)
        try:
            if weights.files.folder is None:
                with write_atomically(target) as stream:
                    _write(stream, _shards(weights)[0], weights, choice, notes)
                return ()
            return _write_folder(weights, target, choice, notes, replace=replace)
        except OSError as problem:
            raise CheckpointError(
                f"{target}: the weights must be written to a folder that is there; {problem.strerror}; nothing was "
                "changed; make room or choose another place"
            ) from problem


def check_like(source: str | Path, target: str | Path, *, replace: bool = False) -> None:
    """Refuse what ``save_like`` would refuse, before the long work whose result it is to write.

    Raises:
        InputError: The target is there already, is of another kind, or lies in a folder that is not there; or the
            source is a file of ``torch.save``.
        CheckpointError: The source cannot be read safely.
    """
    with open_weights(source) as weights:
        _check(weights, Path(target), replace=replace)


def _check(weights: WeightsFile, target: Path, *, replace: bool) -> None:
    pickled = [path.name for path, shard in weights.shards.items() if not isinstance(shard, SafetensorsShard)]
    if pickled:
        raise InputError(
            f"{weights.files.path} must hold safetensors to be written again in the same form; {pickled[0]} is a file "
            "of torch.save, which is never written; save the weights as one .safetensors file"
        )
    whole = weights.files.folder is not None
    try:
        if os.path.lexists(target) and not replace:
            raise InputError(f"{target} is there already; name another place, or ask for it to be replaced")
        (check_folder_target(target, replace=replace) if whole else check_target(target))
        if not target.absolute().parent.is_dir():
            raise InputError(f"{target} cannot be written: there is no folder {target.parent}; make it first")
        if whole and target.exists():
            _require_ours(target)
    except OSError as problem:
        kind = "folder" if whole else "file"
        raise InputError(
            f"{target} must be a place for a {kind}, since {weights.files.path} is one; {problem.strerror}; "
            "name another place"
        ) from problem


def _require_ours(folder: Path) -> None:
    """A folder that is replaced is deleted: it may hold nothing that somebody else put there."""
    foreign = [path.name for path in sorted(folder.iterdir()) if path.is_dir() or not _is_ours(path.name)]
    if foreign:
        raise InputError(
            f"{folder} must hold weights and their small files alone to be replaced; it holds {_some(foreign)}; remove "
            "that yourself, or name another folder"
        )


def _is_ours(name: str) -> bool:
    return name.endswith((".safetensors", *COPIED))


def _choice(weights: WeightsFile, tensors: Replacements) -> Choice:
    """The replacement of a tensor by its name, checked."""
    if isinstance(tensors, Mapping):
        unknown = [name for name in tensors if name not in weights.entries]
        if unknown:
            raise InputError(
                f"every tensor must be one of {weights.files.path}; it has no {_some(unknown)}; leave them out, or "
                "write all weights with save_weights"
            )
        for name, tensor in tensors.items():  # before anything is written
            _fitting(name, tensor, weights.entries[name])
    give: Choice = tensors.get if isinstance(tensors, Mapping) else tensors

    def choose(name: str) -> Tensor | None:
        found = give(name)
        return None if found is None else _fitting(name, found, weights.entries[name])

    return choose


def _fitting(name: str, tensor: Tensor, entry: TensorEntry) -> Tensor:
    require_plain({name: tensor})
    if (tensor.dtype, tensor.shape) != (entry.dtype, entry.shape):
        raise InputError(
            f"{name} must be {entry.dtype} of shape {list(entry.shape)} as it is in {entry.file.name}; got "
            f"{tensor.dtype} of shape {list(tensor.shape)}; convert it"
        )
    return tensor


def _write_folder(
    weights: WeightsFile, target: Path, choice: Choice, notes: dict[str, str], *, replace: bool
) -> tuple[str, ...]:
    files = weights.files
    with write_folder(target, replace=replace) as folder:
        for shard in _shards(weights):
            with (folder / shard.path.name).open("xb") as stream:
                _write(stream, shard, weights, choice, notes)
        if files.index is not None:
            (folder / files.index.name).write_bytes(files.index_text)
        return _copy_small(files, folder)


def _shards(weights: WeightsFile) -> list[SafetensorsShard]:
    return [shard for shard in weights.shards.values() if isinstance(shard, SafetensorsShard)]


def _write(
    stream: BinaryIO, shard: SafetensorsShard, weights: WeightsFile, choice: Choice, notes: dict[str, str]
) -> None:
    """One shard: its header as it is, then its tensors in their order."""
    names = {entry.written: name for name, entry in weights.entries.items() if entry.file == shard.path}
    head = shard.take(0, shard.header.end)
    stream.write(head_with(head, notes) if notes else head)
    for written, entry in shard.in_order():
        tensor = choice(names[written])
        if tensor is not None:
            stream.write(raw_bytes(tensor).data)
            continue
        start, stop = shard.header.end + entry.start, shard.header.end + entry.stop
        for at in range(start, stop, _CHUNK):
            stream.write(shard.take(at, min(_CHUNK, stop - at)))


def _copy_small(files: ModelFiles, folder: Path) -> tuple[str, ...]:
    """Copies configurations and tokenizers, and names what was left."""
    assert files.folder is not None
    left = []
    for path in sorted(files.folder.iterdir()):
        if path in files.shards or path == files.index or path.name.startswith(PARTIAL):  # perhaps our own
            continue
        content = None if path.name.endswith(INDEX) or not path.name.endswith(COPIED) else _small(path)
        if content is None:
            left.append(path.name)
        else:
            (folder / path.name).write_bytes(content)
    return tuple(left)


def _small(path: Path) -> bytes | None:
    """The content of a small file; ``None`` if it is none, or begins as a pickle does."""
    try:
        with open_regular(path) as stream:
            content = stream.read(LARGEST_COPIED + 1)
    except OSError:  # a folder, a pipe, a link that leads nowhere
        return None
    return None if len(content) > LARGEST_COPIED or content.startswith(_PICKLES) else content


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
