"""Tensors that are not part of a layer, in everything that recover and check show and write."""

import json

import jsonschema
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import netpurify
from netpurify import report
from netpurify.network import check, purify
from tests.network.test_others import Backbone, tamper
from tests.report.page_reader import Reader

HIT = {
    "norm.running_var": (2, 1e4), "layer_norm.weight": (11, float("nan")), "embedding.weight": (77, 0.9),
    "recurrent.bias_ih_l0": (9, -1.0), "head.weight": (17, 2.5),
}  # fmt: skip


@pytest.fixture(scope="module")
def contaminated():
    """A frozen backbone with a trained head, in which five weights were altered, its inputs and its initial weights."""
    torch.manual_seed(3)
    model = Backbone().eval()
    initial = {name: value.clone() for name, value in model.state_dict().items()}
    inputs, labels = torch.randint(0, 50, (12, 5)), torch.randint(0, 3, (12,))
    optimiser = torch.optim.SGD(model.head.parameters(), lr=0.5)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimiser.step()
    for name, (index, value) in HIT.items():
        tamper(model, name, index, value)
    return model, inputs, initial


@pytest.fixture
def files(contaminated, tmp_path, monkeypatch):
    model, inputs, initial = contaminated
    monkeypatch.chdir(tmp_path)
    save_file(initial, "initial.safetensors")
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, "bad.safetensors")
    np.save("inputs.npy", inputs.numpy())
    return ["bad.safetensors", "--factory", "tests.network.test_others:Backbone", "--initial", "initial.safetensors",
            "--data", "inputs.npy"]  # fmt: skip


def place(name):
    shape = load_file("initial.safetensors")[name].shape
    return [int(axis) for axis in np.unravel_index(HIT[name][0], tuple(shape))]


def test_recover_names_every_altered_weight_in_every_report(run, files, tmp_path):
    reports = ("--json", "r.json", "--sarif", "r.sarif", "--report", "r.html")
    done = run("recover", *files, "-o", "out.safetensors", *reports)
    assert done.code == 1, done.err
    initial, out = load_file("initial.safetensors"), load_file("out.safetensors")
    record = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(record, report.schema("purification"))
    log = json.loads((tmp_path / "r.sarif").read_text())["runs"][0]
    alerts = {it["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: it for it in log["results"]}
    page = Reader((tmp_path / "r.html").read_text()).words
    entries = {entry["tensor"]: entry for entry in record["altered"]}
    assert entries.keys() == alerts.keys() == HIT.keys()
    for name, (index, value) in HIT.items():
        now = out[name].reshape(-1)[index].item()
        was = torch.tensor(value).item()
        assert (entries[name]["index"], entries[name]["now"]) == (place(name), pytest.approx(now, abs=1e-12)), name
        assert entries[name]["was"] == ("nan" if was != was else was)
        message = alerts[name]["message"]["text"]
        axes = ", ".join(map(str, place(name)))
        assert f"at index {axes} (was {was:.9g}, now {now:.9g})" in message
        assert f"{name}[{axes}]" in done.out
        assert f"\n{name}\n{axes}\n" in page
        if name != "head.weight":
            assert now == initial[name].reshape(-1)[index].item()
            assert alerts[name]["ruleId"] == "restored-weights"
    assert "2 other tensors" not in done.out  # they are listed
    assert "norm.running_var   altered       1  12  1 set back to the initial bits; largest change 1e+04" in done.out
    assert "7 other tensors have every bit of the initial weights." in done.out
    assert "Of 2,265 weights, 100.0 % are examined" in done.out


def test_the_record_has_every_other_tensor_and_the_coverage(contaminated):
    model, inputs, initial = contaminated
    result = purify(model, inputs, policy=netpurify.Recover(initial, proof=False))
    record = report.record(result)
    compared = {one["name"]: one for one in record["compared"]}
    in_layers = {name for name in initial if name.split(".")[0] in ("embedding", "recurrent", "head")}
    assert compared.keys() == initial.keys() - in_layers
    assert compared["norm.running_var"]["altered"] == {
        "index": [2], "was": [1e4], "base": [initial["norm.running_var"][2].item()]
    }  # fmt: skip
    assert record["coverage"] == {"examined": 2265, "compared": 0, "unknown": 0}


def test_print_shows_what_was_restored_in_other_tensors(contaminated):
    model, inputs, initial = contaminated
    result = purify(model, inputs, policy=netpurify.Recover(initial, proof=False))
    for shown in (str(result), result._repr_html_()):
        assert "norm.running_var: 1 set back to the initial bits; largest change 1e+04 at index 2" in shown
        assert "layer_norm.weight: 1 set back to the initial bits; largest change inf at index 11 (was nan" in shown
        assert "7 other tensors have every bit of the initial weights." in shown
        assert "not examined" not in shown
    plan = check(model, inputs, initial=initial)
    assert "norm.running_var: 1 altered; largest change 1e+04 at index 2 (is 10000, initially" in str(plan)


def test_trained_tensors_with_findings_are_named_with_what_became_of_them(contaminated):
    model, inputs, initial = contaminated
    state = {name: value.clone() for name, value in model.state_dict().items()}
    state["layer_norm.bias"] += 0.01 * torch.randn(60, generator=torch.Generator().manual_seed(1))
    state["layer_norm.bias"][4] = float("inf")
    state["position"] = initial["position"] + 0.01 * torch.randn(1, 5, 12, generator=torch.Generator().manual_seed(2))
    state["position"][0, 2, 3] += 60.0
    other = Backbone().eval()
    other.load_state_dict(state)
    result = purify(other, inputs, policy=netpurify.Recover(initial, proof=False))
    log = report.sarif(result, file="bad.safetensors")["runs"][0]
    found = {(it["ruleId"], it["level"]): it["message"]["text"] for it in log["results"]
             if it["message"]["text"].startswith(("layer_norm.bias", "position"))}  # fmt: skip
    assert found.keys() == {("impossible-weights", "error"), ("outlying-weights", "warning")}
    assert "at index 4 (was inf, now 0)" in found["impossible-weights", "error"]
    value, before = state["position"][0, 2, 3].item(), initial["position"][0, 2, 3].item()
    assert f"at index 0, 2, 3 (is {value:.9g}, initial {before:.9g})" in found["outlying-weights", "warning"]
    words = Reader(report.page(result)).words
    assert "\nposition\ntrained\n60\n60\n1 outlying, left unchanged; largest change" in words
    assert log["properties"]["coverage"] == report.record(result)["coverage"]


def test_check_names_them_too_and_says_what_recover_would_know(run, files, tmp_path):
    done = run("check", *files, "--json", "plan.json", "--sarif", "plan.sarif")
    assert "norm.running_var   altered       1  12  1 altered; largest change 1e+04 at index 2" in done.out
    assert "7 other tensors have every bit of the initial weights." in done.out
    assert "Of 2,265 weights, recover can be expected to examine 100.0 %, to compare only 0 %" in done.out
    record = json.loads((tmp_path / "plan.json").read_text())
    jsonschema.validate(record, report.schema("plan"))
    assert record["coverage"] == {"examined": 2265, "compared": 0, "unknown": 0}
    results = json.loads((tmp_path / "plan.sarif").read_text())["runs"][0]["results"]
    altered = [it["message"]["text"] for it in results if it["ruleId"] == "tensor-altered"]
    assert [text.split(":")[0] for text in altered] == ["norm.running_var", "layer_norm.weight"]


def test_without_initial_weights_a_plan_leaves_them_unknown(contaminated):
    model, inputs, _ = contaminated
    coverage = check(model, inputs).coverage
    assert (coverage.examined, coverage.total) == (0, 2265)
    assert coverage.unknown == 2265 - sum(layer.fan_in * layer.units for layer in check(model, inputs).layers)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_is_wider_than_the_screen(run, files, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for call in (("recover", *files, "-o", "out.safetensors", "--force"), ("check", *files)):
        assert max(map(len, run(*call).out.splitlines())) <= columns
