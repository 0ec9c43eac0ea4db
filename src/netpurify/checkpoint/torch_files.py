"""Files of ``torch.save``, inspected before torch may see them: no code runs, and no memory beyond the file's size."""

import io
import mmap
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from netpurify.checkpoint.inspection import ForeignCodeError, Inspection, Stream, inspect
from netpurify.errors import CheckpointError

ZIP = b"PK\x03\x04"
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The pickled number with which torch began its files before version 1.6."""
_TORCHSCRIPT = ("constants.pkl", "code/")
_SAVE_AGAIN = "where you trust the file, load it and save `model.state_dict()` with safetensors or torch.save"


def read(path: Path) -> Any:
    """What ``torch.save`` was given: tensors on the CPU, dictionaries, lists, numbers and texts.

    Tensors are mapped from the file rather than copied, if the file is of torch 1.6 or later.

    Raises:
        CheckpointError: The file would run code, is damaged, or says something about itself that is not so.
    """
    with path.open("rb") as stream:
        zipped = stream.read(len(ZIP)) == ZIP
    inspection = _inspect_zip(path) if zipped else _inspect_legacy(path)
    problem = inspection.problem()
    if problem:
        raise CheckpointError(f"{path}: {problem}")
    # By a name with that suffix, torch would take it for safetensors.
    mapped = zipped and path.suffix.lower() != ".safetensors"
    try:
        with path.open("rb") as stream:
            return torch.load(str(path) if mapped else stream, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as failure:  # torch says in many ways that a file is not as it should be
        first = str(failure).split("\n", maxsplit=1)[0]
        raise CheckpointError(f"{path}: torch cannot read it as weights only ({first}); {_SAVE_AGAIN}") from failure


def _inspect_zip(path: Path) -> Inspection:
    with _opened(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        folder = next(iter(entries), "").split("/")[0]
        if any(name.startswith(f"{folder}/{part}") for name in entries for part in _TORCHSCRIPT):
            raise CheckpointError(
                f"{path}: expected weights; this is a TorchScript archive, which holds a program; {_SAVE_AGAIN}"
            )
        _check_entries(path, archive.infolist())
        if f"{folder}/data.pkl" not in entries:
            raise CheckpointError(
                f"{path}: expected a file of torch.save; this zip archive has no data.pkl (its first entry is "
                f"{next(iter(entries))!r}); give a .safetensors file or one of torch.save"
            )
        try:
            pickled = archive.read(f"{folder}/data.pkl")
        except Exception as problem:  # likewise for a damaged entry
            raise _damaged(path, problem) from problem
    inspection = _outline(path, io.BytesIO(pickled))
    # The archive's check sums of the tensors are not verified: flipped bits in weights are what we are here to repair.
    for key, storage in inspection.storages.items():
        entry = entries.get(f"{folder}/data/{key}")
        if entry is None or entry.file_size != storage.size:
            found = "there is none" if entry is None else f"it has {entry.file_size}"
            raise CheckpointError(
                f"{path}: the storage {key} must have {storage.size} bytes; {found}; the file is damaged or forged, "
                "get it again"
            )
    return inspection


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except Exception as problem:  # a damaged directory can lead it to any error
        raise _damaged(path, problem) from problem


def _check_entries(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    packed = next((entry.filename for entry in entries if entry.compress_type != zipfile.ZIP_STORED), None)
    total, size = sum(entry.file_size for entry in entries), path.stat().st_size
    if packed is not None:
        raise CheckpointError(
            f"{path}: torch.save stores tensors as they are; {packed} is compressed, and unpacks with the rest to "
            f"{total} bytes from a file of {size}; store it without compression"
        )
    if total > size:
        raise CheckpointError(
            f"{path}: its entries cannot be larger than the file, {size} bytes; they add up to {total}; "
            "the file is damaged or forged, get it again"
        )
    if not entries or len({entry.filename for entry in entries}) < len(entries):
        raise CheckpointError(
            f"{path}: every entry of the archive must have its own name; there are none, or two are called the same; "
            "the file is damaged or forged, get it again"
        )


def _inspect_legacy(path: Path) -> Inspection:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for _ in ("magic number", "protocol", "system"):
            _outline(path, content)
        inspection = _outline(path, content)
        keys = _outline(path, content).content
        storages = inspection.storages
        if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(storages):
            raise _damaged(path, "its list of storages is not that of its tensors")
        for key in keys:
            storage = storages[key]
            count = int.from_bytes(content.read(8), "little")
            left = len(content) - content.tell()
            if count != storage.count or storage.size > left:
                raise CheckpointError(
                    f"{path}: the storage {key} must have {storage.count} items, {storage.size} bytes; it announces "
                    f"{count}, and {left} bytes are left; the file is cut short, damaged or forged, get it again"
                )
            content.seek(storage.size, io.SEEK_CUR)
    return inspection


def _outline(path: Path, stream: Stream) -> Inspection:
    try:
        return inspect(stream)
    except ForeignCodeError as problem:
        raise CheckpointError(
            f"{path}: weights need no code; this file wants Python to call {problem}, so it was not read and nothing "
            f"was run; {_SAVE_AGAIN}"
        ) from problem
    except Exception as problem:  # a forged pickle can lead the standard unpickler to any error
        raise _damaged(path, problem) from problem


def _damaged(path: Path, problem: Exception | str) -> CheckpointError:
    # Other errors go by their kind: their texts may show parts of a forged file, of any length.
    plain = isinstance(problem, str | pickle.UnpicklingError | zipfile.BadZipFile | OSError)
    said = problem if plain else type(problem).__name__
    return CheckpointError(f"{path}: the file of torch.save is cut short or damaged ({said}); get it again")
