"""Weights read tensor by tensor: the values of ``load_weights``, the memory of one tensor."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from safetensors.torch import save_file

from netpurify.checkpoint import digest, load_weights, open_weights, save_weights
from netpurify.errors import CheckpointError, InputError
from tests.checkpoint.model_folders import two_shards, write_shards
from tests.checkpoint.test_load_safetensors import REFUSED
from tests.checkpoint.test_save_weights import STATE


def test_values_of_every_dtype_are_those_of_the_file(tmp_path):
    save_weights(STATE, tmp_path / "some", metadata={"a": "b"})
    with open_weights(str(tmp_path / "some")) as weights:
        read = {name: weights.read(name) for name in weights.entries}
        assert {name: (entry.dtype, entry.shape, entry.size) for name, entry in weights.entries.items()} == {
            name: (value.dtype, value.shape, value.nbytes) for name, value in STATE.items()
        }
        assert weights.digest() == digest(STATE)
        assert weights.metadata == {"a": "b"}
        assert weights.others == ()
    assert digest(read) == digest(STATE)


def test_each_call_gives_memory_of_its_own(tmp_path):
    with open_weights(two_shards(tmp_path)) as weights:
        weights.read("a.weight").zero_()
        assert weights.read("a.weight").ne(0).all()
        assert weights.entries["b.weight"].file == tmp_path / "two.safetensors"


@pytest.mark.parametrize(
    "part",
    [slice(2, 4), slice(None), slice(4, 99), slice(-2, None), slice(3, 1), slice(9, 12), slice(0, 2, 1)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["safetensors", "torch"])
def test_parts_are_rows_as_a_tensor_gives_them(tmp_path, part, kind):
    tensor = torch.arange(60.0).reshape(5, 4, 3)
    state = {"x": torch.ones(3), "a": tensor}
    (save_weights if kind == "safetensors" else torch.save)(state, tmp_path / "some")
    with open_weights(tmp_path / "some") as weights:
        assert weights.read("a", part).equal(tensor[part])
        assert weights.read("a", part).shape == tensor[part].shape


def test_wrong_questions_are_refused(tmp_path):
    weights = open_weights(two_shards(tmp_path))
    with weights:
        for name, part, message in (
            ("c", None, "has no tensor 'c'; it has 5"),
            ("a.weight", slice(0, 4, 2), "without a step; got slice"),
            ("count", slice(0, 1), "rows of a tensor with at least one axis"),
        ):
            with pytest.raises(InputError, match=message):
                weights.read(name, part)
    with pytest.raises(InputError, match="it was closed; read within the with statement"):
        weights.read("a.weight")
    weights.close()


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_files_that_lie_about_themselves_are_refused_as_when_they_are_loaded(tmp_path, content, message):
    path = tmp_path / "some.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        open_weights(path)
    assert str(path) in str(caught.value)


def test_files_of_torch_are_read_as_a_whole(tmp_path):
    weight = torch.arange(6.0).reshape(2, 3)
    state = {
        "module.a": weight,
        "module.tied": weight,
        "module.turned": weight.t(),
        "module.w": torch.tensor([1j]).conj(),
    }
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "some.pt")
    plain = {name.removeprefix("module."): value for name, value in state.items()}
    with open_weights(tmp_path / "some.pt") as weights:
        assert list(weights.entries) == list(plain)
        assert weights.entries["turned"].written == "module.turned"
        read = {name: weights.read(name) for name in weights.entries}
        assert weights.digest() == digest(plain)
        weights.read("a").zero_()
        assert weights.read("tied").equal(weight)
    assert digest(read) == digest(plain)
    assert read["turned"].is_contiguous()


def test_prefixes_are_taken_off(tmp_path):
    save_file({"module._orig_mod.a": torch.ones(1), "module._orig_mod.b": torch.ones(1)}, tmp_path / "some")
    with open_weights(tmp_path / "some") as weights:
        assert sorted(weights.entries) == ["a", "b"]
        assert weights.read("b").item() == 1


def test_a_file_that_is_replaced_is_read_on_and_one_that_is_changed_is_refused(tmp_path):
    path = tmp_path / "some"
    save_weights({"a": torch.ones(3), "b": torch.zeros(3)}, path)
    with open_weights(path) as weights:
        save_weights({"a": torch.full((3,), 2.0)}, path)
        assert weights.read("a").eq(1).all()
    with open_weights(path) as weights:
        with path.open("r+b") as stream:
            stream.seek(-4, os.SEEK_END)
            stream.write(bytes(4))
        os.utime(path, ns=(1, 1))  # as later writing would, whatever the clock's resolution
        with pytest.raises(CheckpointError, match="must stay as it was when it was opened"):
            weights.read("a")
    with open_weights(path) as weights:
        os.truncate(path, 40)
        with pytest.raises(CheckpointError, match="must stay as it was when it was opened"):
            weights.read("a")


def test_a_tensor_for_which_there_is_no_memory_is_refused_by_name(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("not enough memory: you tried to allocate 12 bytes")

    save_weights({"a": torch.ones(3)}, tmp_path / "some")
    with open_weights(tmp_path / "some") as weights:
        monkeypatch.setattr(torch, "empty", fail)  # a file with holes can announce any size on any disk
        with pytest.raises(CheckpointError, match=r"some: a needs 12 bytes of memory, which are not free; read it in"):
            weights.read("a")


def test_threads_do_not_disturb_each_other(tmp_path):
    state = {str(number): torch.full((50_000,), float(number)) for number in range(8)}
    save_weights(state, tmp_path / "some")
    wrong = []

    def check(name: str) -> None:
        wrong.extend(name for _ in range(30) if not weights.read(name).equal(state[name]))

    with open_weights(tmp_path / "some") as weights:
        threads = [threading.Thread(target=check, args=(name,)) for name in state]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


MEASURE = """
import sys, torch
from netpurify import checkpoint

def resident(word):
    [line] = [line for line in open("/proc/self/status") if line.startswith(word)]
    return int(line.split()[1]) // 1024

before = resident("VmRSS")
kind, first, second = sys.argv[1:]
if kind == "open":
    with checkpoint.open_weights(first) as weights, checkpoint.open_weights(second) as base:
        same = [name for name in weights.entries if torch.equal(weights.read(name), base.read(name))]
elif kind == "save":
    checkpoint.save_like(first, second, lambda name: torch.ones(2_500_000) if name == "7" else None)
    same = [None] * 29
else:
    states = [checkpoint.load_weights(path) for path in (first, second)]
    same = [name for name in states[0] if torch.equal(states[0][name], states[1][name])]
print(len(same), resident("VmHWM") - before)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Two models of 300 MB in 3 shards, tensors of 10 MB, one of which differs."""
    folder = tmp_path_factory.mktemp("large")
    for name in ("model", "base"):
        shards = {}
        for number in range(30):
            value = torch.full((2_500_000,), float(number))
            value[-1] += number == 7 and name == "model"
            shards.setdefault(f"{number // 10}.safetensors", {})[str(number)] = value
        write_shards(folder / name, shards)
    return folder


def measured(*arguments: object) -> tuple[int, int]:
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    same, megabytes = map(int, run.stdout.split())
    return same, megabytes


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells the largest memory")  # noqa: PTH110
def test_two_models_are_compared_in_the_memory_of_two_tensors(large):
    same, grown = measured("open", large / "model", large / "base")
    assert (same, grown < 60) == (29, True), grown
    same, mapped = measured("load", large / "model", large / "base")
    assert (same, mapped > 500) == (29, True), "the measurement sees what mappings take"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells the largest memory")  # noqa: PTH110
def test_a_model_is_written_in_the_memory_of_a_tensor(large, tmp_path):
    _, grown = measured("save", large / "base", tmp_path / "new")
    assert grown < 60
    state = load_weights(tmp_path / "new")
    assert state["7"].eq(1).all()
    assert state["8"].eq(8).all()
