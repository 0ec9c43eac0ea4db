"""A file is there whole or not at all, whatever interrupts its writing."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from netpurify.atomic import check_folder_target, check_target, write_atomically, write_folder, write_together

FULL = OSError(errno.ENOSPC, "No space left on device")
posix = pytest.mark.skipif(os.name == "nt", reason="permissions, links, limits and signals are those of POSIX")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path, content: bytes, then=lambda: None) -> None:
    with write_atomically(path) as stream:
        stream.write(content)
        then()


def test_content_gets_its_name_at_the_end(tmp_path):
    (tmp_path / "some").write_bytes(b"old")
    with write_atomically(str(tmp_path / "some")) as stream:
        stream.write(b"new")
        stream.flush()
        assert (tmp_path / "some").read_bytes() == b"old"
    assert (tmp_path / "some").read_bytes() == b"new"
    assert names(tmp_path) == ["some"]


@pytest.mark.parametrize("problem", [FULL, KeyboardInterrupt(), ValueError("mine"), SystemExit(1)], ids=repr)
@pytest.mark.parametrize("moment", ["block", "fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, problem, moment):
    def fail(*_):
        raise problem

    (tmp_path / "some").write_bytes(b"old")
    if moment != "block":
        monkeypatch.setattr(os if moment == "fsync" else Path, moment, fail)
    with pytest.raises(type(problem)):
        write(tmp_path / "some", b"new", then=fail)
    monkeypatch.undo()
    assert (tmp_path / "some").read_bytes() == b"old"
    assert names(tmp_path) == ["some"]


@pytest.mark.slow
@posix
def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path):
    (tmp_path / "some").write_bytes(b"old")
    code = (
        "import resource, sys; from netpurify.atomic import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "with write_atomically(sys.argv[1]) as stream: stream.write(bytes(100_000))"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "some"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "File too large" in run.stderr
    assert (tmp_path / "some").read_bytes() == b"old"
    assert names(tmp_path) == ["some"]


@pytest.mark.slow
@posix
def test_a_kill_leaves_the_old_file(tmp_path):
    (tmp_path / "some").write_bytes(b"old")
    code = (
        "import os, signal, sys; from netpurify.atomic import write_atomically\n"
        "with write_atomically(sys.argv[1]) as stream: stream.write(b'new'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "some"], check=False)
    assert run.returncode == -signal.SIGKILL
    assert (tmp_path / "some").read_bytes() == b"old"
    assert [name[:13] for name in names(tmp_path)] == [".partial-some", "some"]


@posix
def test_permissions_are_those_of_a_new_file_or_those_that_were_there(tmp_path):
    (tmp_path / "ordinary").write_bytes(b"")
    write(tmp_path / "new", b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "ordinary").stat().st_mode
    (tmp_path / "ordinary").chmod(0o640)
    write(tmp_path / "ordinary", b"more")
    assert stat.S_IMODE((tmp_path / "ordinary").stat().st_mode) == 0o640


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path, there):
    (tmp_path / "far").mkdir()
    if there:
        (tmp_path / "far" / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(Path("far") / "real")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "real").read_bytes() == b"new"
    assert names(tmp_path / "far") == ["real"]


def test_the_longest_name_can_be_written(tmp_path):
    write(tmp_path / ("é" * 127), b"new")
    assert names(tmp_path) == ["é" * 127]


def test_places_that_are_no_place_for_a_file_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(tmp_path, b"new")
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "nowhere" / "some", b"new")
    assert names(tmp_path) == []


@posix
def test_pipes_and_circles_of_links_are_refused_and_stay(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("pipe", "circle"):
        with pytest.raises(OSError, match="Not a regular file"):
            write(tmp_path / name, b"new")
    assert names(tmp_path) == ["circle", "pipe"]


@posix
def test_a_file_that_is_protected_from_writing_is_refused(plain_user):
    (plain_user / "some").write_bytes(b"old")
    (plain_user / "some").chmod(0o444)
    with pytest.raises(PermissionError):
        write(plain_user / "some", b"new")
    assert (plain_user / "some").read_bytes() == b"old"


def test_files_that_are_written_together_get_their_names_together(tmp_path):
    (tmp_path / "b").write_bytes(b"old")
    with write_together():
        write(tmp_path / "a", b"new")
        write(tmp_path / "b", b"new")
        assert not (tmp_path / "a").exists()
        assert (tmp_path / "b").read_bytes() == b"old"
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"new"
    write(tmp_path / "c", b"new")
    assert names(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize("problem", [FULL, KeyboardInterrupt(), ValueError("mine"), SystemExit(1)], ids=repr)
@pytest.mark.parametrize("moment", ["between", "second block", "rename 1", "rename 2", "rename 3"])
@pytest.mark.parametrize("links", [True, False])
def test_files_that_are_written_together_are_all_there_or_none(tmp_path, monkeypatch, problem, moment, links):
    def fail(*_):
        raise problem

    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    def rename(partial, target):
        renamed.append(target)
        if moment == f"rename {len(renamed)}":
            raise problem
        return really(partial, target)

    def together():
        with write_together():
            write(tmp_path / "a", b"new")
            if moment == "between":
                raise problem
            write(tmp_path / "b", b"new", then=fail if moment == "second block" else lambda: None)
            write(tmp_path / "c", b"new")

    renamed, really = [], Path.replace
    monkeypatch.setattr(Path, "replace", rename)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    for name in ("b", "c"):
        (tmp_path / name).write_bytes(b"old")
    with pytest.raises(type(problem)):
        together()
    monkeypatch.undo()
    assert names(tmp_path) == ["b", "c"]
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes() == b"old"


@posix
def test_places_for_a_file_can_be_asked_for_beforehand(tmp_path):
    check_target(tmp_path / "new")
    (tmp_path / "some").write_bytes(b"")
    check_target(tmp_path / "some")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "", "n" * 300):
        with pytest.raises(OSError, match=r"Not a regular file|Is a directory|File name too long"):
            check_target(tmp_path / name)
    with pytest.raises(OSError, match="Not a regular file"):
        check_target(os.devnull)


def test_a_block_within_a_block_is_a_part_of_it(tmp_path):
    target = tmp_path / "inner"

    def inner_block():
        with write_together(), write_atomically(target) as stream:
            stream.write(b"new")
        assert not target.exists()

    def outer_block_that_fails():
        with write_together():
            inner_block()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        outer_block_that_fails()
    assert not list(tmp_path.iterdir())
    with write_together():
        inner_block()
    assert target.read_bytes() == b"new"


def make(path: Path, content: bytes, then=lambda: None, *, replace: bool = True) -> None:
    with write_folder(path, replace=replace) as folder:
        (folder / "inner").write_bytes(content)
        (folder / "deeper").mkdir()
        (folder / "deeper" / "other").write_bytes(content)
        then()


def inner(path: Path) -> tuple[bytes, bytes]:
    return (path / "inner").read_bytes(), (path / "deeper" / "other").read_bytes()


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_gets_its_name_at_the_end(tmp_path, there):
    target = tmp_path / "some"
    if there:
        make(target, b"old")
    seen = []
    make(target, b"new", then=lambda: seen.append(inner(target) if there else target.exists()))
    assert seen == [(b"old", b"old") if there else False]
    assert inner(target) == (b"new", b"new")
    assert names(tmp_path) == ["some"]


@pytest.mark.parametrize("problem", [FULL, KeyboardInterrupt(), ValueError("mine"), SystemExit(1)], ids=repr)
@pytest.mark.parametrize("moment", ["block", "fsync", "rename", "replace"])
@pytest.mark.parametrize("there", [True, False])
def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path, monkeypatch, problem, moment, there):
    def fail(*_):
        raise problem

    def fail_once(*_):
        monkeypatch.undo()  # what was there can be put back
        raise problem

    target = tmp_path / "some"
    if there:
        make(target, b"old")
    elif moment == "rename":
        moment = "replace"  # only a folder that was there gets another name first
    if moment != "block":
        monkeypatch.setattr(os if moment == "fsync" else Path, moment, fail if moment == "fsync" else fail_once)
    with pytest.raises(type(problem)):
        make(target, b"new", then=fail if moment == "block" else lambda: None)
    monkeypatch.undo()
    assert names(tmp_path) == (["some"] if there else [])
    assert not there or inner(target) == (b"old", b"old")


def test_a_folder_that_cannot_be_put_back_is_not_deleted(tmp_path, monkeypatch):
    def fail(*_):
        raise FULL

    make(tmp_path / "some", b"old")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        make(tmp_path / "some", b"new")
    monkeypatch.undo()
    [kept] = tmp_path.iterdir()
    assert kept.name.startswith(".partial-some")
    assert inner(kept) == (b"old", b"old")


def test_a_folder_is_replaced_only_if_that_was_asked_for(tmp_path):
    make(tmp_path / "some", b"old")
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "circle").symlink_to("circle")
    for name, replace, problem in (
        ("some", False, FileExistsError), ("file", True, NotADirectoryError), ("circle", True, NotADirectoryError),
        ("n" * 300, False, OSError),
    ):  # fmt: skip
        with pytest.raises(problem):
            make(tmp_path / name, b"new", replace=replace)
        with pytest.raises(problem):
            check_folder_target(tmp_path / name, replace=replace)
    with pytest.raises(FileNotFoundError):
        make(tmp_path / "nowhere" / "some", b"new")
    check_folder_target(tmp_path / "some", replace=True)
    assert names(tmp_path) == ["circle", "file", "some"]
    assert inner(tmp_path / "some") == (b"old", b"old")


@pytest.mark.parametrize("moment", ["nothing", "block", "rename 1", "rename 2", "rename 3"])
@pytest.mark.parametrize("there", [True, False])
def test_files_and_folders_that_are_written_together_are_all_there_or_none(tmp_path, monkeypatch, moment, there):
    def rename(partial, target):
        renamed.append(target)
        if moment == f"rename {len(renamed)}":
            raise FULL
        return really(partial, target)

    def together():
        with write_together():
            write(tmp_path / "a", b"new")
            make(tmp_path / "b", b"new")
            write(tmp_path / "c", b"new")
            assert (tmp_path / "b").exists() == there
            if moment == "block":
                raise FULL

    renamed, really = [], Path.replace
    if there:
        write(tmp_path / "a", b"old")
        make(tmp_path / "b", b"old")
    monkeypatch.setattr(Path, "replace", rename)
    if moment == "nothing":
        together()
    else:
        with pytest.raises(OSError, match="No space left"):
            together()
    monkeypatch.undo()
    content = b"new" if moment == "nothing" else b"old"
    expected = ["a", "b", "c"] if moment == "nothing" else ["a", "b"] if there else []
    assert names(tmp_path) == expected
    if expected:
        assert (tmp_path / "a").read_bytes() == content
        assert inner(tmp_path / "b") == (content, content)
