"""Zip archives that would show one content to one reader and another to the next: none of them is read."""

import io
import struct
import zipfile

import pytest
import torch

from netpurify.checkpoint import digest
from netpurify.errors import CheckpointError
from tests.checkpoint.forged_files import PLAIN, WEIGHTS, claim, exploit, load, repacked, saved

with zipfile.ZipFile(io.BytesIO(PLAIN)) as opened:
    ENTRIES = {name.split("/", 1)[1]: opened.read(name) for name in opened.namelist()}
FORGED = saved({"a": claim(size=(1 << 20, 1 << 14), stride=(0, 0))})
with zipfile.ZipFile(io.BytesIO(FORGED)) as opened:
    WIDE = opened.read("archive/data.pkl")


def packed(*entries: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


def beside(name: str, content: bytes, *, first: bool) -> bytes:
    entries = [(f"archive/{key}", value) for key, value in ENTRIES.items()]
    return packed((name, content), *entries) if first else packed(*entries, (name, content))


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("name", ["Data.pkl", "DATA.PKL", "data.pKl", "Data/0", "data/0", "BYTEORDER"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_that_differ_by_capital_letters_are_refused(tmp_path, name, first):
    with pytest.raises(CheckpointError, match=r"two are called the same .capital letters do not count"):
        load(tmp_path, beside(f"archive/{name}", WIDE, first=first))


def test_code_in_an_entry_beside_is_refused(tmp_path):
    trap = saved(exploit(tmp_path / "marker"))
    with zipfile.ZipFile(io.BytesIO(trap)) as archive, pytest.raises(CheckpointError, match="called the same"):
        load(tmp_path, beside("archive/Data.pkl", archive.read("archive/data.pkl"), first=True))
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    "name",
    ["data.pkl", "other/data.pkl", "/archive/data/9", "archive/../x", "archive/./x", "archive//x", "archive/x/",
     "archive/data/\u202e9", "archive/data/a\nb"],
)  # fmt: skip
def test_entries_outside_of_the_folder_or_with_odd_names_are_refused(tmp_path, name):
    with pytest.raises(CheckpointError, match="must lie in its folder 'archive' under a plain name"):
        load(tmp_path, beside(name, b"", first=False))


END, END_64, LOCATOR = 22, 22 + 20 + 56, 22 + 20


def changed(content: bytes, at: int, value: bytes) -> bytes:
    """With other bytes, ``at`` being counted from the end if it is below zero."""
    at %= len(content)
    return content[:at] + value + content[at + len(value) :]


def directory(content: bytes) -> int:
    return content.index(b"PK\1\2")


def second_directory() -> bytes:
    """Two archives in a row: a reader that searches from the start finds the first."""
    return saved({"a": torch.zeros(9)}) + PLAIN


SMALL = repacked(PLAIN, {})
LIES = {
    "something after the end": (PLAIN + b"\0", "not at the end"),
    "a comment": (changed(PLAIN, -2, b"\1\0") + b"c", "not at the end"),
    "two archives in a row": (second_directory(), "not where it says|not at the end"),
    "something before the start": (b"PK\3\4" + PLAIN, "not where it says|not at the end"),
    "another number of entries": (changed(PLAIN, -END + 8, b"\1\0\1\0"), "contradict each other"),
    "another number of entries on this disk": (changed(PLAIN, -END + 8, b"\1\0"), "not at the end"),
    "another place": (changed(PLAIN, -END + 16, b"\0\0\0\0"), "contradict each other"),
    "another place in the long directory": (changed(PLAIN, -END_64 + 48, bytes(8)), "contradict each other"),
    "another number in the long directory": (changed(PLAIN, -END_64 + 24, b"\1" + bytes(7) + b"\1"), "contradict"),
    "the long directory elsewhere": (changed(PLAIN, -LOCATOR + 8, b"\0"), "long directory is not at the end"),
    "the long directory damaged": (changed(PLAIN, -END_64, b"XX"), "long directory is damaged"),
    "fewer entries than the directory has": (
        changed(SMALL, -END + 8, struct.pack("<2H", *[len(ENTRIES) - 1] * 2)),
        "longer than its entries",
    ),
    "more entries than the directory has": (
        changed(SMALL, -END + 8, struct.pack("<2H", *[len(ENTRIES) + 1] * 2)),
        "damaged",
    ),
    "a directory elsewhere": (changed(SMALL, -END + 16, bytes(4)), "not where it says"),
    "an encrypted entry": (changed(SMALL, directory(SMALL) + 8, b"\1"), "encrypted"),
    "an entry with two sizes": (changed(SMALL, directory(SMALL) + 20, b"\1"), "two sizes"),
    "an entry that begins elsewhere": (changed(SMALL, directory(SMALL) + 42, b"\1"), "not where the directory says"),
    "an entry that begins beyond the file": (changed(SMALL, directory(SMALL) + 45, b"\x7f"), "shorter than it says"),
    "another name before the content": (changed(SMALL, 30, b"Archive"), "contradicts the directory"),
    "another size before the content": (changed(SMALL, 22, b"\1"), "contradicts the directory"),
    "another method before the content": (changed(SMALL, 8, b"\x08"), "contradicts the directory"),
    "a check sum that is wrong": (changed(SMALL, SMALL.index(ENTRIES["data.pkl"]) + 9, b"\1"), "check sum"),
}


@pytest.mark.parametrize(("content", "message"), LIES.values(), ids=LIES.keys())
def test_directories_that_leave_a_choice_are_refused(tmp_path, content, message):
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, content)


def test_entries_that_overlap_are_refused(tmp_path):
    made = bytearray(SMALL)
    places = [at for at in range(len(made)) if made[at : at + 4] == b"PK\1\2"]
    made[places[1] + 42 : places[1] + 46] = made[places[0] + 42 : places[0] + 46]
    with pytest.raises(CheckpointError, match="overlap"):
        load(tmp_path, bytes(made))


def with_notes(extra: bytes) -> bytes:
    """An archive whose first entry has notes in the directory."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in ENTRIES.items():
            entry = zipfile.ZipInfo(f"archive/{name}")
            entry.extra = extra if name == "data.pkl" else b""
            archive.writestr(entry, content)
    return stream.getvalue()


def test_notes_that_give_an_entry_a_second_name_or_size_are_refused(tmp_path):
    harmless = struct.pack("<2HB", 0x5455, 1, 0)
    assert digest(load(tmp_path, with_notes(harmless))) == digest(WEIGHTS)
    for notes in (struct.pack("<2HB", 0x7075, 1, 0), struct.pack("<2H", 0x5455, 9), struct.pack("<2HQ", 1, 8, 1) * 2):
        with pytest.raises(CheckpointError, match="damaged"):
            load(tmp_path, with_notes(notes))


def test_long_numbers_of_large_archives_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    made = repacked(PLAIN, {})
    assert digest(load(tmp_path, made)) == digest(WEIGHTS)
    at = directory(made)
    extra = at + 46 + int.from_bytes(made[at + 28 : at + 30], "little")
    with pytest.raises(CheckpointError, match="damaged"):
        load(tmp_path, changed(made, extra + 4, b"\xff" * 7))


def test_more_entries_than_any_network_has_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("netpurify.checkpoint.archive.MOST_ENTRIES", 3)
    with pytest.raises(CheckpointError, match=f"announces {len(ENTRIES)} entries; at most 3"):
        load(tmp_path, PLAIN)
