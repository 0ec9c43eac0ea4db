"""Files and folders that are there whole or not at all; the one way in which netpurify writes for others to read."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial-"
"""Start of the name of everything that is not finished."""

_waiting: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("_waiting", default=None)
"""Finished files of the enclosing ``write_together`` and the names that they will get; ``None`` outside of one."""


@contextmanager
def write_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """Gives a stream whose content gets the name ``path`` when the block ends, and not at all if it raises.

        with write_atomically("table.csv") as stream:
            stream.write(content)

    Whatever fails, also an interrupt, the earlier file stays as it was and nothing unfinished is left; only a killed
    process leaves a ``.partial-`` file behind. A symbolic link stays one: what it leads to is written. A file that was
    there keeps its permissions, a new one has those that any new file gets. Within ``write_together`` the content gets
    its name when that block ends.

    Raises:
        OSError: It cannot be written: no such folder, a full disk, a folder or a device of that name, a file that is
            protected from writing.
    """
    target = Path(os.path.realpath(path))
    permissions = _permissions(target)
    partial = _beside(target)
    waiting = _waiting.get()
    finished = False
    try:
        with partial.open("xb") as stream:
            if permissions is not None:
                partial.chmod(permissions)
            yield stream
            stream.flush()
            # Before the rename: after a power cut, the final name must not stand for blocks that were never written.
            os.fsync(stream.fileno())
        if waiting is None:
            partial.replace(target)
        else:
            waiting.append((partial, target))
        finished = True
    finally:
        if not finished or waiting is None:
            partial.unlink(missing_ok=True)


@contextmanager
def write_folder(path: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """Gives an empty folder that gets the name ``path`` when the block ends, and not at all if it raises.

        with write_folder("model") as folder:
            (folder / "config.json").write_bytes(content)

    Whatever fails, also an interrupt, nothing unfinished is left, and an earlier folder stays as it was; only a killed
    process leaves a ``.partial-`` folder behind. With ``replace`` the earlier folder is renamed, the new one gets its
    name, and then the earlier one is deleted with all that is in it; a process that is killed between the two renames
    leaves both under ``.partial-`` names, and nothing under ``path``. Within ``write_together`` the folder gets its
    name when that block ends.

    Raises:
        OSError: It cannot be written: no such folder around it, a full disk, something of that name which is no folder,
            or a folder although ``replace`` is not set.
    """
    target = Path(os.path.realpath(path))
    permissions = _folder_permissions(target, replace=replace)
    partial = _beside(target)
    waiting = _waiting.get()
    finished = False
    try:
        partial.mkdir()
        yield partial
        _synchronise(partial)
        if permissions is not None:
            partial.chmod(permissions)
        if waiting is None:
            _give_names([(partial, target)])
        else:
            waiting.append((partial, target))
        finished = True
    finally:
        if not finished or waiting is None:
            _remove(partial)


@contextmanager
def write_together() -> Iterator[None]:
    """Files and folders that are written within the block get their names when it ends: all of them, or none.

        with write_together():
            save_weights(state, "model.safetensors")
            write_report(result, "report.html")

    If the block raises, or if one of the files cannot get its name, everything is as it was before: new files are not
    there, and files that were to be replaced have their earlier content. Only a process that is killed while names are
    given leaves some files new and others not. A block within another one is a part of it.

    Raises:
        OSError: A file could not get its name.
    """
    if _waiting.get() is not None:  # a part of the enclosing block, which gives all names when it ends
        yield
        return
    waiting: list[tuple[Path, Path]] = []
    token = _waiting.set(waiting)
    try:
        yield
        _give_names(waiting)
    finally:
        _waiting.reset(token)
        for partial, _ in waiting:
            _remove(partial)


def check_target(path: str | Path) -> None:
    """Refuse a place where ``write_atomically`` could write no file.

    Raises:
        OSError: The name is too long, is a folder, a device or a pipe, or a file that is protected from writing.
    """
    _permissions(Path(os.path.realpath(path)))


def check_folder_target(path: str | Path, *, replace: bool = False) -> None:
    """Refuse a place where ``write_folder`` could write no folder.

    Raises:
        OSError: The name is too long, is there already and no folder, or is a folder although ``replace`` is not set.
    """
    _folder_permissions(Path(os.path.realpath(path)), replace=replace)


def _give_names(waiting: list[tuple[Path, Path]]) -> None:
    """Rename all, and take it back if one cannot be renamed."""
    kept: list[tuple[Path, Path, Path | None]] = []
    try:
        for partial, target in waiting:
            earlier = _beside(target) if target.exists() else None
            kept.append((partial, target, earlier))
            if earlier is not None:
                _keep(target, earlier)
            partial.replace(target)
    except BaseException:
        for partial, target, earlier in reversed(kept):
            _take_back(partial, target, earlier)
        raise
    finally:
        for _, target, earlier in kept:
            if earlier is not None and target.exists():  # else it is the only one that there is
                _remove(earlier)


def _keep(target: Path, earlier: Path) -> None:
    """A second name for the file that is there, so that it can be put back; a folder can only have another name."""
    if target.is_dir():
        target.rename(earlier)
        return
    try:
        os.link(target, earlier)
    except OSError:  # a file system without links
        shutil.copy2(target, earlier)


def _take_back(partial: Path, target: Path, earlier: Path | None) -> None:
    """What was there before has its name again."""
    renamed = not partial.exists()
    if renamed and target.is_dir():
        target.rename(partial)  # nothing can be renamed to a folder that is not empty
    elif renamed and earlier is None:
        target.unlink()
    if earlier is not None and earlier.exists() and (renamed or not target.exists()):
        earlier.replace(target)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _synchronise(folder: Path) -> None:
    """Everything in the folder is on the disk; else a power cut could leave the name with less behind it."""
    for path in [*folder.rglob("*"), folder]:
        if os.name == "nt" and path.is_dir():  # such a system opens no folder
            continue
        handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _beside(target: Path) -> Path:
    # A part of the name says whose leftover it is; the whole could become longer than a name may be.
    return target.with_name(f"{PARTIAL}{target.name[:32]}-{secrets.token_hex(4)}")


def _permissions(target: Path) -> int | None:
    """Those of the file that will be replaced; ``None`` if there is none yet."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):  # a device, a pipe, or a link that leads in a circle: a rename would destroy it
        raise OSError(errno.EINVAL, "Not a regular file", str(target))
    if not os.access(target, os.W_OK):  # a rename would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return stat.S_IMODE(mode)


def _folder_permissions(target: Path, *, replace: bool) -> int | None:
    """Those of the folder that will be replaced; ``None`` if there is none yet."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(target))
    if not replace:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if not os.access(target, os.W_OK):  # a rename would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return stat.S_IMODE(mode)
