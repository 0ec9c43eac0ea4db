"""A command writes all of its outputs or none, and says before the work what it could not write."""

import os
from contextlib import contextmanager

import pytest

from netpurify import checkpoint

WEIGHTS = "contaminated.safetensors"


@pytest.fixture
def purify(run, common):
    def call(folder, *more):
        return run("recover", WEIGHTS, *common, "--initial-seed", "5", "-o", folder / "out.safetensors", *more)

    return call


@contextmanager
def files_of_at_most(size):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="limits are those of POSIX")
@pytest.mark.parametrize("option", ["--proof", "--report", "--json"])
def test_a_disk_that_fills_up_leaves_nothing_and_the_same_command_works_afterwards(purify, files, option):
    """A limit on the size of files stands for a full disk; the weights fit, what comes after them does not."""
    target = files / ("more.safetensors" if option == "--proof" else "more")
    (files / "warm").mkdir()
    assert purify(files / "warm", "--proof", files / "warm" / "proof.safetensors").code == 1
    size = (files / "warm" / "out.safetensors").stat().st_size
    with files_of_at_most(size + 100):
        done = purify(files, option, target)
    assert done.code == 2, done.err
    assert "File too large" in done.err
    assert {path.name for path in files.iterdir()} == {"warm"}
    done = purify(files, option, target)
    assert done.code == 1, done.err
    assert {path.name for path in files.iterdir()} == {"warm", "out.safetensors", target.name}


@pytest.mark.slow
def test_files_that_were_there_stay_if_a_later_one_fails(purify, files, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    (files / "out.safetensors").write_bytes(b"precious")
    (files / "page.html").write_bytes(b"precious")
    monkeypatch.setattr("netpurify.report.results.json_text", full)
    done = purify(files, "--force", "--report", files / "page.html", "--json", files / "record.json")
    assert done.code == 2, done.err
    assert "No space left on device" in done.err
    assert {path.name: path.read_bytes() for path in files.iterdir()} == {
        "out.safetensors": b"precious", "page.html": b"precious",
    }  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="devices and pipes are those of POSIX")
@pytest.mark.parametrize("option", ["--report", "--json", "--sarif", "--proof"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("/dev/null", "Not a regular file"),
        ("{}/pipe.safetensors", "Not a regular file"),
        ("{}/circle.safetensors", "Not a regular file"),
        ("{}/folder.safetensors", "is a folder; name a file in it"),
        ("{}/" + "n" * 300 + ".safetensors", "File name too long"),
        ("{}/lost.safetensors", "there is no folder"),
    ],
)
def test_what_is_no_place_for_a_file_is_refused_before_the_work(purify, files, monkeypatch, option, name, told):
    monkeypatch.setattr("netpurify.network.purify", lambda *_, **__: pytest.fail("the work was begun"))
    os.mkfifo(files / "pipe.safetensors")
    (files / "circle.safetensors").symlink_to("circle.safetensors")
    (files / "lost.safetensors").symlink_to("nowhere/lost.safetensors")
    (files / "folder.safetensors").mkdir()
    before = sorted(files.iterdir())
    done = purify(files, option, name.format(files))
    assert done.code == 2, done.err
    assert told in done.err
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    "command", ["check", "recover", "diff", "contaminate", "verify", "theory", "reproduce", "demo"]
)
def test_names_that_are_too_long_are_refused(run, files, common, command):
    long = "n" * 300
    arguments = {
        "check": [long, *common],
        "recover": [WEIGHTS, *common, "--initial", long, "-o", files / "out.safetensors"],
        "diff": [WEIGHTS, long],
        "contaminate": [WEIGHTS, "-o", files / f"{long}.safetensors"],
        "verify": [long, "--contaminated", WEIGHTS, "--purified", WEIGHTS],
        "theory": ["--inputs", long],
        "reproduce": ["2", "--quick", "--folder", files / "tables", "--report", files / long],
        "demo": ["--folder", files / long],
    }
    done = run(command, *arguments[command])
    assert done.code == 2, done.err
    assert "File name too long" in done.err


def test_links_are_followed_and_stay(purify, files):
    (files / "far").mkdir()
    (files / "link.safetensors").symlink_to("far/proof.safetensors")
    assert purify(files, "--proof", files / "link.safetensors").code == 1
    assert (files / "link.safetensors").is_symlink()
    assert checkpoint.load_metadata(files / "far" / "proof.safetensors")
