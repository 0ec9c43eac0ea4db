"""Proof files that were tampered with: each is refused by a message, whatever its metadata say."""

import json
from pathlib import Path

import pytest
import torch

from netpurify.checkpoint import save_weights
from netpurify.errors import InputError
from netpurify.network import load_proof
from netpurify.network.adapter.form import Form

DIGESTS = {"contaminated": "a", "initial": None, "purified": "b", "data": "c"}
CONTENT = {
    "version": 1,
    "policy": "recover",
    "decays": {"0": 1.0, "2": 1},
    "noise_floor": None,
    "digests": DIGESTS,
    "blocks": [
        {"layer": "0", "group": 0, "groups": 1, "columns": 0},
        {"layer": "0", "group": 0, "groups": 1, "columns": 0},
    ],
}
F64 = torch.float64
TENSORS = {
    "0.columns": torch.ones(5, 2, dtype=F64),
    "0.units": torch.arange(3),
    "0.coefficients": torch.ones(2, 3, dtype=F64),
    "0.dual": torch.zeros(5, 3, dtype=F64),
    "1.units": torch.arange(3, 4),
    "1.coefficients": torch.ones(2, 1, dtype=F64),
    "1.dual": torch.zeros(5, 1, dtype=F64),
}


def written(folder: Path, content: object, tensors: dict[str, torch.Tensor] = TENSORS) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    save_weights(tensors, folder / "proof.safetensors", metadata={"netpurify.proof": text})
    return folder / "proof.safetensors"


def block(**changes: object) -> dict:
    return {"blocks": [CONTENT["blocks"][0] | changes]}


def test_a_proof_reads_back(tmp_path):
    proof = load_proof(written(tmp_path, CONTENT | {"noise_floor": 0}))
    assert (proof.policy, proof.noise_floor, proof.decays) == ("recover", 0.0, {"0": 1.0, "2": 1.0})
    assert proof.digests == DIGESTS
    assert [part.units.tolist() for part in proof.proofs] == [[0, 1, 2], [3]]
    assert [part.columns.shape for part in proof.proofs] == [(5, 2), (5, 2)]


FORM = {"weight": "0.w", "biases": ["0.b"], "layout": "transposed", "groups": 1, "first": 4, "tied": [["1.w", "0.w"]]}


def test_a_form_and_restored_units_read_back(tmp_path):
    tensors = {
        "0.columns": torch.ones(5, 0, dtype=F64),
        "0.units": torch.arange(3),
        "0.coefficients": torch.ones(0, 3, dtype=F64),
        "0.dual": torch.zeros(5, 0, dtype=F64),
    }
    content = CONTENT | {"version": 2} | block(form=FORM, restored=True)
    (proof,) = load_proof(written(tmp_path, content, tensors)).proofs
    assert proof.form == Form("0.w", ("0.b",), "transposed", 1, 4, (("1.w", "0.w"),))
    assert proof.restored
    (usual, _) = load_proof(written(tmp_path, CONTENT)).proofs
    assert usual.form is None
    assert not usual.restored


METADATA = {
    **{
        f"a form with {key} as {value}": (CONTENT | block(form=FORM | {key: value}), "its blocks")
        for key, value in (
            ("weight", 1),
            ("biases", "0.b"),
            ("biases", [1]),
            ("layout", "sideways"),
            ("layout", []),
            ("groups", 2),
            ("groups", True),
            ("first", -1),
            ("first", 0.5),
            ("tied", [["1.w"]]),
            ("tied", [["1.w", 0]]),
            ("tied", {}),
            ("more", 1),
        )
    },
    "a form that is a list": (CONTENT | block(form=[]), "its blocks"),
    "restored in words": (CONTENT | block(restored="yes"), "its blocks"),
    "restored units with columns": (CONTENT | block(restored=True), "block 0 must have no columns"),
    "no JSON": ("{", "metadata are damaged"),
    "nested without end": ("[" * 100_000, "metadata are damaged"),
    "a list": ([], "metadata are damaged"),
    "a number": (7, "metadata are damaged"),
    "no version": ({}, "metadata are damaged"),
    "another version": (CONTENT | {"version": 3}, "a proof of version 3; this netpurify reads 1 to 2"),
    "truth as a version": (CONTENT | {"version": True}, "a proof of version True"),
    "a version of any length": (CONTENT | {"version": [9] * 10_000}, "a proof of version .{20};"),
    "another policy": (CONTENT | {"policy": "defend"}, "its policy"),
    "a policy that is a list": (CONTENT | {"policy": []}, "its policy"),
    "decays as a list": (CONTENT | {"decays": [1.0]}, "its decays"),
    "a decay in words": (CONTENT | {"decays": {"0": "one"}}, "its decays"),
    "a decay that is no number": (CONTENT | {"decays": {"0": float("nan")}}, "its decays"),
    "a decay beyond numbers": (CONTENT | {"decays": {"0": 10**400}}, "its decays"),
    "no decay of the layer": (CONTENT | {"decays": {"2": 1.0}}, "no decay of the layer '0'"),
    "no noise floor": ({key: value for key, value in CONTENT.items() if key != "noise_floor"}, "its noise floor"),
    "a noise floor below zero": (CONTENT | {"noise_floor": -1.0}, "its noise floor"),
    "a noise floor without end": (CONTENT | {"noise_floor": float("inf")}, "its noise floor"),
    "a noise floor in words": (CONTENT | {"noise_floor": "0"}, "its noise floor"),
    "digests as a list": (CONTENT | {"digests": []}, "its digests"),
    "a digest missing": (CONTENT | {"digests": {"data": "c"}}, "its digests"),
    "a digest that is a number": (CONTENT | {"digests": DIGESTS | {"data": 1}}, "its digests"),
    "no blocks": ({key: value for key, value in CONTENT.items() if key != "blocks"}, "its blocks"),
    "blocks as text": (CONTENT | {"blocks": "ab"}, "its blocks"),
    "a block that is a list": (CONTENT | {"blocks": [[]]}, "its blocks"),
    "columns without end": (CONTENT | block(columns=float("inf")), "its blocks"),
    "columns in halves": (CONTENT | block(columns=0.5), "its blocks"),
    "columns below zero": (CONTENT | block(columns=-1), "its blocks"),
    "columns of nobody": (CONTENT | block(columns=7), "whole proof; block 0 must have columns .*; got nothing"),
    "a group that is not there": (CONTENT | block(group=1), "its blocks"),
    "groups of any number": (CONTENT | block(groups=10**30), "its blocks"),
    "a layer that is a number": (CONTENT | block(layer=0), "its blocks"),
    "more blocks than tensors": (CONTENT | {"blocks": CONTENT["blocks"] * 2}, "block 2 must have units"),
}


@pytest.mark.parametrize(("content", "message"), METADATA.values(), ids=METADATA.keys())
def test_metadata_that_have_no_meaning_are_refused(tmp_path, content, message):
    with pytest.raises(InputError, match=message) as caught:
        load_proof(written(tmp_path, content))
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


PARTS = {
    "units in halves": ("0.units", torch.ones(3), "units in torch.int64"),
    "units in rows": ("0.units", torch.ones(3, 1, dtype=torch.int64), "units in torch.int64 with 1 dimensions"),
    "units below zero": ("0.units", torch.tensor([-1, 0, 1]), "units that exist"),
    "columns as a vector": ("0.columns", torch.ones(5, dtype=F64), "columns in torch.float64 with 2 dimensions"),
    "columns of another dtype": ("0.columns", torch.ones(5, 2, dtype=torch.bfloat16), "columns in torch.float64"),
    "columns of whole numbers": ("0.columns", torch.ones(5, 2, dtype=torch.int64), "columns in torch.float64"),
    "coefficients of another rank": ("0.coefficients", torch.ones(3, 3, dtype=F64), r"coefficients \[2, 3\]; got"),
    "duals of another fan-in": (
        "1.dual",
        torch.ones(4, 1, dtype=F64),
        r"block 1 must have dual \[5, 1\]; got \[4, 1\]",
    ),
}


@pytest.mark.parametrize(("name", "tensor", "message"), PARTS.values(), ids=PARTS.keys())
def test_tensors_that_do_not_fit_are_refused(tmp_path, name, tensor, message):
    with pytest.raises(InputError, match=message):
        load_proof(written(tmp_path, CONTENT, TENSORS | {name: tensor}))


def test_a_file_without_a_proof_is_refused(tmp_path):
    save_weights(TENSORS, tmp_path / "some.safetensors")
    with pytest.raises(InputError, match="must be a proof that netpurify wrote"):
        load_proof(tmp_path / "some.safetensors")
