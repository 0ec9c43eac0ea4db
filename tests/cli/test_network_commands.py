"""The way of a user: contaminate, check, purify, diff."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from netpurify import checkpoint
from netpurify.lad import Status
from netpurify.network import load_proof

COMMANDS = (
    "check", "recover", "project", "defend", "hunt", "unlearn", "verify", "contaminate", "diff", "scan", "demo"
)  # fmt: skip


def purified(run, common, folder, *more, weights="contaminated.safetensors"):
    return run("recover", weights, *common, "--initial-seed", "5", "-o", folder / "out.safetensors", *more)


@pytest.mark.usefixtures("files")
def test_check_says_what_can_be_repaired(run, common):
    done = run("check", "contaminated.safetensors", *common, "--initial-seed", "5")
    assert done.code == 0, done.err
    line = next(line for line in done.out.splitlines() if line.startswith("0 "))
    assert line.split()[1:6] == ["Linear", "40", "61", "61", "8"]
    assert "1 of 2 layers can be recovered exactly, 1 more perhaps, once the layers before are repaired" in done.out
    words = " ".join(done.out.split())
    assert "8 of 8 units tried agree on a fit" in words
    assert "seen here through layers that recover repairs first (0)" in words
    assert "Recovery is expected to take " in done.out
    assert re.search(r"^This check took [\d.]+ m?s\.$", done.out, flags=re.MULTILINE)
    assert "check: 100 % 2 of 2 layers in " in done.err
    wrong = run("check", "contaminated.safetensors", *common, "--initial-seed", "6")
    assert "0 of 2 layers can be recovered exactly" in wrong.out
    assert "none of 8 units tried agrees on a fit: the layer was trained with Adam" in " ".join(wrong.out.split())
    quiet = run("check", "contaminated.safetensors", *common, "--initial-seed", "5", "--quiet")
    assert quiet.out.startswith("◐ 1 of 2 layers can be recovered exactly, 1 more perhaps")
    assert quiet.err == ""


def test_check_as_json_on_standard_output_and_in_a_file(run, files, common):
    done = run("check", "contaminated.safetensors", *common, "--initial", "initial.safetensors", "--json", "-")
    record = json.loads(done.out)
    assert record["schema"] == 1
    assert record["repairable"] == ["0"]
    found = [(layer["probed"], layer["agreeing"], layer["provisional"]) for layer in record["layers"]]
    assert found == [(8, 8, False), (5, 0, True)]
    assert record["layers"][0]["ratio"] == pytest.approx(61 / 8)
    run("check", "contaminated.safetensors", *common, "--layer", "0", "--json", files / "plan.json")
    found = json.loads((files / "plan.json").read_text())
    assert found["repairable"] == []
    assert found["skipped"] == [
        {"name": "2", "kind": "Linear", "reason": "not asked for", "missed": False, "settled": False}
    ]


def test_purify_recovers_the_truth_and_says_so(run, files, common):
    done = purified(run, common, files, "--proof", files / "proof.safetensors")
    assert done.code == 1, done.err
    truth = checkpoint.load_weights("trained.safetensors")
    found = checkpoint.load_weights(files / "out.safetensors")
    dirty = checkpoint.load_weights("contaminated.safetensors")
    hit = {name: dirty[name] != value for name, value in truth.items()}
    count = sum(int(mask.sum()) for mask in hit.values())
    for name, value in truth.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=0)
        assert torch.equal(found[name][~hit[name]], dirty[name][~hit[name]])
    assert (
        f"\n▲ {count:,} of 2,645 weights were altered\n✓ all replaced: all 45 units recovered, certified\n" in done.out
    )
    assert "On 8 clean inputs, outputs changed by " in done.out
    assert "layers: 2, weights: 2,645, clean inputs: 8" in done.err
    assert "2 of 2 layers" in done.err
    note = json.loads(checkpoint.load_metadata(files / "out.safetensors")["netpurify"])
    assert note["model"] == checkpoint.digest(dirty)
    assert (note["factory"], note["initial_seed"]) == ("small_networks:build", 5)
    assert load_proof(files / "proof.safetensors").policy == "recover"


def test_same_command_same_bytes_but_not_without_force(run, files, common):
    first = purified(run, common, files)
    before = (files / "out.safetensors").read_bytes()
    refused = purified(run, common, files)
    assert (first.code, refused.code) == (1, 2)
    assert "--force" in refused.err
    again = purified(run, common, files, "--force", "--quiet")
    assert again.code == 1
    assert again.err == ""
    assert [line[0] for line in again.out.splitlines()] == ["▲", "✓", "w"]
    assert (files / "out.safetensors").read_bytes() == before


def test_healthy_network_is_left_alone(run, files, common):
    done = purified(run, common, files, weights="trained.safetensors")
    assert done.code == 0, done.out
    assert "\n✓ Nothing was altered in 2,645 weights examined; all 45 units intact, certified\n" in done.out
    assert "45 units: nothing to replace; every weight keeps its bits." in done.out
    assert run("diff", "trained.safetensors", files / "out.safetensors").code == 0


def test_project_without_initial_weights(run, files, common):
    done = run("project", "contaminated.safetensors", *common, "-o", files / "out.safetensors")
    assert done.code == 0, done.err
    assert "All 45 units took the fitted value in every weight" in done.out


def test_interrupt_is_no_finding_and_writes_nothing(run, files, common, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("netpurify.network.purify", interrupted)
    done = purified(run, common, files)
    assert done.code == 130
    assert not list(files.iterdir())


def test_units_without_evidence_are_findings(run, files, common):
    np.save(files / "many.npy", np.random.default_rng(0).standard_normal((200, 60), np.float32))
    done = run("recover", "trained.safetensors", *common[:2], "--data", files / "many.npy", "--initial-seed", "5",
               "--layer", "0", "-o", files / "out.safetensors")  # fmt: skip
    assert done.code == 1
    assert "all 40 units could not be judged" in done.out
    assert "the clean inputs span every direction" in done.out


def test_weights_that_stay_broken_are_a_finding(run, files, common):
    state = checkpoint.load_weights("trained.safetensors")
    state["2.weight"] = torch.full_like(state["2.weight"], float("nan"))
    checkpoint.save_weights(state, files / "nan.safetensors")
    done = purified(run, common, files, "--layer", "0", weights=files / "nan.safetensors")
    assert done.code == 1
    assert "◐ 200 weights of the purified network are not finite" in done.out


def test_weights_keep_the_dtype_of_their_file(run, files, common):
    wide = {name: value.double() for name, value in checkpoint.load_weights("contaminated.safetensors").items()}
    checkpoint.save_weights(wide, files / "wide.safetensors")
    assert purified(run, common, files, weights=files / "wide.safetensors").code == 1
    assert {value.dtype for value in checkpoint.load_weights(files / "out.safetensors").values()} == {torch.float64}


def test_inputs_are_normalised(run, files, common):
    raw = 3.0 * np.load("inputs.npy") + 2.0
    np.save(files / "raw.npy", raw)
    done = run("recover", "contaminated.safetensors", *common[:2], "--data", files / "raw.npy", "--mean", "2", "--std",
               "3", "--initial-seed", "5", "-o", files / "out.safetensors")  # fmt: skip
    assert " weights were altered\n✓ all replaced: all 45 units recovered" in done.out
    assert done.out.splitlines()[-1].startswith("written: ")


@pytest.mark.slow
def test_reports_are_asked_by_name(run, files, common):
    targets = ["--report", files / "a.html", "--json", files / "a.json", "--sarif", files / "a.sarif"]
    told = purified(run, common, files, *targets)
    assert told.code == 1
    assert "netpurify recover contaminated.safetensors" in (files / "a.html").read_text()
    record = json.loads((files / "a.json").read_text())
    assert (record["policy"], record["exit_code"]) == ("recover", told.code)
    said = told.out.splitlines()
    assert "; ".join(line[2:] for line in said[-3:-1]) == record["verdict"]
    assert said[-4 - len(record["statements"]) : -4] == record["statements"]
    assert all(f"{line[4:]}." in (files / "a.html").read_text() for line in said[-3:-1])
    assert '"contaminated.safetensors"' in json.dumps(json.loads((files / "a.sarif").read_text()))
    done = purified(run, common, files, "--json", "-", "--force")
    assert json.loads(done.out)["policy"] == "recover"


def test_a_page_cannot_be_printed_nor_two_reports(run, files, common):
    done = purified(run, common, files, "--report", "-")
    assert done.code == 2
    assert "--report writes a file and prints nothing" in done.message
    done = purified(run, common, files, "--json", "-", "--sarif", "-")
    assert done.code == 2
    assert "only one report can be printed" in done.message
    assert not list(files.iterdir())


def test_remedies_are_told_for_units_without_evidence(run, files, common):
    np.save(files / "many.npy", np.random.default_rng(0).standard_normal((200, 60), np.float32))
    done = run("recover", "trained.safetensors", *common[:2], "--data", files / "many.npy", "--initial-seed", "5",
               "--layer", "0", "-o", files / "out.safetensors", "--json", files / "a.json")  # fmt: skip
    table = " ".join(done.out.split("units not recovered, by L1 fit")[1].split())
    (advice,) = json.loads((files / "a.json").read_text())["advice"]
    assert (advice["units"], advice["remedy"]) == (40, Status.RANK_FULL.remedy)
    assert all(word in table for word in Status.RANK_FULL.remedy.split())


def test_training_checkpoint_with_prefixes(run, files, common):
    state = checkpoint.load_weights("contaminated.safetensors")
    torch.save({"epoch": 3, "state_dict": {f"module.{name}": value for name, value in state.items()}}, files / "run.pt")
    assert purified(run, common, files, weights=files / "run.pt").code == 1
    assert checkpoint.load_weights(files / "out.safetensors").keys() == state.keys()


def test_network_of_one_layer_whose_factory_prints(run, files):
    state = checkpoint.load_weights("trained.safetensors")
    checkpoint.save_weights({"weight": state["0.weight"], "bias": state["0.bias"]}, files / "one.safetensors")
    options = [files / "one.safetensors", "--factory", "small_networks:one", "--data", "inputs.npy"]
    assert "the network itself  Linear" in run("check", *options).out
    done = run("check", *options, "--json", "-")
    assert json.loads(done.out)["layers"][0]["name"] == ""
    assert "building" in done.err


@pytest.mark.parametrize("command", ["check", "recover", "defend"])
def test_json_stays_json_though_the_network_prints(run, files, command):
    options = ["trained.safetensors", "--factory", "small_networks:printing", "--data", "inputs.npy", "--json", "-"]
    if command == "recover":
        options += ["--initial-seed", "5", "-o", files / "out.safetensors"]
    if command == "defend":
        options += ["--strength", "0.1", "-o", files / "out.safetensors"]
    done = run(command, *options)
    assert done.code == 0, done.err
    assert isinstance(json.loads(done.out), dict)
    assert "running" in done.err


def test_tied_weights_may_be_in_the_file_once(run, files):
    state = {"0.weight": torch.eye(60), "2.weight": torch.ones(3, 60), "2.bias": torch.zeros(3)}
    checkpoint.save_weights(state, files / "tied.safetensors")
    done = run("check", files / "tied.safetensors", "--factory", "small_networks:tied", "--data", "inputs.npy")
    assert done.code == 0, done.err
    rows = [line.split()[:4] for line in done.out.splitlines()[1:3]]
    assert rows == [["0", "Linear", "60", "60"], ["2", "Linear", "3", "61"]]


def test_images_of_a_folder(run, files):
    (files / "images").mkdir()
    for number in range(3):
        pixels = np.random.default_rng(number).integers(0, 255, (10, 12, 3), np.uint8)
        Image.fromarray(pixels).save(files / "images" / f"{number}.png")
    checkpoint.save_weights(torch.nn.Conv2d(1, 4, 6).state_dict(), files / "conv.safetensors")
    done = run("check", files / "conv.safetensors", "--factory", "torch.nn:Conv2d", "--factory-args",
               '{"in_channels": 1, "out_channels": 4, "kernel_size": 6}', "--data", files / "images", "--size", "6x6",
               "--channels", "1", "--limit", "2", "--json", "-")  # fmt: skip
    assert json.loads(done.out)["layers"][0]["rows"] == 2, done.err


def test_contaminate_and_diff_agree(run, files):
    options = ["--law", "normal", "--set", "sd=0.5", "--share", "0.2", "--seed", "4", "--name", "0.weight"]
    done = run("contaminate", "trained.safetensors", "-o", files / "hit.safetensors", *options, "--json",
               files / "hit.json")  # fmt: skip
    assert done.code == 0, done.err
    record = json.loads((files / "hit.json").read_text())
    before, after = checkpoint.load_weights("trained.safetensors"), checkpoint.load_weights(files / "hit.safetensors")
    places = (before["0.weight"] != after["0.weight"]).reshape(-1).nonzero()[:, 0].tolist()
    assert record["tensors"]["0.weight"]["index"] == places
    assert record["tensors"]["0.weight"]["now"] == after["0.weight"].reshape(-1)[places].double().tolist()
    assert record["result"] == checkpoint.digest(after)
    done = run("diff", "trained.safetensors", files / "hit.safetensors")
    assert done.code == 1
    assert f"different: {len(places)} of the weights that both have, in 1 of 4 tensors" in done.out
    told = json.loads(run("diff", "trained.safetensors", files / "hit.safetensors", "--json", "-").out)
    assert told["tensors"][0]["changed"] == len(places)
    assert told["same"] is False


def test_erased_weights_are_recovered(run, files, common):
    run("contaminate", "trained.safetensors", "-o", files / "gone.safetensors", "--law", "erase", "--share", "0.1")
    assert purified(run, common, files, weights=files / "gone.safetensors").code == 1
    truth, found = (checkpoint.load_weights(path) for path in ("trained.safetensors", files / "out.safetensors"))
    for name, value in truth.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=0)


def test_diff_of_foreign_files(run, files):
    checkpoint.save_weights({"0.weight": torch.zeros(2), "0.bias": torch.zeros(40).double()}, files / "b.safetensors")
    done = run("diff", "trained.safetensors", files / "b.safetensors")
    assert done.code == 1
    for words in ("shape [40, 60] in A, [2] in B", "float32 in A, float64 in B", "only in A"):
        assert words in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(run, command):
    done = run(command, "--help")
    assert done.code == 0
    assert f"netpurify {command}" in " ".join(done.out.split())


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_installed_command_finds_factories_in_the_current_folder():
    """As an entry point starts it: the current folder is not on the path by itself."""
    script = "import sys; sys.path.pop(0); from netpurify.cli import main; main()"
    arguments = ["check", "trained.safetensors", "--factory", "small_networks:build", "--data", "inputs.npy"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "without initial weights nothing can be recovered" in done.stdout
