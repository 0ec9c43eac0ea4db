"""Weights written again in the form in which they came, whole or not at all."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from netpurify.checkpoint import check_like, digest, load_metadata, load_weights, save_like, save_weights
from netpurify.errors import CheckpointError, InputError
from tests.checkpoint.model_folders import INDEX, MODELS, two_shards

posix = pytest.mark.skipif(os.name == "nt", reason="pipes, links and signals are those of POSIX")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("size", ["50GB", "3KB"])
def test_a_model_in_which_nothing_changed_gives_the_same_files(tmp_path, kind, size):
    MODELS[kind]().save_pretrained(tmp_path / "model", max_shard_size=size)
    assert save_like(tmp_path / "model", tmp_path / "copy", {}) == ()
    assert contents(tmp_path / "copy") == contents(tmp_path / "model")
    assert names(tmp_path) == ["copy", "model"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_transformers_reads_the_replaced_tensors(tmp_path, kind):
    model = MODELS[kind]()
    model.save_pretrained(tmp_path / "model", max_shard_size="3KB")
    state = load_weights(tmp_path / "model")
    inner = ("0.mlp.c_fc.weight", "0.mlp.up_proj.weight", "0.intermediate.dense.weight")
    [name] = [name for name in state if name.endswith(inner)]
    other = torch.full_like(state[name], 0.5)
    save_like(tmp_path / "model", tmp_path / "new", {name: other}, metadata={"by": "us"})
    assert json.loads((tmp_path / "new" / INDEX).read_text()) == json.loads((tmp_path / "model" / INDEX).read_text())
    assert digest(load_weights(tmp_path / "new")) == digest({**state, name: other})
    assert load_metadata(tmp_path / "new") == {"format": "pt", "by": "us"}
    back = type(model).from_pretrained(tmp_path / "new", dtype="auto")
    expected = model.state_dict()
    assert {key for key, value in back.state_dict().items() if not value.equal(expected[key])} == {name}
    assert back.state_dict()[name].eq(0.5).all()


def test_order_dtypes_and_metadata_stay_and_any_form_of_tensor_is_taken(tmp_path):
    folder = two_shards(tmp_path / "model")
    state = load_weights(folder)
    new = {"a.weight": torch.randn(5, 6).t(), "a.bias": torch.nn.Parameter(torch.ones(6, dtype=torch.bfloat16))}
    save_like(folder / INDEX, tmp_path / "new", new, metadata={"b": "é"})
    for name in ("one.safetensors", "two.safetensors"):
        with safe_open(folder / name, "pt") as before, safe_open(tmp_path / "new" / name, "pt") as after:
            assert list(after.offset_keys()) == list(before.offset_keys())
            assert after.metadata() == {"format": "pt", "b": "é"}
    assert digest(load_file(tmp_path / "new" / "one.safetensors")) == digest({k: v.detach() for k, v in new.items()})
    assert digest(load_weights(tmp_path / "new")) == digest({**state, **{k: v.detach() for k, v in new.items()}})


def test_a_file_gives_a_file_and_prefixes_stay_in_it(tmp_path):
    save_file({"module.a": torch.ones(2), "module.b": torch.zeros(3)}, tmp_path / "some.safetensors")
    assert save_like(tmp_path / "some.safetensors", tmp_path / "new", {"b": torch.ones(3)}) == ()
    assert digest(load_file(tmp_path / "new")) == digest({"module.a": torch.ones(2), "module.b": torch.ones(3)})
    with pytest.raises(InputError, match="is there already"):
        save_like(tmp_path / "some.safetensors", tmp_path / "new", {})
    save_like(tmp_path / "some.safetensors", tmp_path / "new", {}, replace=True)
    assert (tmp_path / "new").read_bytes() == (tmp_path / "some.safetensors").read_bytes()


def test_a_function_is_asked_once_for_each_name(tmp_path):
    asked = []

    def give(name):
        asked.append(name)
        return torch.full((4, 3), 2.0) if name == "b.weight" else None

    folder = two_shards(tmp_path / "model")
    save_like(folder, tmp_path / "new", give)
    assert sorted(asked) == sorted(load_weights(folder))
    assert digest(load_weights(tmp_path / "new")) == digest(
        {**load_weights(folder), "b.weight": torch.full((4, 3), 2.0)}
    )


def test_small_files_are_copied_and_programs_and_pickles_are_not(tmp_path):
    folder = two_shards(tmp_path / "model")
    kept = {"config.json": b"{}", "merges.txt": b"a b", "spiece.model": b"\x0a\x0e", "chat_template.jinja": b"{{ a }}"}
    left = {
        "modeling.py": b"import os", "extra.safetensors": b"", "training_args.bin": pickle.dumps([1]),
        "hidden.model": pickle.dumps([1]), "archive.txt": b"PK\3\4", "README.md": b"# A",
        "pytorch_model.bin.index.json": b"", "large.json": b" " * ((1 << 26) + 1),
    }  # fmt: skip
    for name, content in (kept | left).items():
        (folder / name).write_bytes(content)
    (folder / "nested.json").mkdir()
    assert save_like(folder, tmp_path / "new", {}) == tuple(sorted([*left, "nested.json"]))
    found = contents(tmp_path / "new")
    assert {name: found[name] for name in kept} == kept
    assert sorted(found) == sorted([*kept, INDEX, "one.safetensors", "two.safetensors"])


@posix
@pytest.mark.usefixtures("impatient")
def test_links_to_small_files_are_followed_and_pipes_are_left(tmp_path):
    folder = two_shards(tmp_path / "model")
    (tmp_path / "blob").write_bytes(b"{}")
    (folder / "config.json").symlink_to("../blob")
    (folder / "lost.json").symlink_to("lost.json")
    os.mkfifo(folder / "pipe.json")
    assert save_like(folder, tmp_path / "new", {}) == ("lost.json", "pipe.json")
    assert not (tmp_path / "new" / "config.json").is_symlink()
    assert (tmp_path / "new" / "config.json").read_bytes() == b"{}"


WRONG = {
    "another name": ({"c": torch.ones(1)}, "it has no c; leave them out"),
    "another dtype": ({"a.weight": torch.ones(6, 5).double()}, "a.weight must be torch.float32 of shape .6, 5."),
    "another shape": ({"a.weight": torch.ones(5, 6)}, "got torch.float32 of shape .5, 6."),
    "no tensor": ({"a.weight": 5}, "a.weight must be a tensor"),
    "no values": ({"a.weight": torch.ones(6, 5, device="meta")}, "meta tensor"),
}


@pytest.mark.parametrize(("tensors", "message"), WRONG.values(), ids=WRONG.keys())
def test_tensors_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path, tensors, message):
    folder = two_shards(tmp_path / "model")
    with pytest.raises(InputError, match=message):
        save_like(folder, tmp_path / "new", tensors)
    if "c" not in tensors:
        with pytest.raises(InputError, match=message):
            save_like(folder, tmp_path / "new", tensors.get)
    assert names(tmp_path) == ["model"]


def test_places_that_do_not_fit_are_refused(tmp_path):
    folder = two_shards(tmp_path / "model")
    (tmp_path / "file").write_bytes(b"precious")
    (tmp_path / "there").mkdir()
    torch.save({"a": torch.ones(1)}, tmp_path / "some.pt")
    for source, target, replace, message in (
        (folder, "there", False, "there is there already"),
        (folder, "file", True, "must be a place for a folder"),
        (folder, "absent/new", False, "there is no folder"),
        (folder, "n" * 300, False, "File name too long"),
        (folder / "one.safetensors", "there", True, "must be a place for a file"),
        (tmp_path / "some.pt", "new", False, "some.pt is a file of torch.save, which is never written"),
    ):
        for refuse in (check_like, lambda *places, **options: save_like(*places, {}, **options)):
            with pytest.raises(InputError, match=message):
                refuse(source, tmp_path / target, replace=replace)
    with pytest.raises(InputError, match="metadata must map text to text"):
        save_like(folder, tmp_path / "new", {}, metadata={"a": 1})
    assert names(tmp_path) == ["file", "model", "some.pt", "there"]


def test_a_folder_is_replaced_only_if_it_holds_nothing_else(tmp_path):
    folder, target = two_shards(tmp_path / "model"), tmp_path / "new"
    save_like(folder, target, {})
    (target / "older.json").write_bytes(b"{}")
    for foreign in ("thesis.docx", "data"):
        (target / foreign).mkdir() if foreign == "data" else (target / foreign).write_bytes(b"precious")
        with pytest.raises(InputError, match=f"must hold weights and their small files alone.*it holds {foreign}"):
            save_like(folder, target, {}, replace=True)
        (target / foreign).rename(tmp_path / foreign)
    target.chmod(0o750)
    save_like(folder, target, {"b.weight": torch.ones(4, 3)}, replace=True)
    assert load_weights(target)["b.weight"].eq(1).all()
    assert not (target / "older.json").exists()
    assert target.stat().st_mode & 0o777 == 0o750 or os.name == "nt"
    assert names(tmp_path) == ["data", "model", "new", "thesis.docx"]


def test_a_target_within_the_source_is_no_part_of_it(tmp_path):
    folder = two_shards(tmp_path)
    assert save_like(folder, folder / "new", {}) == ()
    assert save_like(folder, tmp_path / "other", {}) == ("new",)
    assert contents(tmp_path / "other") == contents(folder / "new")


def test_a_model_can_be_replaced_by_itself(tmp_path):
    folder = two_shards(tmp_path / "model")
    save_like(folder, folder, {"b.weight": torch.ones(4, 3)}, replace=True)
    assert load_weights(folder)["b.weight"].eq(1).all()
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("there", [True, False])
def test_a_failure_leaves_what_was_there(tmp_path, problem, there):
    folder, target = two_shards(tmp_path / "model"), tmp_path / "new"
    if there:
        save_like(folder, target, {})
    before = contents(target) if there else None

    def give(name):
        if name == "count":  # in the second shard
            raise problem

    expected = CheckpointError if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="No space left.*nothing was changed" if isinstance(problem, OSError) else None):
        save_like(folder, target, give, replace=True)
    assert names(tmp_path) == (["model", "new"] if there else ["model"])
    assert not there or contents(target) == before


@pytest.mark.slow
@posix
def test_a_full_disk_leaves_nothing(tmp_path):
    save_weights({"a": torch.ones(100_000)}, two_shards(tmp_path / "model") / "one.safetensors")
    (tmp_path / "model" / INDEX).unlink()
    (tmp_path / "model" / "two.safetensors").unlink()
    code = (
        "import resource, sys; from netpurify.checkpoint import save_like\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "save_like(sys.argv[1], sys.argv[2], {})"
    )
    command = [sys.executable, "-c", code, tmp_path / "model", tmp_path / "new"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "File too large; nothing was changed" in run.stderr
    assert names(tmp_path) == ["model"]


@pytest.mark.slow
@posix
def test_a_kill_leaves_no_target(tmp_path):
    folder = two_shards(tmp_path / "model")
    code = (
        "import os, signal, sys; from netpurify.checkpoint import save_like\n"
        "def give(name):\n"
        "    if name == 'count': os.kill(os.getpid(), signal.SIGKILL)\n"
        "save_like(sys.argv[1], sys.argv[2], give)"
    )
    run = subprocess.run([sys.executable, "-c", code, folder, tmp_path / "new"], check=False)
    assert run.returncode == -signal.SIGKILL
    assert [name[:12] for name in names(tmp_path)] == [".partial-new", "model"]
    save_like(folder, tmp_path / "new", {})
    assert digest(load_weights(tmp_path / "new")) == digest(load_weights(folder))
