"""Saved weights read back bit for bit, by the library of the format too; a failure leaves what was there."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from netpurify.checkpoint import digest, load_metadata, load_weights, save_weights
from netpurify.errors import CheckpointError, InputError

GENERATOR = torch.Generator().manual_seed(0)
STATE = {
    "net.weight": torch.randn(4, 3, generator=GENERATOR),
    "half": torch.randn(5, generator=GENERATOR).to(torch.bfloat16),
    "eighth": torch.randn(3, generator=GENERATOR).to(torch.float8_e4m3fn),
    "mask": torch.tensor([True, False, True]),
    "double": torch.tensor([float("nan"), -0.0, float("inf")], dtype=torch.float64),
    "count": torch.tensor(7),
    "wave": torch.tensor([1 + 2j]),
    "nothing": torch.empty(0, 3),
    "größe \U0001f40d": torch.ones(1, dtype=torch.int16),
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_weights_read_back_bit_for_bit(tmp_path):
    save_weights(STATE, tmp_path / "some.safetensors", metadata={"b": "2", "a": "é\n"})
    back = load_weights(str(tmp_path / "some.safetensors"))
    assert digest(back) == digest(STATE)
    assert digest(load_file(tmp_path / "some.safetensors")) == digest(STATE)
    assert {name: tensor.shape for name, tensor in back.items()} == {name: one.shape for name, one in STATE.items()}
    assert load_metadata(tmp_path / "some.safetensors") == {"a": "é\n", "b": "2"}
    with safe_open(tmp_path / "some.safetensors", "pt") as opened:
        assert opened.metadata() == {"a": "é\n", "b": "2"}


def test_the_same_weights_give_the_same_bytes(tmp_path):
    notes = {str(number): "x" for number in range(20)}
    save_weights(STATE, tmp_path / "one", metadata=notes)
    turned = {name: STATE[name] for name in reversed(STATE)}
    save_weights(turned, tmp_path / "two", metadata=dict(reversed(notes.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_tied_strided_and_expanded_tensors_are_written_each(tmp_path):
    weight = torch.arange(6.0).reshape(2, 3)
    state = {"a": weight, "b": weight, "part": weight[0], "turned": weight.t(), "wide": torch.ones(1).expand(4)}
    save_weights(state, tmp_path / "some")
    back = load_weights(tmp_path / "some")
    assert digest(back) == digest(state)
    assert back["a"].data_ptr() != back["b"].data_ptr()


def test_saved_weights_replace_the_file_they_were_loaded_from(tmp_path):
    save_weights({"a": torch.ones(1000), "b": torch.zeros(10)}, tmp_path / "some")
    state = load_weights(tmp_path / "some")
    save_weights({"a": state["a"] + 1}, tmp_path / "some")
    assert state["a"].eq(1).all()
    assert load_weights(tmp_path / "some")["a"].eq(2).all()
    assert load_metadata(tmp_path / "some") == {}


def test_loaded_weights_may_be_changed_without_changing_the_file(tmp_path):
    save_weights({"a": torch.ones(3)}, tmp_path / "some")
    load_weights(tmp_path / "some")["a"].zero_()
    assert load_weights(tmp_path / "some")["a"].eq(1).all()


@pytest.mark.parametrize(
    ("state", "metadata", "message"),
    [
        ({}, None, "at least one tensor"),
        ({"a": 1}, None, "a must be a tensor; got int"),
        ({1: torch.ones(1)}, None, "names of weights must be text; got 1"),
        ({"a": torch.eye(2).to_sparse()}, None, "a must be a dense tensor.*sparse"),
        ({"a": torch.ones(1, device="meta")}, None, "a must be a dense tensor.*meta"),
        ({"a": torch.ones(1, dtype=torch.complex128)}, None, "a: safetensors has no word for torch.complex128"),
        ({"__metadata__": torch.ones(1)}, None, "cannot hold a tensor called '__metadata__'"),
        ({"\ud800": torch.ones(1)}, None, "cannot hold a tensor called"),
        ({"a": torch.ones(1)}, {"epoch": 3}, "metadata must map text to text.*'epoch': 3"),
        ({"a": torch.ones(1)}, {3: "epoch"}, "metadata must map text to text"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_name_and_nothing_is_written(tmp_path, state, metadata, message):
    with pytest.raises(InputError, match=message):
        save_weights(state, tmp_path / "some", metadata=metadata)
    assert names(tmp_path) == []


@pytest.mark.parametrize("place", ["", "nowhere/some", "file/some"])
def test_places_that_cannot_be_written_are_refused(tmp_path, place):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"must be written to a file in a folder.*directory.*another place"):
        save_weights(STATE, tmp_path / place)
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failure_leaves_the_old_weights_and_nothing_else(tmp_path, monkeypatch, problem):
    def fail(*_):
        raise problem

    save_weights(STATE, tmp_path / "some")
    monkeypatch.setattr(os, "fsync", fail)
    expected = CheckpointError if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="No space left.*make room" if expected is CheckpointError else None):
        save_weights({"a": torch.ones(2)}, tmp_path / "some")
    assert digest(load_weights(tmp_path / "some")) == digest(STATE)
    assert names(tmp_path) == ["some"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the limit is one of POSIX")
def test_a_disk_that_fills_up_leaves_the_old_weights(tmp_path):
    save_weights(STATE, tmp_path / "some")
    code = (
        "import resource, sys, torch; from netpurify.checkpoint import save_weights\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "save_weights({'a': torch.ones(100_000)}, sys.argv[1])"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "some"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "CheckpointError" in run.stderr
    assert "File too large; nothing was changed" in run.stderr
    assert digest(load_weights(tmp_path / "some")) == digest(STATE)
    assert names(tmp_path) == ["some"]
