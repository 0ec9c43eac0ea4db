"""The journal: what was recorded survives any cut, and damage is named."""

import errno
import math
from io import FileIO

import pytest

from netpurify.errors import JournalError
from netpurify.experiments.journal import TrialRecord, latest, opened, read

RECORDS = [
    TrialRecord(1, {"width": 8}, 0, 0, 0.1 + 0.2, [{"a": 1 / 3, "b": float("-inf"), "c": "x\ny\u2028\u00e9"}]),
    TrialRecord(1, {"width": 8}, 1, 1, 5e-324, [], "OSError: gone"),
    TrialRecord(1, {"width": 16}, 0, 0, 1.0, [{"a": None, "b": True}, {"a": 2, "b": -0.0}]),
]


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "new" / "some.jsonl"
    with opened(place) as book:
        assert book.records == []
        for record in RECORDS:
            book.append(record)
    return place


def test_records_read_back_bit_for_bit(path):
    assert read(path) == RECORDS
    assert math.copysign(1.0, read(path)[2].rows[1]["b"]) == -1.0


def test_nan_survives(path):
    with opened(path) as book:
        book.append(TrialRecord(1, {}, 2, 2, 1.0, [{"a": float("nan")}]))
    assert math.isnan(read(path)[3].rows[0]["a"])


def test_a_last_line_cut_anywhere_is_dropped_and_written_anew(path):
    content = path.read_bytes()
    start = content.rstrip(b"\n").rindex(b"\n") + 1
    for end in range(start, len(content)):
        path.write_bytes(content[:end])
        assert read(path) == RECORDS[:2]
        assert path.stat().st_size == end
        with opened(path) as book:
            assert book.records == RECORDS[:2]
            book.append(RECORDS[2])
        assert path.read_bytes() == content


def test_a_last_line_of_zeros_is_dropped(path):
    content = path.read_bytes()
    path.write_bytes(content + b"\0" * 20 + b"\n")
    with opened(path) as book:
        assert book.records == RECORDS
    assert path.read_bytes() == content


@pytest.mark.parametrize("damage", [b"{}", b"[1]", b"7", b"\xff\xfe", b'{"revision": 1', b""])
def test_a_damaged_line_in_the_middle_is_named(path, damage):
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], damage, lines[2]]) + b"\n")
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"some.jsonl: .*line 2 is not.*delete that line"), opened(path):
        pass
    assert path.read_bytes() == before


def test_the_later_of_two_records_counts(path):
    healed = TrialRecord(1, {"width": 8}, 1, 1, 1.0, [{"a": 1}])
    with opened(path) as book:
        book.append(healed)
    assert list(latest(read(path)).values()) == [RECORDS[0], healed, RECORDS[2]]


class FullDisk(FileIO):
    """Takes ten more bytes, and either says so or raises."""

    def write(self, content):
        super().write(content[:10])
        if self.raises:
            raise OSError(errno.ENOSPC, "No space left on device")
        return 10


@pytest.mark.parametrize("raises", [False, True])
def test_a_full_disk_is_said_and_costs_one_record(path, raises):
    content = path.read_bytes()
    with opened(path) as book, FullDisk(path, "ab") as stream:
        stream.raises = raises
        full = type(book)(path, [], stream)
        with pytest.raises(JournalError, match="No space left on device; make room"):
            full.append(RECORDS[0])
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="must be writable; File exists"), opened(tmp_path / "file" / "a.jsonl"):
        pass
