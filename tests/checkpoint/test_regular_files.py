"""Only regular files are opened: a pipe would keep the reader waiting, a device could do anything."""

import os
import socket
from pathlib import Path

import pytest

from netpurify.checkpoint import load_metadata, load_weights
from netpurify.checkpoint.mapping import map_regular, open_regular
from netpurify.errors import CheckpointError
from tests.checkpoint.forged_files import PLAIN

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes have names on POSIX alone")


@pytest.mark.usefixtures("impatient")
def test_a_pipe_is_refused_and_nobody_waits(tmp_path):
    os.mkfifo(tmp_path / "some.pt")
    for read in (load_weights, load_metadata):
        with pytest.raises(CheckpointError, match=r"some\.pt: expected a file.*; It is a pipe, a socket or a device"):
            read(tmp_path / "some.pt")


def test_devices_and_sockets_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="a pipe, a socket or a device"):
        load_weights(Path(os.devnull))
    with pytest.raises(CheckpointError, match="a pipe, a socket or a device"):
        load_metadata("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="No such device"):
            open_regular(tmp_path / "socket")


def test_links_to_regular_files_are_followed(tmp_path):
    (tmp_path / "some.pt").write_bytes(PLAIN)
    (tmp_path / "link.pt").symlink_to(tmp_path / "some.pt")
    assert sorted(load_weights(tmp_path / "link.pt")) == ["a.bias", "a.weight"]


def test_what_was_mapped_stays_when_the_name_goes_to_another_file(tmp_path):
    (tmp_path / "some").write_bytes(b"first")
    content = map_regular(tmp_path / "some")
    (tmp_path / "other").write_bytes(b"other")
    (tmp_path / "other").replace(tmp_path / "some")
    assert content[:5] == b"first"
    assert map_regular(tmp_path / "some")[:5] == b"other"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists the open files of a process")
def test_no_handle_stays_open_after_a_refusal(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(IsADirectoryError):
            open_regular(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
