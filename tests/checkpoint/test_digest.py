"""The digest of weights: the same for the same bits, another for any other."""

import hashlib
import json
import struct

import pytest
import torch

from netpurify.checkpoint import digest, digest_tensor
from netpurify.errors import InputError

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]
STATE = {"b": torch.arange(6, dtype=torch.float32).reshape(2, 3), "a": torch.tensor(3, dtype=torch.int64)}


def test_digest_is_the_one_that_the_docs_spell_out():
    one = hashlib.sha256(b"int64 []\n" + struct.pack("<q", 3)).hexdigest()
    two = hashlib.sha256(b"float32 [2, 3]\n" + struct.pack("<6f", *range(6))).hexdigest()
    assert digest_tensor(STATE["a"]) == one
    assert digest(STATE) == hashlib.sha256(f"{json.dumps('a')} {one}\n{json.dumps('b')} {two}\n".encode()).hexdigest()


def test_order_layout_and_gradients_do_not_matter():
    columns = STATE["b"].t().contiguous().t()
    strided = torch.zeros(2, 6)[:, ::2].copy_(STATE["b"])
    assert not columns.is_contiguous()
    for other in (columns, strided, torch.nn.Parameter(STATE["b"].clone())):
        assert digest({"a": STATE["a"], "b": other}) == digest(STATE)


@pytest.mark.parametrize(
    "other",
    [
        {"b": STATE["b"], "c": STATE["a"]},
        {"b": STATE["a"], "a": STATE["b"]},
        {"b": STATE["b"].reshape(3, 2), "a": STATE["a"]},
        {"b": STATE["b"].view(torch.int32), "a": STATE["a"]},
        {"b": STATE["b"], "a": STATE["a"].reshape(1)},
        {"b": STATE["b"]},
        {**STATE, "c": torch.empty(0)},
    ],
    ids=["name", "swapped", "shape", "dtype", "one dimension", "one fewer", "one empty more"],
)
def test_everything_else_matters(other):
    assert digest(other) != digest(STATE)


def test_every_bit_matters():
    zeros = torch.zeros(3)
    seen = {digest_tensor(zeros), digest_tensor(-zeros), digest_tensor(torch.tensor([0.0, -0.0, 0.0]))}
    words = torch.full((3,), 0x7FC00000, dtype=torch.int32)
    seen |= {digest_tensor(words.view(torch.float32)), digest_tensor((words + 1).view(torch.float32))}
    assert len(seen) == 5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.complex64, torch.uint8, *FLOAT8])
def test_every_dtype_has_its_own(dtype):
    values = torch.tensor([0, 1, 1]).to(dtype)
    raw = bytes(values.view(torch.uint8).tolist())
    name = str(dtype).removeprefix("torch.")
    assert digest_tensor(values) == hashlib.sha256(f"{name} [3]\n".encode() + raw).hexdigest()


def test_one_number_with_any_stride_is_that_number():
    odd = torch.tensor([1.0, 2.0, 3.0])[1::2]
    assert odd.stride() == (2,)
    assert digest({"a": odd[:1]}) == digest({"a": torch.tensor([2.0])})


def test_conjugate_and_empty_tensors():
    values = torch.tensor([1 + 2j, 3 - 1j])
    assert digest_tensor(values.conj()) == digest_tensor(torch.tensor([1 - 2j, 3 + 1j]))
    assert digest_tensor(values.conj().imag) == digest_tensor(torch.tensor([-2.0, 1.0]))
    assert digest_tensor(torch.empty(0, 3)) == hashlib.sha256(b"float32 [0, 3]\n").hexdigest()


@pytest.mark.parametrize(
    ("tensor", "word"),
    [(torch.eye(2).to_sparse(), "sparse"), (torch.empty(2, device="meta"), "meta")],
)
def test_tensors_without_plain_values_are_refused_by_name(tensor, word):
    with pytest.raises(InputError, match=f"some must be a dense tensor with values; got a {word} tensor"):
        digest({"some": tensor})
    with pytest.raises(InputError, match=f"got a {word} tensor"):
        digest_tensor(tensor)


def test_what_is_no_state_is_refused():
    with pytest.raises(InputError, match="some must be a tensor; got int"):
        digest({"some": 1})
    with pytest.raises(InputError, match="must be text; got 7"):
        digest({7: torch.ones(1)})
