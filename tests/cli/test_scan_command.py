"""netpurify scan: exit codes, what is shown, what is written, and that nobody's code is run."""

import json
import sys

import pytest
import torch

from netpurify import checkpoint
from tests.network.fine_tuning import flipped

INITIAL = checkpoint.load_weights


@pytest.fixture
def scanned(run, files):
    """Scan the initial weights with something done to them, against the initial weights."""

    def call(change, *arguments):
        state = change(INITIAL("initial.safetensors"))
        checkpoint.save_weights(state, files / "w.safetensors")
        return run("scan", files / "w.safetensors", "--against", "initial.safetensors", *arguments)

    return call


def hit(state):
    return state | {"0.weight": flipped(state["0.weight"], 7 * 60 + 11, 30)}


def trained(state):
    noise = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    return state | {"2.weight": state["2.weight"] + 1e-3 * noise}


def test_nothing_found_is_code_0_and_says_how_much_is_known(scanned):
    done = scanned(lambda state: state)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "",
        "4 tensors have every bit of the base.",
        "Of 2,645 weights: examined 100.0 %, compared only 0 %, unknown 0 %.",
        "",
        "✓ nothing was found: all 2,645 weights are known",
    ]
    assert "4 of 4 tensors" in done.err


def test_findings_come_first_with_their_index_by_axis(scanned):
    done = scanned(lambda state: trained(hit(state)))
    assert done.code == 1
    lines = [line.split() for line in done.out.splitlines() if line]
    assert lines[1][:4] == ["0.weight", "altered", "1", "2,400"]
    assert lines[3][:2] == ["0.weight[7,", "11]"]
    assert "1 tensor was trained: only what no training could have done would be seen.\n" in done.out
    assert "Of 2,645 weights: examined 92.4 %, compared only 7.56 %, unknown 0 %.\n" in done.out
    assert done.out.endswith("\n▲ 1 entry altered in 1 tensor (0.weight)\n")
    assert scanned(hit, "--show", "0").out.count("0.weight[") == 0


def test_trained_weights_are_a_finding_with_strict_alone(scanned):
    done = scanned(trained)
    assert done.code == 0
    assert "a moderate alteration could not be seen in 200 trained weights" in done.out
    done = scanned(trained, "--strict")
    assert done.code == 1
    assert "200 weights compared only" in done.out


def test_frozen_patterns_make_every_difference_a_finding(scanned):
    done = scanned(trained, "--frozen", "0.*", "--frozen", "2.*", "--quiet")
    assert (done.code, done.out, done.err) == (1, "▲ 200 entries altered in 1 tensor (2.weight)\n", "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state | {"new": torch.ones(3)}, "◐ nothing to compare with for 1 tensor (new)"),
        (lambda state: state | {"2.bias": torch.ones(7)}, "◐ nothing to compare with for 1 tensor (2.bias)"),
        (
            lambda state: {name: state[name] for name in state if name != "2.bias"},
            "◐ only the base has 1 tensor (2.bias)",
        ),
    ],
)
def test_tensors_without_a_counterpart_are_findings(scanned, change, words):
    done = scanned(change)
    assert done.code == 1
    assert done.out.splitlines()[-1] == words


def test_reports_are_written_and_agree(scanned, files):
    targets = ["--json", files / "a.json", "--sarif", files / "a.sarif", "--report", files / "a.html"]
    done = scanned(hit, *targets)
    record = json.loads((files / "a.json").read_text())
    assert (record["exit_code"], record["verdict"]) == (done.code, done.out.splitlines()[-1].removeprefix("▲ "))
    assert {one["name"]: one["altered"]["index"] for one in record["tensors"]}["0.weight"] == [431]
    (run,) = json.loads((files / "a.sarif").read_text())["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["altered-tensor"]
    assert f"{record['verdict']}." in (files / "a.html").read_text()
    assert not list(files.glob("*.safetensors"))[1:]
    printed = scanned(hit, "--sarif", "-")
    assert json.loads(printed.out)["runs"][0]["results"] == run["results"]


def test_names_of_tensors_cannot_paint_on_the_terminal(run, files):
    name = "\x1b[2Jnothing was found"
    base = {name: torch.randn(20, 20, generator=torch.Generator().manual_seed(0))}
    checkpoint.save_weights(base, files / "base.safetensors")
    checkpoint.save_weights({name: flipped(base[name], 5, 30)}, files / "w.safetensors")
    done = run("scan", files / "w.safetensors", "--against", files / "base.safetensors", "--verbose")
    assert done.code == 1
    assert "\x1b" not in done.out + done.err
    assert "\\x1b[2J" in done.out


def test_no_code_is_run_without_clean_inputs(scanned, monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "__init__", lambda *_, **__: pytest.fail("a module was built"))
    assert scanned(hit).code == 1
    assert "small_networks" not in sys.modules


@pytest.mark.usefixtures("files")
def test_clean_inputs_show_what_training_hides(run, common, tmp_path):
    plain = run("scan", "contaminated.safetensors", "--against", "initial.safetensors", "--quiet")
    done = run("scan", "contaminated.safetensors", "--against", "initial.safetensors", *common,
               "--json", tmp_path / "a.json", "--sarif", tmp_path / "a.sarif")  # fmt: skip
    assert done.code == 1, done.err
    truth, dirty = (checkpoint.load_weights(f"{name}.safetensors") for name in ("trained", "contaminated"))
    altered = sum(int((truth[name] != dirty[name]).sum()) for name in truth)
    assert f"with clean inputs, {altered} weights altered" in done.out.splitlines()[-1]
    assert "with clean inputs" not in plain.out
    record = json.loads((tmp_path / "a.json").read_text())
    assert record["fits"]["schema_name"] == "purification"
    assert record["coverage"] == {"examined": 2645, "compared": 0, "unknown": 0}
    results = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert {one["ruleId"] for one in results} == {"altered-weights"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.sarif"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trained.safetensors", "--against", "missing.safetensors"], "must be there to be read"),
        (["trained.safetensors", "--against", "trained.safetensors"], "is a file to scan itself"),
        (["trained.safetensors", "--against", "initial.safetensors", "--factory", "a:b"], "give --data too"),
        (["trained.safetensors", "--against", "initial.safetensors", "--data", "inputs.npy"], "give --factory"),
        (["trained.safetensors", "--against", "initial.safetensors", "--json", "-", "--sarif", "-"], "only one report"),
        (["trained.safetensors", "contaminated.safetensors", "--against", "initial.safetensors", "--json", "-"],
         "scan them one by one"),
        (["trained.safetensors", "--against", "inputs.npy"], "inputs.npy"),
        (["trained.safetensors"], "--against"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("files")
def test_bad_input_is_code_2(run, arguments, words):
    done = run("scan", *arguments)
    assert done.code == 2
    assert words in done.message
    assert done.out == ""


def test_unrelated_networks_are_bad_input(run, files):
    checkpoint.save_weights({"x": torch.ones(2)}, files / "x.safetensors")
    done = run("scan", files / "x.safetensors", "--against", "initial.safetensors")
    assert done.code == 2
    assert "no tensor in common" in done.message
    told = run("diff", files / "x.safetensors", "initial.safetensors")
    assert (told.code, told.out.splitlines()[-1]) == (1, "no tensor in common: 1 tensor in A only, 4 tensors in B only")


def test_diff_and_check_have_logs_too(run, files):
    done = run("diff", "contaminated.safetensors", "trained.safetensors", "--sarif", files / "d.sarif")
    (log,) = json.loads((files / "d.sarif").read_text())["runs"]
    assert done.code == 1
    truth, dirty = (checkpoint.load_weights(f"{name}.safetensors") for name in ("trained", "contaminated"))
    names = [one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for one in log["results"]]
    assert set(names) == {name for name in truth if not torch.equal(truth[name], dirty[name])}
    assert {one["ruleId"] for one in log["results"]} == {"tensor-differs"}
    assert log["properties"]["verdict"] == done.out.splitlines()[-1]
    spare = ["--factory", "small_networks:Spare", "--data", "inputs.npy"]
    shapes = {"first.weight": (40, 60), "first.bias": (40,), "norm.weight": (40,), "norm.bias": (40,),
              "last.weight": (5, 40), "last.bias": (5,)}  # fmt: skip
    state = {name: torch.randn(shape, generator=torch.Generator().manual_seed(0)) for name, shape in shapes.items()}
    checkpoint.save_weights(state, files / "spare.safetensors")
    done = run("check", files / "spare.safetensors", *spare, "--initial-seed", "1", "--sarif", "-")
    assert done.code == 1, done.err
    results = json.loads(done.out)["runs"][0]["results"]
    found = {one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: one["ruleId"] for one in results}
    modules = {"norm": "module-not-examined", "last": "module-not-examined"}
    assert found == modules | {"first": "layer-not-recoverable"}  # no unit agrees on a fit
    record = json.loads(run("check", files / "spare.safetensors", *spare, "--initial-seed", "1", "--json", "-").out)
    assert {one["name"] for one in record["compared"]} >= {"norm.weight", "norm.bias"}
