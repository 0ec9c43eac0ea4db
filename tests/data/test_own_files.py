"""Inputs from arrays and tensors: numbers as they are, everything else refused by name."""

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from netpurify.data import load_inputs, normalise
from netpurify.errors import DataError, InputError

VALUES = np.random.default_rng(0).standard_normal((5, 2, 3))


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def npy(array: np.ndarray, *, pickled: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=pickled)
    return stream.getvalue()


def npz(*, packed: bool = False, **arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(stream, **arrays)
    return stream.getvalue()


def pt(content: object, *, legacy: bool = False) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream, _use_new_zipfile_serialization=not legacy)
    return stream.getvalue()


def load(folder: Path, content: bytes, *, name: str = "some", **options) -> Any:
    (folder / name).write_bytes(content)
    return load_inputs(folder / name, **options)


TENSOR = torch.from_numpy(VALUES)
SAME = {
    "npy": npy(VALUES),
    "npy by columns": npy(np.asfortranarray(VALUES)),
    "npy of another byte order": npy(VALUES.astype(">f8")),
    "npz of one": npz(whatever=VALUES),
    "npz packed": npz(packed=True, images=VALUES, labels=np.arange(5)),
    "npz by columns": npz(x=np.asfortranarray(VALUES), y=np.arange(5)),
    "tensor": pt(TENSOR),
    "old tensor": pt(TENSOR, legacy=True),
    "dictionary of one": pt({"whatever": TENSOR, "made": "today"}),
    "dictionary of several": pt({"data": TENSOR, "labels": torch.arange(5)}),
    "safetensors": save({"inputs": TENSOR, "labels": torch.arange(5)}),
}


@pytest.mark.parametrize("content", SAME.values(), ids=SAME.keys())
def test_every_kind_of_file_gives_the_same_numbers(tmp_path, content):
    for limit in (None, 3, 9):
        inputs = load(tmp_path, content, limit=limit)
        assert inputs.dtype == torch.float64
        assert inputs.is_contiguous()
        assert np.array_equal(inputs.numpy(), VALUES[:limit])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bool", "float16", "float32", ">i2"])
@pytest.mark.parametrize("form", [npy, lambda array: pt(torch.from_numpy(array.astype(array.dtype.newbyteorder("="))))])
def test_other_numbers_become_float32_without_scaling(tmp_path, dtype, form):
    array = np.array([[0, 1, 200]]).astype(dtype)
    inputs = load(tmp_path, form(array))
    assert inputs.dtype == torch.float32
    assert inputs.tolist() == [[0.0, 1.0, 1.0 if dtype == "bool" else 200.0]]


WHOLE = np.array([[0, 1, 200], [7, 30521, 2]])


@pytest.mark.parametrize("dtype", ["int32", "int64", ">i8", "uint32", "uint64"])
def test_whole_numbers_of_32_and_64_bits_stay_whole(tmp_path, dtype):
    kind = np.dtype(dtype)
    for content in (npy(WHOLE.astype(kind)), pt(torch.from_numpy(WHOLE.astype(kind.newbyteorder("="))))):
        inputs = load(tmp_path, content)
        assert inputs.dtype == torch.int64
        assert inputs.tolist() == WHOLE.tolist()


def test_dtype_can_be_asked_for(tmp_path):
    assert load(tmp_path, npy(WHOLE), dtype="float32").dtype == torch.float32
    for content in (npy(WHOLE.astype("uint16")), npy(WHOLE.astype("float32")), pt(torch.from_numpy(WHOLE * 1.0))):
        inputs = load(tmp_path, content, dtype="int64")
        assert inputs.dtype == torch.int64
        assert inputs.tolist() == WHOLE.tolist()
    for content in (npy(VALUES), pt(TENSOR)):
        with pytest.raises(DataError, match="expected whole numbers for the dtype int64; got fractions"):
            load(tmp_path, content, dtype="int64")
    with pytest.raises(InputError, match="dtype must be auto, float32, int64"):
        load(tmp_path, npy(WHOLE), dtype="int8")
    with pytest.raises(InputError, match=r"dtype must be .* auto for a folder"):
        load_inputs(tmp_path, dtype="int64")
    with pytest.raises(InputError, match=r"dtype is for a single array; .* holds a, b"):
        load(tmp_path, npz(a=WHOLE, b=WHOLE), dtype="int64")


MASK, PIXELS = np.array([[True, False, True], [True, True, True]]), np.full((2, 3, 4, 4), 255, np.uint8)
NAMED = {"input_ids": WHOLE.astype("int16"), "attention_mask": MASK, "pixel_values": PIXELS, "extra": VALUES[:2]}
FORMS = {
    "npz": lambda arrays: npz(**arrays),
    "packed npz": lambda arrays: npz(packed=True, **arrays),
    "pt": lambda arrays: pt({name: torch.from_numpy(array) for name, array in arrays.items()} | {"made": "today"}),
    "safetensors": lambda arrays: save({name: torch.from_numpy(array) for name, array in arrays.items()}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limit", [None, 1])
def test_several_arrays_are_named_inputs(tmp_path, form, limit):
    found = load(tmp_path, FORMS[form](NAMED | {"labels": np.arange(2)}), limit=limit)
    assert {name: value.dtype for name, value in found.items()} == {
        "input_ids": torch.int64, "attention_mask": torch.bool, "pixel_values": torch.float32, "extra": torch.float64
    }  # fmt: skip
    for name, array in NAMED.items():
        assert found[name].tolist() == array[:limit].tolist(), name
        assert found[name].is_contiguous()


@pytest.mark.parametrize("form", FORMS)
def test_which_arrays_are_named_inputs(tmp_path, form):
    make = FORMS[form]
    assert list(load(tmp_path, make({"input_ids": WHOLE}))) == ["input_ids"]  # an argument of a network, by its name
    assert torch.is_tensor(load(tmp_path, make({"something": WHOLE})))
    assert torch.is_tensor(load(tmp_path, make({"something": WHOLE, "y": np.arange(2)})))
    assert torch.is_tensor(load(tmp_path, make({"x": WHOLE, "mask": np.arange(9)})))
    assert set(load(tmp_path, make({"left": WHOLE, "right": VALUES[:2], "length": np.arange(2)}))) == {
        "left", "right", "length"
    }  # fmt: skip


def test_inputs_do_not_follow_the_file(tmp_path):
    inputs = load(tmp_path, pt(TENSOR))
    (tmp_path / "some").write_bytes(bytes((tmp_path / "some").stat().st_size))
    assert torch.equal(inputs, TENSOR)


def header(shape: str, dtype: str = "<f8", *, room: int = 0) -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(room)


def archive(entries: dict[str, bytes], *, compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as opened:
        for name, content in entries.items():
            opened.writestr(name, content)
    return stream.getvalue()


def damaged(content: bytes) -> bytes:
    """With a byte at the start of the packed data changed."""
    at = content.index(b"x.npy") + 30
    return content[:at] + b"\xff" + content[at + 1 :]


def spoilt(value: float) -> np.ndarray:
    array = VALUES.copy()
    array[3, 1, 2] = array[4, 0, 0] = value
    return array


REFUSED = {
    "nothing": (b"", "the file is empty"),
    "text": (b"1,2,3\n4,5,6\n", "like neither.*inputs come as .npy, .npz"),
    "shape beyond the file": (header("(1099511627776, 9)", room=8), "announces .*79164837199872 bytes; got 8"),
    "shape beyond numbers": (header(f"({'9' * 400},)"), "announces|damaged"),
    "shape below zero": (header("(-1, -8)", room=64), r"\[n, \.\.\.\]; got the shape \[-1, -8\]"),
    "shape of truth values": (header("(True, 2)", room=16), r"whole numbers; got \(True, 2\)"),
    "shape of truth values in an archive": (archive({"x.npy": header("(True, 2)", room=16)}), "whole numbers; got"),
    "shape of too many dimensions": (header(f"({'1, ' * 70})", room=8), "at most 32 whole numbers"),
    "array cut": (npy(VALUES)[:-1], "240 bytes; got 239"),
    "array and more": (npy(VALUES) + b"\0", "240 bytes; got 241"),
    "header cut": (npy(VALUES)[:40], "header of the array is damaged"),
    "header beyond sense": (
        npy(VALUES)[:8] + b"\x11\x27" + b"{" + b" " * 10_000,
        "announces 10001 bytes; at most 10000",
    ),
    "header with more": (header("(1, 1), 'a': 1", room=8), "and nothing else"),
    "header without a shape": (header("1", room=8).replace(b"shape", b"shade"), "and nothing else"),
    "shape as a list": (header("[1, 1]", room=8), "shape must be a tuple"),
    "version of the future": (npy(VALUES)[:6] + b"\4\0" + npy(VALUES)[8:], "starts with 93 4e 55 4d 50 59 04 00"),
    "header no dictionary": (b"\x93NUMPY\x01\x00\x05\x00[1,2]", "header of the array is damaged"),
    "header that calls": (b"\x93NUMPY\x01\x00\x0c\x00print('hi') \n", "header of the array is damaged"),
    "records": (npy(np.zeros(3, [("a", "f8")])), "expected whole or real numbers"),
    "complex": (npy(VALUES + 1j), "expected whole or real numbers; got complex128"),
    "texts": (npy(np.array([["a", "b"]])), "expected whole or real numbers; got <U1"),
    "times": (npy(np.array([["2020-01-01"]], "datetime64[D]")), "expected whole or real numbers; got datetime64"),
    "scalar": (npy(np.float64(1)), r"got the shape \[\]"),
    "vector": (npy(np.ones(3)), r"expected at least one input in rows.*got the shape \[3\]"),
    "no rows": (npy(np.ones((0, 3))), r"got the shape \[0, 3\]"),
    "NaN": (npy(spoilt(np.nan)), r"every value must be finite; 2 of 30 are not, the first at \[3, 1, 2\]"),
    "infinity": (pt(torch.from_numpy(spoilt(-np.inf))), r"2 of 30 are not, the first at \[3, 1, 2\]"),
    "arrays of other lengths": (npz(a=VALUES, b=VALUES[:2]), "must have the same number of rows.*got a 5, b 2"),
    "tensors of other lengths": (pt({"a": TENSOR, "b": TENSOR[:2]}), "must have the same number of rows.*got a 5, b 2"),
    "named numbers": (pt({"a": torch.tensor(1), "b": torch.tensor(2)}), "must have the same number of rows"),
    "weights": (save({"0.weight": TENSOR, "0.bias": TENSOR.clone()}), "expected one array.*got 0.bias, 0.weight"),
    "too large for int64": (npy(np.full((2, 2), 2**63, np.uint64)), "whole numbers up to 9223372036854775807"),
    "too large for int64 in a tensor": (
        pt(torch.full((2, 2), -1).view(torch.uint64)),
        "whole numbers up to 9223372036854775807",
    ),
    "two likely arrays": (npz(x=VALUES, data=VALUES), "expected one array.*got x, data"),
    "objects in an archive": (archive({"x.npy": npy(np.array([[None]]), pickled=True)}), "could run code"),
    "archive cut": (npz(x=VALUES)[:-30], "cut short or damaged"),
    "archive packed wrongly": (damaged(npz(packed=True, x=VALUES)), "damaged .*decompressing"),
    "archive with a lie": (archive({"x.npy": header("(1099511627776, 9)", room=8)}), "x: the header announces"),
    "complex tensor": (pt(TENSOR + 1j), "expected whole or real numbers; got torch.complex128"),
    "scalar tensor": (pt(torch.tensor(1.0)), r"got the shape \[\]"),
    "list of tensors": (pt([TENSOR]), "expected a tensor of inputs; got list"),
    "dictionary without tensors": (pt({"x": 1}), "expected one array.*got none"),
    "many tensors": (pt({str(n): TENSOR for n in range(9)}), "got 0, 1, 2, 3, 4, ...;"),
    "data set": (pt(torch.utils.data.TensorDataset(TENSOR)), "wants Python to call torch.utils.data.dataset"),
    "sparse tensor": (pt(torch.eye(2).to_sparse()), "sparse"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_inputs_is_refused_by_name(tmp_path, content, message):
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path, content, name="some.npz")
    assert str(tmp_path / "some.npz") in str(caught.value)


@pytest.mark.parametrize("form", ["npy", "npz", "pt", "pickle"])
def test_code_is_refused_and_does_not_run(tmp_path, form):
    trap = Trap(tmp_path / "marker")
    array = np.array([[trap]], dtype=object)
    contents = {
        "npy": npy(array, pickled=True),
        "npz": archive({"x.npy": npy(array, pickled=True)}),
        "pt": pt(trap),
        "pickle": pickle.dumps(trap),
    }
    with pytest.raises(DataError, match=r"run code|nothing was run"):
        load(tmp_path, contents[form])
    assert not (tmp_path / "marker").exists()
    pickle.loads(contents["pickle"])
    assert (tmp_path / "marker").exists()


def test_an_archive_that_unpacks_to_an_unlikely_size_is_refused_and_small_ones_are_not(tmp_path, monkeypatch):
    zeros = npz(packed=True, x=np.zeros((100, 10_000)))
    assert load(tmp_path, zeros).shape == (100, 10_000)
    monkeypatch.setattr("netpurify.data.inputs.numpy_files._ALWAYS_FINE", 1 << 20)
    with pytest.raises(DataError, match=r"x unpacks from \d{4} bytes to 8000128; at most 200 times"):
        load(tmp_path, zeros)


def test_a_header_is_not_taken_apart_in_quadratic_time(tmp_path, monkeypatch):
    def quadratic(*_):
        pytest.fail("Python's tokenizer, which NumPy asks about damaged headers, takes 22 s for this one")

    with monkeypatch.context() as patched:
        patched.setattr("tokenize.generate_tokens", quadratic)
        with pytest.raises(DataError, match="header of the array is damaged"):
            load(tmp_path, npy(VALUES)[:8] + b"\x10\x27" + b"{" + b" " * 9998 + b"\7")


def test_headers_as_python_2_wrote_them_and_of_the_second_version_are_read(tmp_path):
    assert load(tmp_path, header("(1L, 2L)", room=16)).tolist() == [[0.0, 0.0]]
    content = npy(VALUES)
    second = content[:6] + b"\2\0" + content[8:10] + b"\0\0" + content[10:]
    assert torch.equal(load(tmp_path, second), TENSOR)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX alone")
@pytest.mark.usefixtures("impatient")
def test_a_pipe_is_refused_and_nobody_waits(tmp_path):
    os.mkfifo(tmp_path / "some.npy")
    with pytest.raises(DataError, match=r"some\.npy: expected a file or folder.*It is a pipe, a socket or a device"):
        load_inputs(tmp_path / "some.npy")


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.npy: expected a file or folder.*No such file"):
        load_inputs(tmp_path / "nowhere.npy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit must be a whole number of at least 1; got 0"),
        ({"limit": 2.0}, "limit must be a whole number"),
        ({"limit": True}, "limit must be a whole number"),
        ({"channels": 2}, r"channels must be 1 \(grey\) or 3"),
        ({"size": (0, 3)}, r"size must be \(height, width\)"),
        ({"size": (3,)}, r"size must be \(height, width\)"),
        ({"size": (99_999, 99_999)}, "size must be of at most 89478485 pixels; got 99999x99999, 9999800001 pixels"),
        ({"size": (1, 10**20)}, "size must be of at most 89478485 pixels"),
        ({"size": (1 << 31, 1)}, "size must be of at most 89478485 pixels"),
        ({"size": (3, 3)}, "size and channels are for folders"),
        ({"channels": 1}, "size and channels are for folders"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        load(tmp_path, npy(VALUES), **options)


def test_normalise_by_channel():
    inputs = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    before = inputs.clone()
    assert normalise(inputs, (1.0, 3.0), (1.0, 2.0)).tolist() == [[[0, 1], [0, 0.5]], [[4, 5], [2, 2.5]]]
    assert normalise(inputs, [1.0], [2.0]).tolist() == [[[0, 0.5], [1, 1.5]], [[2, 2.5], [3, 3.5]]]
    assert normalise(torch.ones(2, 3, dtype=torch.float64), [0, 1, 2], [1]).tolist() == [[1, 0, -1]] * 2
    assert torch.equal(inputs, before)


@pytest.mark.parametrize(
    ("inputs", "mean", "std", "message"),
    [
        (torch.ones(2, 3, 4), [0, 0], [1], "mean must be 3 finite numbers"),
        (torch.ones(2, 3, 4), [0], [1, 1], "std must be 3 finite numbers"),
        (torch.ones(2, 3, 4), [], [1], "mean must be 3 finite numbers"),
        (torch.ones(2, 3, 4), [float("nan")], [1], "mean must be 3 finite numbers"),
        (torch.ones(2, 3, 4), [0], [1, 0, 1], "std must be above 0"),
        (torch.ones(3), [0], [1], r"inputs must be floats \[n, channels, \.\.\.\]"),
        (torch.ones(2, 3, dtype=torch.int64), [0], [1], "inputs must be floats"),
    ],
)
def test_normalise_refuses(inputs, mean, std, message):
    with pytest.raises(InputError, match=message):
        normalise(inputs, mean, std)
