"""Safetensors files that may be anything: a lie about sizes is found before memory is taken."""

import json

import pytest
import torch

from netpurify.checkpoint import load_metadata, load_weights, save_weights
from netpurify.errors import CheckpointError, InputError


def entry(start: int, stop: int, *, dtype: object = "F32", shape: object = None) -> dict:
    return {"dtype": dtype, "shape": [(stop - start) // 4] if shape is None else shape, "data_offsets": [start, stop]}


def forged(header: object, *, room: int = 8, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + bytes(room)


DEEP = b'{"a":' + b"[" * 100_000
TWINS = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
REFUSED = {
    "length beyond the file": (forged({"a": entry(0, 8)}, length=1 << 40), "at most .* bytes fits.*1099511627776"),
    "length of all ones": (b"\xff" * 8 + b"{}", "the file announces 18446744073709551615"),
    "nothing but a length": (bytes(4), "at most 0 bytes fits"),
    "header cut": (forged({"a": entry(0, 8)})[:20], "cut short"),
    "tensors cut": (forged({"a": entry(0, 8)}, room=7), "take 8 bytes by the header; the file has 7"),
    "more than the tensors": (forged({"a": entry(0, 8)}, room=9), "take 8 bytes by the header; the file has 9"),
    "offset beyond the file": (forged({"a": entry(0, 4), "b": entry(4, 1 << 40)}), "1099511627776 bytes.*has 8"),
    "overlap": (forged({"a": entry(0, 8), "b": entry(4, 8)}), "b must start at byte 8.*overlaps"),
    "gap": (forged({"a": entry(0, 4), "b": entry(8, 12)}, room=12), "b must start at byte 4.*leaves a gap"),
    "shape too large": (forged({"a": entry(0, 8, shape=[1 << 40, 1 << 20])}), "a is F32.*offsets give it 8"),
    "shape too small": (forged({"a": entry(0, 8, shape=[1])}), "a is F32 of shape .1., 4 bytes.*give it 8"),
    "shape below zero": (forged({"a": entry(0, 8, shape=[-1, -2])}), "a must have a dtype, a shape and two offsets"),
    "shape no list": (forged({"a": entry(0, 8, shape=2)}), "a must have a dtype, a shape"),
    "truth as shape": (forged({"a": entry(0, 4, shape=[True])}, room=4), "a must have a dtype, a shape"),
    "a million dimensions": (forged({"a": entry(0, 8, shape=[9**9] * 10**6)}), "a must have a dtype, a shape"),
    "offsets backwards": (forged({"a": entry(8, 0, shape=[2])}), "give it -8"),
    "unknown dtype": (forged({"a": entry(0, 8, dtype="F4")}), "a has the dtype F4"),
    "dtype no text": (forged({"a": entry(0, 8, dtype=["F32"])}), "a must have a dtype"),
    "no entry": (forged({"a": 5}), "a must have a dtype"),
    "two of a name": (forged(TWINS), "the name 'a' is there twice"),
    "no JSON": (forged(b'{"a": '), "header is damaged"),
    "no text": (forged(b"{\xff\xfe"), "header is damaged"),
    "nested too deep": (forged(DEEP), "header is damaged"),
    "a number of a million digits": (forged(b'{"a":' + b"9" * 10**6 + b"}"), "header is damaged"),
    "UTF-16": (forged('{"a": 1}'.encode("utf-16")), "header is damaged"),
    "half a letter": (forged({"\ud800": entry(0, 8)}), "header is damaged"),
    "half a letter in metadata": (forged({"__metadata__": {"a": "\udfff"}, "a": entry(0, 8)}), "header is damaged"),
    "space before the header": (forged(b" {}", room=0), "must be an object"),
    "empty of any size": (forged({"a": entry(0, 0, shape=[0, 1 << 62, 1 << 62])}, room=0), "damaged or forged"),
    "a million lists": (forged(b'{"a":[' + b"[]," * 1_000_000 + b"[]]}"), "more than 1000000; the file is forged"),
    "a header longer than any": (forged(b"{" + b" " * (1 << 24)), "at most 16777216 bytes fits"),
    "metadata of numbers": (forged({"__metadata__": {"epoch": 1}, "a": entry(0, 8)}), "__metadata__ must map text"),
    "no tensor": (forged({}, room=0), "holds no tensor"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_files_that_lie_about_themselves_are_refused(tmp_path, content, message):
    path = tmp_path / "some.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_weights(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 600 + len(str(path))


def test_a_header_that_is_a_list_is_refused(tmp_path):
    (tmp_path / "some.safetensors").write_bytes(forged([1]))
    with pytest.raises(CheckpointError, match="must be an object; got list"):
        load_weights(tmp_path / "some.safetensors")


def test_metadata_of_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "some.safetensors").write_bytes(forged({"a": entry(0, 8)}, room=7))
    with pytest.raises(CheckpointError, match="the file has 7"):
        load_metadata(tmp_path / "some.safetensors")


def test_every_cut_of_a_file_is_refused(tmp_path):
    save_weights({"a": torch.ones(3), "b": torch.zeros(2)}, tmp_path / "some.safetensors")
    whole = (tmp_path / "some.safetensors").read_bytes()
    for end in range(len(whole)):
        (tmp_path / "some.safetensors").write_bytes(whole[:end])
        with pytest.raises(CheckpointError, match=r"some\.safetensors"):
            load_weights(tmp_path / "some.safetensors")


def test_the_content_decides_and_not_the_suffix(tmp_path):
    save_weights({"a": torch.ones(3)}, tmp_path / "some.pt")
    assert load_weights(tmp_path / "some.pt")["a"].eq(1).all()
    torch.save({"a": torch.ones(3)}, tmp_path / "some.safetensors")
    assert load_weights(tmp_path / "some.safetensors")["a"].eq(1).all()


def test_shared_prefixes_are_taken_off(tmp_path):
    save_weights({"module.a": torch.ones(1), "module.module.b": torch.zeros(1)}, tmp_path / "some")
    assert sorted(load_weights(tmp_path / "some")) == ["a", "module.b"]


def test_tensors_that_are_not_aligned_read_back(tmp_path):
    header = {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "b": entry(1, 9)}
    (tmp_path / "some").write_bytes(forged(header, room=0) + b"\7" + torch.tensor([1.5, -2.5]).numpy().tobytes())
    back = load_weights(tmp_path / "some")
    assert (back["a"].tolist(), back["b"].tolist()) == ([7], [1.5, -2.5])
    assert back["b"].data_ptr() % 4 == 0


def test_a_header_that_could_not_be_read_back_is_not_written(tmp_path):
    with pytest.raises(InputError, match="must fit into a header of 16777216 bytes"):
        save_weights({"a": torch.ones(1)}, tmp_path / "some", metadata={"a": "a" * (1 << 24)})
    assert not list(tmp_path.iterdir())
