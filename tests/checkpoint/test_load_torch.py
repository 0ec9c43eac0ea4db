"""Files of torch.save: weights are found wherever they are, and what is not weights is refused by name."""

import io
from collections import Counter, OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from netpurify.checkpoint import digest, load_content, load_metadata, load_weights
from netpurify.errors import CheckpointError
from tests.checkpoint.forged_files import PLAIN, WEIGHTS, both_formats, load, saved


@both_formats
def test_every_dtype_and_layout_reads_back(tmp_path, legacy):
    state = {str(dtype): torch.tensor([0, 1, 1]).to(dtype) for dtype in (torch.bfloat16, torch.bool, torch.complex128)}
    state |= {"turned": WEIGHTS["a.weight"].t(), "part": WEIGHTS["a.weight"][1:, ::2], "none": torch.empty(0, 3)}
    state |= {"scalar": torch.tensor(7), "conjugate": torch.tensor([1 + 2j]).conj()}
    if not legacy:
        state |= {str(dtype): torch.ones(3).to(dtype) for dtype in (torch.float8_e4m3fn, torch.uint16)}
    back = load(tmp_path, saved(state, legacy=legacy))
    assert digest(back) == digest(state)
    assert load_metadata(tmp_path / "some.pt") == {}


@both_formats
def test_a_model_reads_back_without_gradients_and_tied_weights_stay_tied(tmp_path, legacy):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
    model[2].weight = model[0].weight
    back = load(tmp_path, saved(model.state_dict(), legacy=legacy))
    assert digest(back) == digest(model.state_dict())
    assert back["0.weight"].data_ptr() == back["2.weight"].data_ptr()
    back = load(tmp_path, saved(dict(model.named_parameters()), legacy=legacy))
    assert not any(tensor.requires_grad for tensor in back.values())
    assert {type(tensor) for tensor in back.values()} == {torch.Tensor}


@pytest.mark.parametrize("nest", [["state_dict"], ["model"], ["model_state_dict"], ["model", "state_dict"]])
@both_formats
def test_weights_are_found_in_a_training_checkpoint(tmp_path, nest, legacy):
    content = WEIGHTS
    for name in nest:
        optimiser = {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.99)}]}
        content = {
            "epoch": 3,
            name: OrderedDict(content),
            "optimizer": optimiser,
            "schedule": Counter([3]),
            "best": None,
        }
    assert digest(load(tmp_path, saved(content, legacy=legacy))) == digest(WEIGHTS)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.module."])
def test_prefixes_of_all_names_are_taken_off(tmp_path, prefix):
    state = {f"{prefix}{name}": tensor for name, tensor in WEIGHTS.items()}
    assert digest(load(tmp_path, saved({"state_dict": state}))) == digest(WEIGHTS)
    kept = {**state, "averaged": torch.ones(1)}
    assert digest(load(tmp_path, saved(kept))) == digest(kept)


def test_a_prefix_that_is_the_whole_name_stays(tmp_path):
    assert list(load(tmp_path, saved({"module.module.": torch.ones(1)}))) == ["module."]


def test_weights_are_mapped_and_the_file_stays_as_it_was(tmp_path):
    load(tmp_path, PLAIN)["a.bias"].zero_()
    assert (tmp_path / "some.pt").read_bytes() == PLAIN


def test_flipped_bits_in_weights_are_read_as_they_are(tmp_path):
    at = PLAIN.index(WEIGHTS["a.bias"].numpy().tobytes())
    flipped = PLAIN[:at] + bytes([PLAIN[at] ^ 1]) + PLAIN[at + 1 :]
    back = load(tmp_path, flipped)
    assert back["a.bias"].view(torch.int32)[0] == WEIGHTS["a.bias"].view(torch.int32)[0] ^ 1


CYCLE = {"epoch": 1}
CYCLE["model"] = CYCLE
CONTENTS = {
    "number beside": ({**WEIGHTS, "epoch": 3}, r"expected tensors only.*got epoch \(int\)"),
    "many beside": ({**WEIGHTS, **{str(n): n for n in range(9)}}, r"0 \(int\), 1 \(int\), 2 \(int\) and 6 more"),
    "list": ([torch.ones(1)], "expected a dictionary of tensors; got list"),
    "tensor": (torch.ones(1), "expected a dictionary of tensors; got a tensor"),
    "text": ("weights", "expected a dictionary of tensors; got str"),
    "nothing": ({}, "holds no tensor"),
    "nothing nested": ({"state_dict": {}, "epoch": 1}, "holds no tensor"),
    "numbers as names": ({0: torch.ones(1)}, "names of weights must be text; got 0"),
    "two places": ({"model": WEIGHTS, "state_dict": WEIGHTS}, "state_dict and model may both hold them"),
    "itself": (CYCLE, r"got epoch \(int\), model \(dict\)"),
    "unknown nest": ({"net": WEIGHTS}, r"weights under state_dict, model_state_dict, model; got net \(dict\)"),
}


@pytest.mark.parametrize(("content", "message"), CONTENTS.values(), ids=CONTENTS.keys())
@both_formats
def test_what_is_not_weights_is_refused_by_name(tmp_path, content, message, legacy):
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, saved(content, legacy=legacy))


def test_methods_hidden_by_a_pickle_do_no_harm(tmp_path):
    state = OrderedDict(WEIGHTS)
    state.values = state.get = state.pop = 5
    assert digest(load(tmp_path, saved({"epoch": 1, "model": state}))) == digest(WEIGHTS)


def numpy_archive() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, a=np.ones(3))
    return stream.getvalue()


FOREIGN = {
    "nothing": (b"", "the file is empty"),
    "web page": (b"<html>not found</html>", "like neither"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "starts with 89 48 44 46.*like neither"),
    "a few bytes": (b"PK", "like neither"),
    "numpy": (numpy_archive(), "no data.pkl"),
    "zip without an end": (b"PK\x03\x04" + bytes(50), "cut short or damaged"),
}


@pytest.mark.parametrize(("content", "message"), FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_files_are_refused(tmp_path, content, message):
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, content)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere\.pt: expected a file.*No such file"):
        load_weights(tmp_path / "nowhere.pt")
    with pytest.raises(CheckpointError, match=r"expected a folder with weights: .*; it holds nothing"):
        load_weights(tmp_path)
    with pytest.raises(CheckpointError, match="No such file"):
        load_metadata(tmp_path / "nowhere.pt")


def test_content_may_be_anything_without_code(tmp_path):
    (tmp_path / "some.pt").write_bytes(saved([torch.ones(2), {"name": "x"}]))
    first, second = load_content(tmp_path / "some.pt")
    assert (first.tolist(), second) == ([1.0, 1.0], {"name": "x"})
