"""Files of torch.save that were made to do harm: code is never run, lies about sizes are found in time."""

import argparse
import pickle
import re
import warnings
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from netpurify.checkpoint import load_weights
from netpurify.errors import CheckpointError
from tests.checkpoint.forged_files import (
    OLD,
    PLAIN,
    WEIGHTS,
    Forged,
    both_formats,
    claim,
    exploit,
    inflated,
    load,
    repacked,
    saved,
)


def test_the_exploit_would_work(tmp_path):
    pickle.loads(pickle.dumps(exploit(tmp_path / "marker")))
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("place", ["alone", "beside", "within"])
@both_formats
def test_code_is_refused_by_name_and_does_not_run(tmp_path, legacy, place, protocol):
    trap = exploit(tmp_path / "marker")
    content = {"alone": trap, "beside": {"state_dict": WEIGHTS, "optimizer": trap}, "within": {**WEIGHTS, "b": trap}}
    named = r"wants Python to call (posix|nt)\.mkdir.*nothing was run"
    with pytest.raises(CheckpointError, match="bare pickle" if legacy and protocol == 4 else named):
        load(tmp_path, saved(content[place], legacy=legacy, protocol=protocol))
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
def test_a_bare_pickle_is_refused_and_does_not_run(tmp_path, protocol):
    with pytest.raises(CheckpointError, match=r"bare pickle, which can run code|like neither"):
        load(tmp_path, pickle.dumps(exploit(tmp_path / "marker"), protocol))
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
def test_a_bare_pickle_inside_an_archive_is_refused_and_does_not_run(tmp_path, protocol):
    trap = pickle.dumps({"a": exploit(tmp_path / "marker")}, protocol)
    with pytest.raises(CheckpointError, match=r"wants Python to call|damaged"):
        load(tmp_path, repacked(PLAIN, {"data.pkl": trap}))
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (Forged(eval, "1"), r"(__builtin__|builtins)\.eval"),
        (Forged(torch.Tensor, 1 << 40), r"torch(\._tensor)?\.Tensor"),
        (Forged(torch.load, "other"), r"torch\.serialization\.load"),
        (argparse.Namespace(lr=1), r"argparse\.Namespace|copyreg|copy_reg"),
        ({"model": WEIGHTS, "accuracy": np.float64(0.5)}, r"numpy\..*scalar"),
        (nn.Linear(1, 1), r"torch\.nn\.modules\.linear\.Linear"),
    ],
    ids=["eval", "Tensor", "load", "namespace", "numpy", "module"],
)
@both_formats
def test_every_other_function_is_refused_by_name(tmp_path, content, name, legacy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns when it saves a module
        made = saved(content, legacy=legacy)
    with pytest.raises(CheckpointError, match=f"wants Python to call ({name}).*state_dict"):
        load(tmp_path, made)


@pytest.mark.filterwarnings("ignore")
def test_torchscript_is_refused_by_name(tmp_path):
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), tmp_path / "some.pt")
    with pytest.raises(CheckpointError, match="TorchScript archive, which holds a program"):
        load_weights(tmp_path / "some.pt")
    with pytest.raises(CheckpointError, match="TorchScript"):
        load(tmp_path, repacked(PLAIN, {"code/__torch__.py": b"import os"}))


SHAPES = {
    "shape": (claim(size=(1 << 40,), stride=(1,)), "storage of 4 items.*1099511627776"),
    "shape by one": (claim(size=(5,), stride=(1,)), "shape .5.*ask for 5"),
    "stride": (claim(size=(2, 2), stride=(1 << 40, 1)), "ask for 1099511627778"),
    "offset": (claim(size=(2,), stride=(1,), offset=3), "offset 3 ask for 5"),
    "expanded": (claim(size=(1 << 40,), stride=(0,)), "expanded view: clone it"),
    "below zero": (claim(size=(-1,), stride=(1,)), "no proper storage, offset, shape"),
    "backwards": (claim(size=(2,), stride=(-1,), offset=1), "no proper storage, offset, shape"),
    "beyond numbers": (claim(size=(1 << 80,), stride=(0,)), "no proper storage, offset, shape"),
    "more strides": (claim(size=(2,), stride=(1, 1)), "no proper storage, offset, shape"),
    "not numbers": (claim(size=("2",), stride=(1,)), "no proper storage, offset, shape"),
}


@pytest.mark.parametrize(("made", "message"), SHAPES.values(), ids=SHAPES.keys())
@both_formats
def test_a_tensor_larger_than_its_storage_is_refused_by_name(tmp_path, made, message, legacy):
    if "no proper" not in message:
        message = f"optimizer.0.step must fit into its storage of 4 items.*{message.removeprefix('storage of 4 items')}"
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, saved({"model": WEIGHTS, "optimizer": [{"step": made}]}, legacy=legacy))


def test_a_storage_that_is_not_as_long_as_announced_is_refused(tmp_path):
    for part, message in ((bytes(47), "must have 48 bytes; it has 47"), (None, "must have 48 bytes; there is none")):
        with pytest.raises(CheckpointError, match=message):
            load(tmp_path, repacked(PLAIN, {"data/0": part}))


def test_an_archive_that_unpacks_to_more_than_itself_is_refused(tmp_path):
    bomb = saved({"a": torch.zeros(1_000_000)})
    with pytest.raises(CheckpointError, match=r"compressed, and unpacks with the rest to 4\d{6} bytes"):
        load(tmp_path, repacked(bomb, {}, compression=zipfile.ZIP_DEFLATED))
    assert (tmp_path / "some.pt").stat().st_size < 10_000
    with pytest.raises(CheckpointError, match=r"cannot be larger than the file.*add up to 4"):
        load(tmp_path, inflated(PLAIN, "data/0", 4_000_000_000))


def test_an_archive_with_two_entries_of_a_name_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        made = repacked(PLAIN, {}, twin="data.pkl")
    with pytest.raises(CheckpointError, match="two are called the same"):
        load(tmp_path, made)


UNSUPPORTED = {
    "set": ({1, 2}, "a set"),
    "frozenset": (frozenset([1]), "a frozenset"),
    "bytearray": (bytearray(b"abc"), "a bytearray"),
    "a bytearray that would fill the memory": (Forged(bytearray, 1 << 40), "a bytearray"),
    "complex": (1 + 2j, "a complex number"),
    "key": ({("epoch", 1): 0.5}, "a dictionary with a tuple as a key"),
    "buffer": (nn.Buffer(torch.ones(2)), "a tensor of another class, such as torch.nn.Buffer"),
}


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize(("beside", "words"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_sound_files_with_what_is_not_supported_are_not_called_damaged_or_dangerous(tmp_path, beside, words, protocol):
    with pytest.raises(
        CheckpointError, match=f"the file holds {words}, which is not supported.*state_dict.* alone"
    ) as it:
        load(tmp_path, saved({"model": WEIGHTS, "beside": beside}, protocol=protocol))
    assert not re.search("damaged|get it again|wants Python", str(it.value))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float8_e4m3fn])
def test_numbers_that_torch_never_negates_by_a_note_are_refused(tmp_path, dtype):
    storage = torch.storage.TypedStorage(
        wrap_storage=torch.ones(4).untyped_storage(), dtype=torch.uint8, _internal=True
    )
    rebuild = torch._utils._rebuild_tensor_v3
    made = Forged(rebuild, storage, 0, (1,), (1,), False, OrderedDict(), dtype, {"neg": True})
    with pytest.raises(CheckpointError, match=f"numbers of {dtype} are to be negated"):
        load(tmp_path, saved({"some": made}))


def rebuilt(function):
    return Forged(function, 1, 2, 3)


@pytest.mark.parametrize(
    ("tensor", "word"),
    [
        (torch.eye(2).to_sparse(), "sparse"),
        (rebuilt(torch._utils._rebuild_qtensor), "quantised"),
        (Forged(torch._utils._rebuild_qtensor, 1, 0, (2,), (1,), (torch.per_tensor_affine, 0.1, 0)), "quantised"),
        (torch.empty(2, device="meta"), "meta"),
        (rebuilt(torch._utils._rebuild_nested_tensor), "nested"),
    ],
    ids=["sparse", "forged", "quantised", "meta", "nested"],
)
def test_tensors_without_plain_values_are_refused_by_name(tmp_path, tensor, word):
    with pytest.raises(CheckpointError, match=f"some must be a dense tensor with values; it is {word}"):
        load(tmp_path, saved({"some": tensor}))


PICKLES = {
    "nested tuples as a key": (b"\x80\x02})" + b"\x85" * 200_000 + b"K\x01s.", "a dictionary with a tuple as a key"),
    "nested tuples": (b"\x80\x02)" + b"\x85" * 200_000 + b".", "got tuple"),
    "three million nested tuples": (b"\x80\x02)" + b"\x85" * 3_000_000 + b".", "more than 1000000 tuples"),
    "a state for a function": (b"\x80\x02ccollections\nOrderedDict\n}b.", "a function is given a state"),
    "memo of four billion": (b"\x80\x02}r\xff\xff\xff\xff.", "holds no tensor"),
    "text of four billion": (b"\x80\x02X\xff\xff\xff\xffabc.", "damaged"),
    "storage of nobody": (b"\x80\x02K\x01Q.", "damaged"),
    "nothing": (b"", "damaged"),
    "no end": (b"\x80\x02}", "damaged"),
    "stack empty": (b"\x80\x02s.", "damaged"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("content", "message"), PICKLES.values(), ids=PICKLES.keys())
def test_forged_pickles_are_refused(tmp_path, content, message):
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, repacked(PLAIN, {"data.pkl": content}))


def test_every_cut_of_a_file_is_refused(tmp_path):
    for whole in (PLAIN, OLD):
        for end in range(0, len(whole), 7):
            with pytest.raises(CheckpointError, match=r"some\.pt: .*(cut short|like neither|bare pickle|is empty)"):
                load(tmp_path, whole[:end])


def test_a_legacy_storage_of_another_size_is_refused(tmp_path):
    at = OLD.index(WEIGHTS["a.bias"].numpy().tobytes())
    with pytest.raises(CheckpointError, match="must have 3 items, 12 bytes; it announces 281474976710659"):
        load(tmp_path, OLD[: at - 2] + b"\1" + OLD[at - 1 :])
