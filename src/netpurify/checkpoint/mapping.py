"""Files that others wrote: opened without waiting for anyone, mapped once, and cut into the memory of tensors.

Whatever is read of a file is read from one mapping of it, so that what was checked is also what is used.
"""

import errno
import math
import mmap
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import torch


def open_regular(path: str | Path) -> BinaryIO:
    """Opens a regular file for reading; pipes and devices, which could block for ever, are refused.

    Raises:
        OSError: It is not there, may not be read, or is a folder, a pipe, a socket or a device.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer. A check before opening could be outrun by an exchange.
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
    handle = os.open(path, os.O_RDONLY | sum(flags))
    try:
        _require_regular(os.fstat(handle).st_mode, path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def map_regular(path: str | Path) -> mmap.mmap | bytes:
    """The content of a regular file as private memory: pages are copied when they are changed, the file never is.

    An empty file, which cannot be mapped, gives no bytes.

    Raises:
        OSError: As for ``open_regular``, or there is no room for it among the addresses of this process.
    """
    with open_regular(path) as stream:
        if not os.fstat(stream.fileno()).st_size:
            return b""
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)


def storage_at(
    content: mmap.mmap, start: int, size: int, *, dtype: torch.dtype, alignment: int, order: str
) -> torch.UntypedStorage:
    """The ``size`` bytes at ``start`` as the memory of a tensor, which keeps the mapping alive.

    Args:
        content: The mapped file.
        start: Where the bytes begin.
        size: How many there are; the caller has checked that the file holds them.
        dtype: Of the numbers in them.
        alignment: Bytes at a multiple of which the numbers must lie; a mapping that does not fit is copied.
        order: ``"little"`` or ``"big"``, the order of the bytes of a number; one that is not this machine's is turned.
    """
    if not size:
        return torch.UntypedStorage(0)
    flat = torch.frombuffer(content, dtype=torch.uint8, count=size, offset=start)
    if start % alignment or order != sys.byteorder:
        flat = flat.clone()
    storage = flat.untyped_storage()
    if order != sys.byteorder:
        storage.byteswap(dtype)
    return storage


def is_addressable(shape: Iterable[int], dtype: torch.dtype) -> bool:
    """Whether the steps through a tensor of that shape are numbers of 64 bits, also if it is empty."""
    return math.prod(max(length, 1) for length in shape) * dtype.itemsize < 1 << 63


def _require_regular(mode: int, path: str | Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "It is a pipe, a socket or a device and no regular file", str(path))
