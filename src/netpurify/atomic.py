"""Files that are there whole or not at all; the one way in which netpurify writes a file that someone will read."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial-"
"""Start of the name of everything that is not finished."""


@contextmanager
def write_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """Gives a stream whose content gets the name ``path`` when the block ends, and not at all if it raises.

        with write_atomically("table.csv") as stream:
            stream.write(content)

    Whatever fails, also an interrupt, the earlier file stays as it was and nothing unfinished is left; only a killed
    process leaves a ``.partial-`` file behind. A symbolic link stays one: what it leads to is written. A file that was
    there keeps its permissions, a new one has those that any new file gets.

    Raises:
        OSError: It cannot be written: no such folder, a full disk, a folder or a device of that name, a file that is
            protected from writing.
    """
    target = Path(os.path.realpath(path))
    permissions = _permissions(target)
    # A part of the name says whose leftover it is; the whole could become longer than a name may be.
    partial = target.with_name(f"{PARTIAL}{target.name[:32]}-{secrets.token_hex(4)}")
    try:
        with partial.open("xb") as stream:
            if permissions is not None:
                partial.chmod(permissions)
            yield stream
            stream.flush()
            # Before the rename: after a power cut, the final name must not stand for blocks that were never written.
            os.fsync(stream.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


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
