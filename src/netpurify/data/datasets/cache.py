"""The cache on disk: where it is, who may write, and whether a file is the one it should be."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from platformdirs import PlatformDirs

from netpurify.atomic import PARTIAL
from netpurify.data.datasets.catalogue import File
from netpurify.errors import DataError

VARIABLE = "NETPURIFY_DATA"


def cache_folder(root: str | Path | None = None) -> Path:
    """Where data sets are kept: ``root``, else the variable NETPURIFY_DATA, else the user's cache on this platform.

    Raises:
        DataError: None of them is given, and the user has no home folder.
    """
    given = root or os.environ.get(VARIABLE)
    if given:
        return Path(given).expanduser()
    try:
        folder = PlatformDirs("netpurify", appauthor=False, opinion=False).user_cache_path
    except RuntimeError:  # newer versions raise it for a user without a home folder, earlier ones leave the "~"
        folder = None
    if folder is None or not folder.is_absolute():
        raise DataError(
            f"data sets must be kept in a cache folder, and the user has no home folder for it; set {VARIABLE}, or "
            "give a folder (--root; in Python root=)"
        )
    return folder


def intact(path: Path, file: File) -> bool:
    """Whether ``path`` is there with the size and the digest of ``file``."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


def require(content: bytes, file: File, *, what: str, remedy: str) -> bytes:
    """``content``, if it is that of ``file``.

    Args:
        content: What was read.
        file: What it should be.
        what: What to call its origin in errors.
        remedy: What to do if it is not.

    Raises:
        DataError: Its size or its digest is another.
    """
    if len(content) != file.size:
        more = "more than " if len(content) > file.size else ""
        raise DataError(
            f"{what}: {file.name} has {file.size} bytes; got {more}{min(len(content), file.size)}; "
            f"it is cut short or foreign and was not used; {remedy}"
        )
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataError(
            f"{what}: {file.name} has the SHA-256 digest {file.sha256}; got {digest}; "
            f"it is damaged or foreign and was not used; {remedy}"
        )
    return content


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Makes ``folder``, waits until no other process writes there, and clears what an interrupted one left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    # The system frees the lock when its process dies, so whatever is unfinished once we hold it belongs to nobody.
    with FileLock(folder / ".lock"):
        for leftover in folder.glob(f"{PARTIAL}*"):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()
        yield


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder for unfinished work inside ``folder``, gone afterwards."""
    place = folder / f"{PARTIAL}{secrets.token_hex(4)}"
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
