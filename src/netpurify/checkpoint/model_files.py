"""Which files hold the weights of a model: one file, or the shards that an index lists, in a Hugging Face folder.

An index is untrusted text. It can name files of its own folder alone, and only what the files confirm is believed.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from netpurify.checkpoint.mapping import open_regular
from netpurify.checkpoint.safetensors_files import without_duplicates
from netpurify.errors import CheckpointError

INDEX = ".index.json"
"""What the name of an index ends in."""
STEMS = ("model.safetensors", "pytorch_model.bin", "diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin")
"""Names of a whole model within a folder, in the order in which they are looked for; with ``INDEX``, of its index."""
LARGEST_INDEX = 1 << 25
"""Bytes; the largest published models, of 150,000 tensors, have an index of about half of that."""
MOST_TENSORS = 1 << 18
"""Tensors that an index may list; commas and quotes are counted before they become objects."""
MOST_SHARDS = 1000
"""Each shard keeps one file open while it is in use, and a process may have some thousand of them."""
WEIGHT_SUFFIXES = frozenset(
    {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".gguf", ".h5", ".msgpack", ".onnx", ".npz", ".nemo"}
)
"""Suffixes of files that may hold weights, in this and other formats."""
_SHARD_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")
_MOST_BRACKETS = 1000
_LONGEST_NAME = 255
_SHOWN = 8
_GET_AGAIN = "the index is damaged or forged, get it again, or have the program that wrote the shards write it again"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model.

    Attributes:
        path: What was asked for.
        shards: File -> the names of the tensors that the index says are in it, or ``None`` without an index.
        folder: The folder, if a folder or an index was asked for.
        index: The index file, if there is one.
        index_text: Its bytes, as they were checked.
    """

    path: Path
    shards: dict[Path, frozenset[str] | None]
    folder: Path | None = None
    index: Path | None = None
    index_text: bytes = b""

    def confirm(self, shard: Path, found: Iterable[str]) -> None:
        """Refuse a shard whose tensors are not exactly those that the index lists for it.

        Raises:
            CheckpointError: Tensors are missing, or are there without being listed.
        """
        listed = self.shards[shard]
        if listed is None:
            return
        there = set(found)
        missing, unlisted = sorted(listed - there), sorted(there - listed)
        if missing or unlisted:
            words = [f"it lacks {_some(missing)}"] * bool(missing)
            words += [f"the index does not list {_some(unlisted)}"] * bool(unlisted)
            raise CheckpointError(
                f"{shard}: a shard must hold the tensors that {self.index and self.index.name} lists for it, and no "
                f"other; {'; '.join(words)}; {_GET_AGAIN}"
            )

    @property
    def others(self) -> tuple[str, ...]:
        """Names of other files of the folder that may hold weights, by their suffix; none of them is read."""
        if self.folder is None:
            return ()
        own = {shard.name for shard in self.shards}
        return tuple(name for name in _listed(self.folder) if name not in own and is_weights_name(name))


def find_files(path: str | Path) -> ModelFiles:
    """The files that hold the weights at ``path``: the file itself, or those of a folder or an index.

    Raises:
        CheckpointError: A folder has no weights, or has them in two places; or an index is damaged or forged.
    """
    path = Path(path)
    if path.name.endswith(INDEX):
        return _of_index(path, path, path.parent)
    if not path.is_dir():
        return ModelFiles(path, {path: None})
    names = _listed(path)
    for stem in STEMS:
        if stem + INDEX in names:
            found = _of_index(path, path / (stem + INDEX), path)
            _refuse_two(found, stem, names)
            return found
        if stem in names:
            return ModelFiles(path, {path / stem: None}, path)
    alone = [name for name in names if name.endswith(".safetensors")]
    if len(alone) == 1:
        return ModelFiles(path, {path / alone[0]: None}, path)
    remedy = "name the file that you mean" if alone else "give a folder of weights, or name a file"
    raise CheckpointError(
        f"{path}: expected a folder with weights: {', '.join(STEMS)}, one of these as shards with an index "
        f"(NAME{INDEX}), or a single file .safetensors; it holds {_some(names) or 'nothing'}; {remedy}"
    )


def is_weights_name(name: str) -> bool:
    """Whether a file of that name may hold weights, in any format, by its suffix."""
    return PurePosixPath(name).suffix.lower() in WEIGHT_SUFFIXES


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  # names alone, and fast for a folder with many files
    except OSError as problem:
        raise CheckpointError(
            f"{folder}: expected a folder that can be read; {problem.strerror}; check its name and permissions"
        ) from problem


def _refuse_two(found: ModelFiles, stem: str, names: list[str]) -> None:
    """An index beside a whole file: transformers would read the file, other programs the shards."""
    if stem in names and [shard.name for shard in found.shards] != [stem]:
        raise CheckpointError(
            f"{found.path}: weights must be in one place; {stem} and {stem}{INDEX} are both there, and programs differ "
            "in which of them they read; remove one, or name the one that you mean"
        )


def _of_index(path: Path, index: Path, folder: Path) -> ModelFiles:
    text = _index_text(index)
    shards: dict[Path, set[str]] = {}
    for name, shard in _weight_map(index, text).items():
        shards.setdefault(folder / shard, set()).add(name)
        if len(shards) > MOST_SHARDS:
            raise CheckpointError(f"{index}: an index may list {MOST_SHARDS} shards; it lists more; {_GET_AGAIN}")
    frozen: dict[Path, frozenset[str] | None] = {shard: frozenset(names) for shard, names in shards.items()}
    return ModelFiles(path, frozen, folder, index, text)


def _index_text(index: Path) -> bytes:
    try:
        with open_regular(index) as stream:
            text = stream.read(LARGEST_INDEX + 1)
    except OSError as problem:
        raise CheckpointError(
            f"{index}: expected an index of shards that can be read; {problem.strerror}; check its name"
        ) from problem
    if len(text) > LARGEST_INDEX:
        raise CheckpointError(f"{index}: an index has at most {LARGEST_INDEX} bytes; this one has more; {_GET_AGAIN}")
    if text.count(b"[") + text.count(b"{") > _MOST_BRACKETS or text.count(b",") > MOST_TENSORS:
        raise CheckpointError(
            f"{index}: an index lists at most {MOST_TENSORS} tensors, in one object; this one has more parts; "
            f"{_GET_AGAIN}"
        )
    return text


def _weight_map(index: Path, text: bytes) -> dict[str, str]:
    """The name of the shard of every tensor."""
    try:
        content: Any = json.loads(text.decode(), object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"{index}: the index is no proper JSON ({str(problem)[:200]}); {_GET_AGAIN}") from problem
    found = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(found, dict) or not found or not all(isinstance(shard, str) for shard in found.values()):
        raise CheckpointError(
            f"{index}: expected an object whose weight_map maps the name of every tensor to the name of a file; "
            f"it has none, or maps to something else; {_GET_AGAIN}"
        )
    for shard in set(found.values()):
        _check_name(index, shard)
    return found


def _check_name(index: Path, shard: str) -> None:
    """A plain name, by the rules of all systems: an index must not lead out of its folder."""
    plain = PurePosixPath(shard).name == PureWindowsPath(shard).name == shard
    if not (plain and shard.isprintable() and len(shard.encode()) <= _LONGEST_NAME and shard.endswith(_SHARD_SUFFIXES)):
        raise CheckpointError(
            f"{index}: a shard must be a file of the same folder, under a plain name that ends in "
            f"{', '.join(_SHARD_SUFFIXES)}; got {shard[:200]!r}; {_GET_AGAIN}"
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(name[:200] for name in names[:_SHOWN]) + more
