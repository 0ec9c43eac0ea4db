"""An index of shards that may be anything: it cannot lead out of its folder, nor show what the shards do not hold."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import save_file

from netpurify.checkpoint import load_weights, open_weights
from netpurify.errors import CheckpointError
from tests.checkpoint.model_folders import INDEX, two_shards

posix = pytest.mark.skipif(os.name == "nt", reason="pipes and links are those of POSIX")
READERS = {"load": load_weights, "open": open_weights}
NAMES = [
    "../secret.safetensors", "/etc/secret.safetensors", "sub/one.safetensors", "sub\\one.safetensors", "..", ".", "",
    "C:one.safetensors", "\\\\host\\share.safetensors", "./one.safetensors", "one.safetensors/", "one\0.safetensors",
    "one\n.safetensors", "\u202eone.safetensors", "one.py", "config.json", "x" * 300 + ".safetensors",
]  # fmt: skip


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("name", NAMES)
def test_shards_are_plain_names_of_the_same_folder(tmp_path, name, read):
    save_file({"a.weight": torch.ones(1)}, tmp_path / "secret.safetensors")
    folder = two_shards(tmp_path / "folder", **{"a.weight": name})
    with pytest.raises(CheckpointError, match="a shard must be a file of the same folder, under a plain name"):
        read(folder)
    with pytest.raises(CheckpointError, match="a shard must be a file of the same folder"):
        read(folder / INDEX)


WRONG = {
    "no JSON": (b'{"weight_map": ', "no proper JSON"),
    "nothing": (b"", "no proper JSON"),
    "no text": (b"{\xff\xfe", "no proper JSON"),
    "half a letter": (b'{"weight_map": {"\\ud800": "one.safetensors"}}', "no proper JSON"),
    "a number of a million digits": (b'{"metadata": ' + b"9" * 10**6 + b"}", "no proper JSON"),
    "a list": (b"[]", "expected an object whose weight_map"),
    "no map": (b"{}", "expected an object whose weight_map"),
    "an empty map": (b'{"weight_map": {}}', "expected an object whose weight_map"),
    "a list of names": (b'{"weight_map": ["one.safetensors"]}', "expected an object whose weight_map"),
    "a number as file": (b'{"weight_map": {"a.weight": 1}}', "expected an object whose weight_map"),
    "nothing as file": (b'{"weight_map": {"a.weight": null}}', "expected an object whose weight_map"),
    "two of a name": (b'{"weight_map": {"a": "one.safetensors", "a": "two.safetensors"}}', "'a' is there twice"),
    "two maps": (b'{"weight_map": {"a": "one.safetensors"}, "weight_map": {}}', "'weight_map' is there twice"),
    "nested too deep": (b'{"metadata": ' + b"[" * 100_000, "this one has more parts"),
    "a million parts": (b'{"metadata": [' + b"1," * 1_000_000 + b"1]}", "this one has more parts"),
    "longer than any": (b"{" + b" " * (1 << 25) + b"}", "at most 33554432 bytes; this one has more"),
    "a thousand shards": (
        json.dumps({"weight_map": {str(number): f"{number}.safetensors" for number in range(1001)}}).encode(),
        "an index may list 1000 shards; it lists more",
    ),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG.keys())
def test_texts_that_are_no_index_are_refused(tmp_path, content, message, read):
    folder = two_shards(tmp_path)
    (folder / INDEX).write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        read(folder)
    assert str(folder / INDEX) in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_the_map_and_the_shards_must_agree(tmp_path, read):
    folder = two_shards(tmp_path, **{"a.more": "one.safetensors"})
    with pytest.raises(CheckpointError, match=r"one.safetensors: a shard must hold.*it lacks a.more; the index is"):
        read(folder)
    two_shards(tmp_path, **{"a.weight": "two.safetensors"})  # it is in the other one
    with pytest.raises(CheckpointError, match=r"two.safetensors: .*it lacks a.weight|one.*does not list a.weight"):
        read(folder)
    two_shards(tmp_path)
    save_file({"b.weight": torch.ones(4, 3), "a.weight": torch.ones(6, 5), "a.bias": torch.ones(6)},
              folder / "one.safetensors")  # fmt: skip
    with pytest.raises(CheckpointError, match=r"one.safetensors: .*the index does not list b.weight; the index is"):
        read(folder)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_shards_that_cannot_be_read_are_refused_by_name(tmp_path, read):
    folder = two_shards(tmp_path)
    content = (folder / "two.safetensors").read_bytes()
    for change, message in ((b"", "the file is empty"), (content[:-1], "cut short"), (b"\x80\x04N.", "announces")):
        (folder / "two.safetensors").write_bytes(change)
        with pytest.raises(CheckpointError, match=rf"two.safetensors: .*{message}"):
            read(folder)
    (folder / "two.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"two.safetensors: expected a file that can be read; No such file"):
        read(folder)
    (folder / "two.safetensors").mkdir()
    with pytest.raises(CheckpointError, match=r"two.safetensors: expected a file that can be read; Is a directory"):
        read(folder)


@posix
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_pipes_and_circles_of_links_are_refused_without_waiting(tmp_path, read):
    folder = two_shards(tmp_path)
    (folder / "two.safetensors").unlink()
    (folder / "two.safetensors").symlink_to("two.safetensors")
    with pytest.raises(CheckpointError, match=r"two.safetensors: .*Too many levels of symbolic links"):
        read(folder)
    (folder / "two.safetensors").unlink()
    os.mkfifo(folder / "two.safetensors")
    with pytest.raises(CheckpointError, match=r"two.safetensors: .*a pipe, a socket or a device"):
        read(folder)
    (folder / INDEX).unlink()
    os.mkfifo(folder / INDEX)
    with pytest.raises(CheckpointError, match=r"index.json: .*a pipe, a socket or a device"):
        read(folder)
    (folder / INDEX).unlink()
    (folder / INDEX).symlink_to(INDEX)
    with pytest.raises(CheckpointError, match=r"index.json: .*Too many levels of symbolic links"):
        read(folder)


@posix
@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_no_handle_stays_open_after_a_refusal(tmp_path, read):
    folder = two_shards(tmp_path)
    shutil.copy(folder / "one.safetensors", folder / "two.safetensors")
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0  # noqa: PTH110, PTH208
    for _ in range(10):
        with pytest.raises(CheckpointError, match="a shard must hold"):
            read(folder)
    after = len(os.listdir("/proc/self/fd")) if before else 0  # noqa: PTH208
    assert after == before
