"""Pickles made to take time, memory or the process: each is refused after a bounded number of steps."""

import pytest
import torch
from torch import nn

from netpurify.checkpoint import digest, load_content
from netpurify.errors import CheckpointError
from tests.checkpoint.forged_files import PLAIN, WEIGHTS, both_formats, load, repacked, saved, text, with_pickle

ENCODE = b"c_codecs\nencode\n"
ORDERED = b"ccollections\nOrderedDict\n"
TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\nq\1((" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu")
    + b"K\x0ctQK\0K\1\x85K\1\x85\x89" + ORDERED + b")Rtq\2R"
)  # fmt: skip


def nested(step: bytes, count: int, start: bytes = b"") -> bytes:
    return start + step * count


REFUSED = {
    "bytes doubled by each of ten codecs": (
        nested(ENCODE, 10) + text("AAAAAAAA") + nested(text("hex") + b"\x86R", 10),
        "encodes a text otherwise than torch.save",
    ),
    "a codec of quadratic time": (ENCODE + text("\u4e00" * 9) + text("punycode") + b"\x86R", "otherwise than"),
    "a codec with another rule for errors": (
        ENCODE + text("a") + text("latin1") + text("replace") + b"\x87R",
        "damaged .TypeError",
    ),
    "bytes of bytes": (ENCODE * 2 + text("a") + (text("latin1") + b"\x86R") * 2, "otherwise than"),
    "one text made bytes again and again": (
        text("a" * 1_000_000) + b"q\0" + ENCODE + b"q\1" + text("latin1") + b"q\2" + b"h\1h\0h\2\x86R" * 9,
        "more than 8000000 bytes copied",
    ),
    "one list made a dictionary again and again": (
        b"]q\0(" + b"K\1K\2\x86" * 10_000 + b"e" + ORDERED + b"q\1" + b"h\1h\0\x85R" * 51,
        "more than 8000000 bytes copied",
    ),
    "two million nested tuples in a counter": (
        b"ccollections\nCounter\n]" + text("k") + nested(b"\x85", 2_000_000, b")") + b"\x86a\x85R",
        "more than 1000000 tuples",
    ),
    "a counter with a key that is nested": (b"ccollections\nCounter\n])\x85N\x86a\x85R", "a tuple as a key"),
    "nested lists": (nested(b"]", 1_500_000), "more than 1000000 tuples, lists"),
    "open marks": (nested(b"(", 1001), "nested more than 1000 deep"),
    "keys that collide": (
        b"}(" + b"".join(b"\x8a\x0a" + (n * (2**61 - 1)).to_bytes(10, "little") + b"N" for n in range(1, 99)) + b"u",
        "a number of more than 64 bits",
    ),
    "a dictionary as a list": (b"}Na", "a dict is used as a list"),
    "a list as a dictionary": (b"]NNs", "a list is used as a dictionary"),
    "a key without a value": (b"}(Nu", "a key without a value"),
    "a state for a list": (b"]}b", "a list is given a state"),
    "a step that torch.save does not take": (b"}2", "is none that torch.save takes"),
    "a protocol of the future": (b"\x80\x09}", "protocol that torch.save does not write"),
    "a name without an end": (b"c" + b"a" * 5000, "longer than 1024 bytes"),
    "a name of numbers": (b"K\1K\2\x93", "a name is no text"),
    "a call of a dictionary": (b"})R", "calls what is no function"),
    "a call without a tuple": (ORDERED + b"]R", "calls what is no function"),
    "a parameter of a text": (b"ctorch._utils\n_rebuild_parameter\n" + text("a") + b"\x89}\x87R", "not made of"),
    "a shape of a million": (b"ctorch\nSize\n(" + b"K\1" * 1_000_000 + b"t\x85R", "a few whole numbers"),
    "a device of any length": (b"ctorch\ndevice\n" + text("cpu" * 99) + b"\x85R", "a word and a number"),
    "a storage in two ways": (
        TENSOR + b"((" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x0btQ",
        "'0' is announced twice",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_pickles_that_ask_for_too_much_are_refused(tmp_path, steps, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        load(tmp_path, with_pickle(steps))
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_the_number_of_steps_and_of_tensors_is_bounded(tmp_path, monkeypatch):
    many = with_pickle(b"](" + TENSOR + b"h\1h\2R" * 50 + b"e")
    (tmp_path / "some.pt").write_bytes(many)
    assert len(load_content(tmp_path / "some.pt")) == 51
    monkeypatch.setattr("netpurify.checkpoint.inspection._MOST_TENSORS", 50)
    with pytest.raises(CheckpointError, match="more than 50 tensors"):
        load(tmp_path, many)
    monkeypatch.setattr("netpurify.checkpoint.pickles.MOST_STEPS", 100)
    with pytest.raises(CheckpointError, match="more than 100 steps"):
        load(tmp_path, many)


def test_torch_never_reads_the_file_itself(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("torch.load must not see a file that may be forged")

    monkeypatch.setattr(torch, "load", forbidden)
    for legacy in (False, True):
        assert digest(load(tmp_path, saved(WEIGHTS, legacy=legacy))) == digest(WEIGHTS)


def test_no_message_advises_to_switch_safety_off(tmp_path):
    steps = b"cposix\nsystem\n" + text("true") + b"\x85R"
    for content in (with_pickle(steps), repacked(PLAIN, {"Data.pkl": b"\x80\x02" + steps + b"."})):
        with pytest.raises(CheckpointError) as caught:
            load(tmp_path, content)
        assert "weights_only" not in str(caught.value)


@pytest.mark.slow
@both_formats
def test_all_that_lies_beside_weights_reads_back(tmp_path, legacy):
    beside = {
        "bytes": b"\0\xff" * 50,
        "shape": torch.Size([2, 3]),
        "dtype": torch.bfloat16,
        "device": torch.device("cuda", 1),
        "history": [0.5, (1, -2, 1 << 40, None, True)],
        3: "three",
        0.5: "é\U0001f40d",
        None: "nothing",
        "log": [(step, 0.5) for step in range(260_000)],
    }
    (tmp_path / "some.pt").write_bytes(saved({"model": WEIGHTS, **beside}, legacy=legacy))
    back = load_content(tmp_path / "some.pt")
    assert {key: value for key, value in back.items() if key != "model"} == beside


@both_formats
def test_views_and_negated_or_conjugated_numbers_keep_their_values(tmp_path, legacy):
    wave = torch.tensor([1 + 2j, 3 - 4j])
    state = {"whole": wave, "conjugate": wave.conj(), "part": wave[1:], "end": wave[2:]}
    state["imaginary"] = torch.tensor([5 + 6j]).conj().imag
    back = load(tmp_path, saved(state, legacy=legacy))
    assert {name: tensor.tolist() for name, tensor in back.items()} == {n: t.tolist() for n, t in state.items()}
    assert back["part"].data_ptr() == back["whole"].data_ptr() + 8


def test_bytes_in_the_other_order_are_turned(tmp_path):
    made = repacked(saved(WEIGHTS), {"byteorder": b"big"})
    expected = {name: torch.from_numpy(value.numpy().byteswap()) for name, value in WEIGHTS.items()}
    assert digest(load(tmp_path, made)) == digest(expected)
    with pytest.raises(CheckpointError, match="must have bytes in little-endian order"):
        load(tmp_path, repacked(saved({"a": torch.ones(2).to(torch.uint16)}), {"byteorder": b"big"}))
    with pytest.raises(CheckpointError, match="damaged"):
        load(tmp_path, repacked(saved(WEIGHTS), {"byteorder": b"odd"}))


def test_newer_protocols_of_torch_save_are_read(tmp_path):
    for protocol in (2, 3, 4, 5):
        assert digest(load(tmp_path, saved(WEIGHTS, protocol=protocol))) == digest(WEIGHTS)


@both_formats
def test_a_large_training_checkpoint_reads_back(tmp_path, legacy):
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(100)])
    moments = {number: {"step": torch.tensor(1.0), "exp_avg": torch.ones(4, 4)} for number in range(200)}
    groups = [{"lr": 0.1, "betas": (0.9, 0.99), "params": list(range(200))}]
    content = {
        "state_dict": model.state_dict(),
        "optimizer": {"state": moments, "param_groups": groups},
        "losses": [0.1] * 50_000,
    }
    assert digest(load(tmp_path, saved(content, legacy=legacy))) == digest(model.state_dict())
