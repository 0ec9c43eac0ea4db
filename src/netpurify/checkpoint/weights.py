"""Weights from and to files: which kind of file it is, where in it the weights are, and how they are saved."""

import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from netpurify.atomic import write_atomically
from netpurify.checkpoint import safetensors_files, torch_files
from netpurify.checkpoint.mapping import map_regular
from netpurify.checkpoint.model_files import INDEX, find_files
from netpurify.checkpoint.tensors import require_plain
from netpurify.errors import CheckpointError, InputError

NESTS = ("state_dict", "model_state_dict", "model")
PREFIXES = ("module.", "_orig_mod.")
"""What ``DataParallel`` and ``torch.compile`` put before every name."""
_DEEPEST = 8
"""Levels of such dictionaries within each other; a dictionary may contain itself."""


def load_weights(path: str | Path) -> dict[str, Tensor]:
    """Weights from a ``.safetensors`` file, a file of ``torch.save``, or a Hugging Face folder; no code in it is run.

    The content of a file decides which kind it is, whatever the suffix. In a training checkpoint the weights are found
    under ``state_dict``, ``model_state_dict`` or ``model``, and all else in it is left alone. The prefixes ``module.``
    and ``_orig_mod.``, if all names share them, are taken off. Shards are joined.

    Args:
        path: The file, or a folder that holds ``model.safetensors`` or ``pytorch_model.bin``, whole or as shards with
            an index, or the index itself (``model.safetensors.index.json``). Files are mapped rather than copied, so
            do not change them in place while the weights are in use; replacing them, as ``save_weights`` does, is safe.

    Returns:
        Name -> dense tensor on the CPU, without gradients. Tensors that were tied in a file of torch still are.

    Raises:
        CheckpointError: There is no such file, it would run code, it is damaged, its sizes do not fit the file, or it
            holds something else than weights; or a folder or an index does not say for sure which files it means.
    """
    files = find_files(path)
    weights: dict[str, Tensor] = {}
    for shard in files.shards:
        found = load_file(shard)
        files.confirm(shard, found)
        weights |= found
    names = without_prefixes(list(weights))
    return dict(zip(names, weights.values(), strict=True))


def load_file(path: Path) -> dict[str, Tensor]:
    """The weights of one file under the names that it gives them; raises as ``load_weights`` does."""
    weights = _nested(path, load_content(path))
    _check_weights(path, weights)
    return weights


def load_content(path: str | Path) -> Any:
    """Everything in a ``.safetensors`` file or a file of ``torch.save``, read as safely as ``load_weights`` does.

    Raises:
        CheckpointError: As for ``load_weights``, but the content may be anything that holds no code.
    """
    path = Path(path)
    content = _mapped(path)
    return (safetensors_files if is_safetensors(path, content[:16]) else torch_files).read(path, content)


def load_metadata(path: str | Path) -> dict[str, str]:
    """The texts that ``save_weights`` was given beside the weights; none in a file of ``torch.save``.

    Of a folder with shards these are the texts that every shard has alike.

    Raises:
        CheckpointError: There is no such file, or it is damaged or of another kind.
    """
    return shared_texts(_metadata(shard) for shard in find_files(path).shards)


def shared_texts(metadata: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The texts that several files have alike."""
    first, *others = [dict(texts) for texts in metadata]
    return {name: text for name, text in first.items() if all(texts.get(name) == text for texts in others)}


def _metadata(path: Path) -> dict[str, str]:
    content = _mapped(path)
    return safetensors_files.read_header(path, content).metadata if is_safetensors(path, content[:16]) else {}


def save_weights(state: Mapping[str, Tensor], path: str | Path, *, metadata: Mapping[str, str] | None = None) -> None:
    """Writes weights as safetensors, whole or not at all; an earlier file stays until the new one is complete.

    The same weights and metadata give the same bytes. Tied tensors are written each for itself, and tensors on other
    devices are brought over one at a time.

    Args:
        state: Name -> dense tensor, such as ``model.state_dict()``.
        path: The file; a symbolic link is followed.
        metadata: Text by name, for ``load_metadata``.

    Raises:
        InputError: There is nothing to write, a tensor is sparse, quantised, nested or meta, or a name or metadata are
            not text.
        CheckpointError: It could not be written there.
    """
    _check_state(state)
    notes = dict(metadata or {})
    require_texts(notes)
    try:
        with write_atomically(path) as stream:
            safetensors_files.write(stream, state, notes)
    except OSError as problem:
        raise CheckpointError(
            f"{path}: the weights must be written to a file in a folder that is there; {problem.strerror}; "
            "nothing was changed; make room or choose another place"
        ) from problem


def require_texts(metadata: Mapping[str, str]) -> None:
    """Refuses metadata that are not text by name.

    Raises:
        InputError: They are not.
    """
    if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise InputError(
            f"metadata must map text to text; got {metadata!r}; turn the values into text, for example as JSON"
        )


def _mapped(path: Path) -> mmap.mmap:
    try:
        content = map_regular(path)
    except OSError as problem:
        raise CheckpointError(
            f"{path}: expected a file that can be read; {problem.strerror}; check its name"
        ) from problem
    if isinstance(content, bytes):
        raise CheckpointError(f"{path}: expected weights; the file is empty; get it again")
    return content


def is_safetensors(path: Path, start: bytes) -> bool:
    """By its first 16 bytes; a file that is neither safetensors nor of ``torch.save`` is refused.

    Raises:
        CheckpointError: It is of another kind.
    """
    if start.startswith((torch_files.ZIP, torch_files.LEGACY)):
        return False
    if start[8:9] == b"{" or path.suffix == ".safetensors":
        return True
    if start.startswith(b"\x80"):
        raise CheckpointError(
            f"{path}: expected a .safetensors file or one of torch.save; this is a bare pickle, which can run code "
            "when it is read, so it was not; where you trust it, load it and save the weights with safetensors"
        )
    if start.lstrip().startswith(b"{"):
        raise CheckpointError(
            f"{path}: expected a .safetensors file or one of torch.save; this is a JSON text; give the folder that it "
            f"is in, or its index of shards, whose name ends in {INDEX}"
        )
    raise CheckpointError(
        f"{path}: expected a .safetensors file or one of torch.save; it starts with {start[:8].hex(' ')}, like "
        "neither; convert it with the program that wrote it"
    )


def _nested(path: Path, content: Any) -> dict[str, Any]:
    """The innermost dictionary of weights."""
    for _ in range(_DEEPEST):
        if not isinstance(content, dict) or all(isinstance(value, Tensor) for value in content.values()):
            break
        nests = [name for name in NESTS if isinstance(content.get(name), dict)]
        if len(nests) > 1:
            raise CheckpointError(
                f"{path}: weights must be in one place; {' and '.join(nests)} may both hold them; save the one you mean"
            )
        if not nests:
            break
        content = content[nests[0]]
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{path}: expected a dictionary of tensors; got {_kind(content)}; save model.state_dict()"
        )
    return dict(content)


def _check_weights(path: Path, weights: dict[str, Any]) -> None:
    if not weights:
        raise CheckpointError(f"{path}: expected weights; the file holds no tensor; save model.state_dict()")
    odd = [f"{name} ({_kind(value)})" for name, value in weights.items() if not isinstance(value, Tensor)]
    if odd:
        shown = ", ".join(odd[:3]) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")
        raise CheckpointError(
            f"{path}: expected tensors only, or weights under {', '.join(NESTS)}; got {shown}; save model.state_dict()"
        )
    for name in weights:
        if not isinstance(name, str):
            raise CheckpointError(f"{path}: the names of weights must be text; got {name!r}; save model.state_dict()")


def without_prefixes(names: list[str]) -> list[str]:
    """The names without the prefixes that all of them share."""
    while True:
        shared = next(
            (prefix for prefix in PREFIXES if all(name.startswith(prefix) and name != prefix for name in names)), None
        )
        if shared is None:
            return names
        names = [name.removeprefix(shared) for name in names]


def _kind(value: Any) -> str:
    return "a tensor" if isinstance(value, Tensor) else type(value).__name__


def _check_state(state: Mapping[str, Tensor]) -> None:
    if not state:
        raise InputError("there must be at least one tensor to save; got none; give model.state_dict()")
    require_plain(state)
    for name in state:
        # Surrogates: the format is UTF-8 and could not be read back.
        if name == safetensors_files.METADATA or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise InputError(f"safetensors cannot hold a tensor called {name!r}; give it another name")
