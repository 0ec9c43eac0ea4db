"""The zip archives of ``torch.save``: entries that lie in the file as they are, one after the other, each named once.

Programs that read zip archives differ in where they look for the directory and in how they compare names, so one file
can show different content to each. An archive that leaves any choice is refused.
"""

import mmap
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

from netpurify.errors import CheckpointError

MOST_ENTRIES = 1 << 18
"""Entries of an archive; each tensor has one, and the largest networks have tens of thousands of tensors."""
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_RECORD = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_NO_ROOM = 0xFFFFFFFF
"""Stands in a field of four bytes for a number that a longer field has."""
_ZIP64, _OTHER_NAME = 0x0001, 0x7075
_ENCRYPTED, _SIZES_FOLLOW = 1 << 0, 1 << 3


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One entry, as the directory has it.

    Attributes:
        name: With its folder.
        size: In bytes.
        check: The CRC-32 check sum.
        packed: Whether it is compressed.
        header: Where its own header begins.
    """

    name: str
    size: int
    check: int
    packed: bool
    header: int


def read_directory(content: mmap.mmap) -> list[ArchiveEntry]:
    """The entries in the order of the directory, which must lie at the end of the file and nowhere else.

    Raises:
        BadZipFile: The directory is damaged, or its parts contradict each other.
    """
    at, end, count = _directory(content)
    if count > MOST_ENTRIES:
        raise BadZipFile(f"it announces {count} entries; at most {MOST_ENTRIES} are read")
    entries = []
    for _ in range(count):
        entry, at = _entry(content, at, end)
        entries.append(entry)
    if at != end:
        raise BadZipFile("its directory is longer than its entries")
    return entries


def check_entries(path: Path, entries: list[ArchiveEntry], size: int) -> None:
    """Entries are stored as they are, fit into a file of ``size`` bytes, and have names that nobody confuses.

    Raises:
        CheckpointError: One of these does not hold.
    """
    packed = next((entry.name for entry in entries if entry.packed), None)
    total = sum(entry.size for entry in entries)
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
    # torch compares names without regard to case, the standard library with it.
    if not entries or len({entry.name.casefold() for entry in entries}) < len(entries):
        raise CheckpointError(
            f"{path}: every entry of the archive must have its own name; there are none, or two are called the same "
            "(capital letters do not count); the file is damaged or forged, get it again"
        )


def check_names(path: Path, entries: Iterable[ArchiveEntry], folder: str) -> None:
    """All entries lie below the one folder, under plain names.

    Raises:
        CheckpointError: One of these does not hold.
    """
    for entry in entries:
        parts = entry.name.split("/")
        if parts[0] != folder or len(parts) < 2 or {"", ".", ".."} & set(parts) or not entry.name.isprintable():
            raise CheckpointError(
                f"{path}: every entry of the archive must lie in its folder {folder!r} under a plain name; "
                f"got {entry.name!r}; the file is forged, get it again"
            )


def content_starts(content: mmap.mmap, entries: list[ArchiveEntry]) -> dict[str, int]:
    """Where the content of each entry begins, by name.

    Raises:
        BadZipFile: An entry's own header contradicts the directory, or two entries overlap.
    """
    starts = {}
    free = 0
    limit = _directory(content)[0]
    for entry in sorted(entries, key=lambda entry: entry.header):
        start = _content(content, entry, free, limit)
        starts[entry.name] = start
        free = start + entry.size
    return starts


def _directory(content: mmap.mmap) -> tuple[int, int, int]:
    """Start and end of the directory, and the number of entries."""
    last = len(content) - _END.size
    mark, disk, first_disk, here, count, length, start, comment = _unpacked(_END, content, last)
    if (mark, disk, first_disk, here, comment) != (b"PK\5\6", 0, 0, count, 0):
        raise BadZipFile("its directory is not at the end of the file")
    end, short = last, (count, length, start)
    locator = last - _LOCATOR.size
    if locator >= 0 and content[locator : locator + 4] == b"PK\6\7":
        end = locator - _END_64.size
        if _unpacked(_LOCATOR, content, locator)[1:] != (0, end, 1):
            raise BadZipFile("its long directory is not at the end of the file")
        mark, room, _, _, disk, first_disk, here, count, length, start = _unpacked(_END_64, content, end)
        if (mark, room, disk, first_disk, here) != (b"PK\6\6", _END_64.size - 12, 0, 0, count):
            raise BadZipFile("its long directory is damaged")
        ours = zip(short, (count, length, start), (0xFFFF, _NO_ROOM, _NO_ROOM), strict=True)
        if any(small not in (large, unknown) for small, large, unknown in ours):
            raise BadZipFile("its two directories contradict each other")
    if start + length != end:
        raise BadZipFile("its directory is not where it says")
    return start, end, count


def _entry(content: mmap.mmap, at: int, end: int) -> tuple[ArchiveEntry, int]:
    fields = _unpacked(_RECORD, content, at)
    mark, _, _, flags, method, _, _, check, packed, size, *lengths, disk, _, _, header = fields
    name_at = at + _RECORD.size
    extra_at = name_at + lengths[0]
    after = extra_at + lengths[1] + lengths[2]
    if mark != b"PK\1\2" or after > end or disk or flags & _ENCRYPTED:
        raise BadZipFile("an entry of its directory is damaged or encrypted")
    longer = _long_numbers(content[extra_at : extra_at + lengths[1]])
    size, packed, header = (longer.pop(0) if value == _NO_ROOM else value for value in (size, packed, header))
    if not method and packed != size:
        raise BadZipFile("an entry has two sizes")
    name = content[name_at:extra_at].decode()
    return ArchiveEntry(name=name, size=size, check=check, packed=bool(method), header=header), after


def _long_numbers(extra: bytes) -> list[int]:
    """Numbers of eight bytes that stand beside an entry, for those that four bytes cannot hold."""
    numbers: list[int] = []
    at = 0
    while at < len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        field = extra[at + 4 : at + 4 + length]
        if len(field) < length or kind == _OTHER_NAME or (kind == _ZIP64 and (numbers or length % 8)):
            raise BadZipFile("the notes beside an entry are damaged, or give it a second name or size")
        if kind == _ZIP64:
            numbers = list(struct.unpack(f"<{length // 8}Q", field))
        at += 4 + length
    return numbers


def _content(content: mmap.mmap, entry: ArchiveEntry, free: int, limit: int) -> int:
    """Where the content of an entry begins; its header lies at ``free`` or later, its end at ``limit`` or before."""
    if entry.header < free:
        raise BadZipFile("two of its entries overlap")
    mark, _, flags, method, _, _, check, packed, size, length, extra = _unpacked(_LOCAL, content, entry.header)
    start = entry.header + _LOCAL.size + length + extra
    if mark != b"PK\3\4" or start + entry.size > limit:
        raise BadZipFile("an entry is not where the directory says")
    # As torch writes it, the check sum and the sizes follow the content, and are 0 here.
    known = (
        (0, 0, 0) if flags & _SIZES_FOLLOW and not (check or packed or size) else (entry.check, entry.size, entry.size)
    )
    sizes = [
        expected if value == _NO_ROOM else value for value, expected in zip((packed, size), known[1:], strict=True)
    ]
    name = content[start - extra - length : start - extra]
    if method or flags & _ENCRYPTED or name != entry.name.encode() or (check, *sizes) != known:
        raise BadZipFile("an entry contradicts the directory")
    return start


def _unpacked(form: struct.Struct, content: mmap.mmap, at: int) -> tuple:
    if not 0 <= at <= len(content) - form.size:
        raise BadZipFile("it is shorter than it says")
    return form.unpack_from(content, at)
