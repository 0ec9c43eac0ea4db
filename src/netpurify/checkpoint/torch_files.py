"""Files of ``torch.save``: examined as a whole, then turned into tensors, without torch's own reader."""

import mmap
import pickle
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

from netpurify.checkpoint import archive
from netpurify.checkpoint.announced import Inspection, Storage
from netpurify.checkpoint.inspection import ForeignCodeError, inspect
from netpurify.checkpoint.mapping import storage_at
from netpurify.checkpoint.pickles import UnsupportedError
from netpurify.errors import CheckpointError

ZIP = b"PK\x03\x04"
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The pickled number with which torch began its files before version 1.6."""
_PROTOCOL = 1001
_TORCHSCRIPT = ("constants.pkl", "code/")
_ORDERS = {b"little": "little", b"big": "big"}
_ALIGNMENT = 8
_SAVE_AGAIN = "where you trust the file, load it and save `model.state_dict()` alone, with safetensors or torch.save"


def read(path: Path, content: mmap.mmap) -> Any:
    """What ``torch.save`` was given: tensors on the CPU, dictionaries, lists, tuples, numbers and texts.

    Tensors are mapped from the file rather than copied, if the file is of torch 1.6 or later.

    Args:
        path: What to call it in errors.
        content: The mapped file.

    Raises:
        CheckpointError: The file would run code, holds what is not supported, is damaged, or says something about
            itself that is not so.
    """
    try:
        inspection, starts, order = (_read_zip if content[: len(ZIP)] == ZIP else _read_legacy)(path, content)
    except CheckpointError:
        raise
    except ForeignCodeError as problem:
        raise CheckpointError(
            f"{path}: weights need no code; this file wants Python to call {problem}, so it was not read and nothing "
            f"was run; {_SAVE_AGAIN}"
        ) from problem
    except UnsupportedError as problem:
        raise CheckpointError(
            f"{path}: expected weights and plain values; the file holds {problem}, which is not supported; "
            f"{_SAVE_AGAIN}"
        ) from problem
    except Exception as problem:  # a forged pickle or archive can lead to any error
        raise _damaged(path, problem) from problem
    problem = inspection.problem()
    if problem:
        raise CheckpointError(f"{path}: {problem}")
    _check_order(path, inspection, order)
    memory = {
        key: storage_at(content, starts[key], storage.size, dtype=storage.dtype, alignment=_ALIGNMENT, order=order)
        for key, storage in inspection.storages.items()
    }
    for saved in inspection.tensors:
        assert saved.storage is not None  # else it had a problem
        saved.fill(memory[saved.storage.key])
    return inspection.content


def _read_zip(path: Path, content: mmap.mmap) -> tuple[Inspection, dict[str, int], str]:
    """What the archive holds, where the storages lie, and the order of their bytes."""
    entries = archive.read_directory(content)
    by_name = {entry.name: entry for entry in entries}
    folder = next(iter(by_name), "").split("/")[0]
    if any(name.startswith(f"{folder}/{part}") for name in by_name for part in _TORCHSCRIPT):
        raise CheckpointError(
            f"{path}: expected weights; this is a TorchScript archive, which holds a program; {_SAVE_AGAIN}"
        )
    archive.check_entries(path, entries, len(content))
    if f"{folder}/data.pkl" not in by_name:
        raise CheckpointError(
            f"{path}: expected a file of torch.save; this zip archive has no data.pkl (its first entry is "
            f"{next(iter(by_name))!r}); give a .safetensors file or one of torch.save"
        )
    archive.check_names(path, entries, folder)
    starts = archive.content_starts(content, entries)
    whole = memoryview(content)
    inspection = inspect(_checked(whole, by_name[f"{folder}/data.pkl"], starts))
    order = by_name.get(f"{folder}/byteorder")
    word = b"little" if order is None else bytes(_checked(whole, order, starts)[:8])
    # The archive's check sums of the tensors are not verified: flipped bits in weights are what we are here to repair.
    for key, storage in inspection.storages.items():
        entry = by_name.get(f"{folder}/data/{key}")
        if entry is None or entry.size != storage.size:
            found = "there is none" if entry is None else f"it has {entry.size}"
            raise CheckpointError(
                f"{path}: the storage {key} must have {storage.size} bytes; {found}; the file is damaged or forged, "
                "get it again"
            )
    return inspection, {key: starts[f"{folder}/data/{key}"] for key in inspection.storages}, _ORDERS[word]


def _checked(whole: memoryview, entry: archive.ArchiveEntry, starts: dict[str, int]) -> memoryview:
    start = starts[entry.name]
    content = whole[start : start + entry.size]
    if zlib.crc32(content) != entry.check:
        raise zipfile.BadZipFile(f"the check sum of {entry.name!r} is wrong")
    return content


def _read_legacy(path: Path, content: mmap.mmap) -> tuple[Inspection, dict[str, int], str]:
    whole = memoryview(content)
    magic = inspect(whole)
    protocol = inspect(whole, magic.end)
    system = inspect(whole, protocol.end)
    inspection = inspect(whole, system.end)
    listed = inspect(whole, inspection.end)
    keys, at = listed.content, listed.end
    if protocol.content != _PROTOCOL:
        raise pickle.UnpicklingError("it is of a version that is not known")
    if type(keys) is not list or set(map(type, keys)) - {str} or sorted(keys) != sorted(inspection.storages):
        raise pickle.UnpicklingError("its list of storages is not that of its tensors")
    starts = {}
    for key in keys:
        starts[key] = at + 8
        at = _after(path, inspection.storages[key], content, at)
    return inspection, starts, "little"


def _after(path: Path, storage: Storage, content: mmap.mmap, at: int) -> int:
    """Where a storage of a legacy file ends, which begins with its own count at ``at``."""
    count = int.from_bytes(content[at : at + 8], "little")
    left = max(len(content) - at - 8, 0)
    if count != storage.count or storage.size > left:
        raise CheckpointError(
            f"{path}: the storage {storage.key} must have {storage.count} items, {storage.size} bytes; it announces "
            f"{count}, and {left} bytes are left; the file is cut short, damaged or forged, get it again"
        )
    return at + 8 + storage.size


def _check_order(path: Path, inspection: Inspection, order: str) -> None:
    """Bytes are swapped by the dtype of the storage; tensors of another dtype would come out wrong."""
    odd = any(saved.storage and saved.tensor.dtype != saved.storage.dtype for saved in inspection.tensors)
    if odd and order != sys.byteorder:
        raise CheckpointError(
            f"{path}: tensors of this file must have bytes in {sys.byteorder}-endian order; they are in {order}-endian "
            "order; save it again on a machine like this one"
        )


def _damaged(path: Path, problem: Exception) -> CheckpointError:
    # Other errors go by their kind: their texts may show parts of a forged file, of any length.
    plain = isinstance(problem, pickle.UnpicklingError | zipfile.BadZipFile)
    said = problem if plain else type(problem).__name__
    return CheckpointError(f"{path}: the file of torch.save is cut short or damaged ({said}); get it again")
