"""A proof is checked without trust in who made it."""

import json
import re

import numpy as np
import pytest
import torch

from netpurify import checkpoint


def purified(run, common, folder, weights="contaminated.safetensors"):
    return run("recover", weights, *common, "--initial-seed", "5", "-o", folder / "out.safetensors", "--proof",
               folder / "proof.safetensors")  # fmt: skip


@pytest.fixture
def proven(run, files, common):
    assert purified(run, common, files).code == 1
    return files


def verified(run, folder, *more, purified="out.safetensors"):
    start = more or ("--initial", "initial.safetensors")
    return run("verify", folder / "proof.safetensors", "--contaminated", "contaminated.safetensors", "--purified",
               folder / purified, *start)  # fmt: skip


def test_verify_needs_no_data_and_no_solver(run, proven, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr("netpurify.lad.solve", never)
    monkeypatch.setattr("netpurify.lad.stream", never)
    done = verified(run, proven)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1].startswith("sound")
    assert [line.split()[1:4] for line in done.out.splitlines() if line.startswith("0 ")] == [["40", "40", "40"]]
    assert verified(run, proven, "--initial-seed", "5", "--factory", "small_networks:build").code == 0


def test_verify_sees_other_files(run, proven):
    state = checkpoint.load_weights(proven / "out.safetensors")
    state["0.weight"] = state["0.weight"].clone()
    state["0.weight"][3, 4] += 0.5
    checkpoint.save_weights(state, proven / "touched.safetensors")
    done = verified(run, proven, purified="touched.safetensors")
    assert done.code == 1
    assert "the purified weights are not those that the proof speaks of" in done.message
    done = verified(run, proven, "--initial-seed", "6", "--factory", "small_networks:build")
    assert done.code == 1
    assert "the initial weights are not those" in done.message


def retell(folder, *, tensors=None, digests=None, keep=None):
    """The proof with some of its content replaced."""
    path = folder / "proof.safetensors"
    content = json.loads(checkpoint.load_metadata(path)["netpurify.proof"])
    state = {name: value.clone() for name, value in checkpoint.load_weights(path).items()} | (tensors or {})
    content["digests"] |= digests or {}
    content["blocks"] = content["blocks"][:keep]
    checkpoint.save_weights(state, path, metadata={"netpurify.proof": json.dumps(content)})


def test_verify_sees_through_a_tampered_dual(run, proven):
    dual = checkpoint.load_weights(proven / "proof.safetensors")["0.dual"]
    retell(proven, tensors={"0.dual": torch.zeros_like(dual)})
    done = verified(run, proven)
    assert done.code == 1
    assert "0: fits that are no proven minimum: 40" in done.message


def test_verify_sees_weights_that_the_proof_is_silent_about(run, proven):
    retell(proven, keep=0)
    done = verified(run, proven)
    assert done.code == 1
    assert re.search(r"0: fits that are no proven minimum: 0; .* proven fit: [1-9]", done.message)


def test_verify_sees_a_weight_planted_in_the_purified_file(run, proven):
    state = checkpoint.load_weights(proven / "out.safetensors")
    state["0.weight"] = state["0.weight"].clone()
    state["0.weight"][3, 4] += 0.5
    checkpoint.save_weights(state, proven / "out.safetensors")
    retell(proven, digests={"purified": checkpoint.digest(state)})
    done = verified(run, proven)
    assert done.code == 1
    assert "do not follow from a proven fit: 1" in done.message


def test_verify_sees_changes_under_a_proof_without_evidence(run, proven):
    """A design that spans everything fits anything: a true minimum, and no evidence at all."""
    before, start = (checkpoint.load_weights(f"{name}.safetensors") for name in ("contaminated", "initial"))
    state = checkpoint.load_weights(proven / "out.safetensors")
    state["2.weight"] = state["2.weight"] + 1.0
    checkpoint.save_weights(state, proven / "out.safetensors")
    difference = torch.cat(
        [(before[f"2.{part}"] - start[f"2.{part}"]).reshape(5, -1) for part in ("weight", "bias")], 1
    )
    block = {"1.columns": torch.eye(41), "1.coefficients": difference.T, "1.dual": torch.zeros(41, 5)}
    forged = {name: value.double().contiguous() for name, value in block.items()}
    retell(proven, tensors=forged, digests={"purified": checkpoint.digest(state)})
    done = verified(run, proven)
    assert done.code == 1
    assert re.search(r"2: .* proven fit: 20\d", done.message)


def test_frozen_layer_needs_no_proof(run, files, common):
    """Only the last layer was trained; an alteration of the first is seen by comparison alone."""
    state = checkpoint.load_weights("initial.safetensors")
    inputs = torch.from_numpy(np.load("inputs.npy"))
    seen = torch.relu(inputs @ state["0.weight"].T + state["0.bias"])
    step = 0.1 * torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    state |= {"2.weight": state["2.weight"] + step @ seen, "2.bias": state["2.bias"] + step.sum(1)}
    state["0.weight"] = state["0.weight"].clone()
    state["0.weight"][1, 2] = 9.0
    checkpoint.save_weights(state, files / "frozen.safetensors")
    done = purified(run, common, files, weights=files / "frozen.safetensors")
    assert "0.weight[1, 2]" in done.out
    checked = run("verify", files / "proof.safetensors", "--contaminated", files / "frozen.safetensors", "--purified",
                  files / "out.safetensors", "--initial", "initial.safetensors")  # fmt: skip
    start = checkpoint.load_weights("initial.safetensors")
    assert torch.equal(checkpoint.load_weights(files / "out.safetensors")["0.weight"], start["0.weight"])
    assert checked.code == 0, checked.err


@pytest.mark.parametrize("start", [(), ("--initial", "initial.safetensors")])
def test_proof_of_a_projection(run, files, common, start):
    options = ["--rank", "6", *start, "--proof", files / "proof.safetensors"]
    done = run("project", "contaminated.safetensors", *common, *options, "-o", files / "out.safetensors")
    assert done.code == 0, done.err
    found = run("verify", files / "proof.safetensors", "--contaminated", "contaminated.safetensors", "--purified",
                files / "out.safetensors", *start)  # fmt: skip
    assert found.code == 0, found.err
