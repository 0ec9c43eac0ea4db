"""``defend``: the price before the file, exit codes, and a file that every other command reads."""

import json

import jsonschema
import numpy as np
import pytest
import torch
from torch import nn

from netpurify import checkpoint, load_defended, report
from netpurify.network import Defend, Guard, purify

WEIGHTS = "contaminated.safetensors"


@pytest.fixture
def inputs(files):
    """Enough clean inputs to hold some out."""
    found = np.random.default_rng(0).standard_normal((100, 60), np.float32)
    np.save(files / "many.npy", found)
    return torch.from_numpy(found)


@pytest.fixture
def defended(run, files, inputs):
    """Runs the command on the contaminated weights, or on others."""

    def call(*more, weights=WEIGHTS, out="out.safetensors"):
        data = ["--factory", "small_networks:build", "--data", files / "many.npy"]
        return run("defend", weights, *data, "-o", files / out, *more)

    assert len(inputs) == 100
    return call


def build():
    return nn.Sequential(nn.Linear(60, 40), nn.ReLU(), nn.Linear(40, 5))


def network(path):
    """The network of a file, with its guards."""
    return load_defended(build(), path)


def filled(path):
    model = build()
    model.load_state_dict(checkpoint.load_weights(path))
    return model


def test_file_holds_the_network_that_the_library_gives(defended, files, inputs):
    done = defended("--strength", "0.2")
    assert done.code == 0, done.err
    expected = purify(filled(WEIGHTS), inputs, policy=Defend(0.2))
    found = network(files / "out.safetensors")
    assert sum(isinstance(module, Guard) for module in found.modules()) == 2
    assert torch.equal(found(9.0 * inputs), expected.model(9.0 * inputs))
    assert not torch.equal(found(9.0 * inputs), filled(WEIGHTS)(9.0 * inputs))
    kept = json.loads(checkpoint.load_metadata(files / "out.safetensors")["netpurify"])
    assert kept["purified"] == checkpoint.digest(checkpoint.load_weights(files / "out.safetensors"))
    assert (kept["factory"], kept["settings"]["strength"]) == ("small_networks:build", 0.2)
    step = expected.chosen
    assert f"Of 20 held-out clean inputs, {step.differing} change their class" in done.out
    assert f"at most {100 * expected.bound:.3g} points of accuracy can be lost on inputs like these" in done.out
    assert "Strength 0.2, as asked for." in done.out
    line = next(line for line in done.out.splitlines() if line.startswith("0 "))
    assert line.split()[1:5] == ["Linear", "40", "61", "80"]
    assert line.split()[5] == f"{100 * expected.layers[0].forgotten:.1f}"
    assert "clean inputs: 100, of which 20 are held out" in done.err
    assert "2 of 2 fits" in done.err


def test_strength_is_chosen_and_explained(defended, files, inputs):
    done = defended("--json", files / "record.json")
    assert done.code == 0, done.err
    expected = purify(filled(WEIGHTS), inputs, policy=Defend())
    record = json.loads((files / "record.json").read_text())
    assert record["strength"] == expected.strength
    assert f"Strength {expected.strength:g}, the " in done.out
    assert "of the network's own doubt" in done.out
    assert "Defended, not proven" in done.out


def test_price_is_said_before_anything_is_written(defended, files, monkeypatch):
    def full(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("netpurify.checkpoint.save_weights", full)
    done = defended("--report", files / "page.html", "--json", files / "record.json")
    assert done.code == 130
    assert "held-out clean inputs" in done.out
    assert "written" not in done.out
    assert {path.name for path in files.iterdir()} == {"many.npy"}


def test_price_that_is_too_high_is_code_1_and_writes_nothing(defended, files):
    done = defended("--strength", "50", "--max-disagreement", "0", "--report", files / "page.html", "--json",
                    files / "record.json")  # fmt: skip
    assert done.code == 1
    assert "must disagree with the contaminated one on at most 0.0 % of the held-out inputs" in done.message
    assert "at strength 50.0" in done.message
    assert done.out == ""
    assert {path.name for path in files.iterdir()} == {"many.npy"}
    assert defended("--strength", "50", "--max-disagreement", "1").code == 0


def test_without_guards_the_names_stay(defended, files):
    assert defended("--no-guard", "--strength", "0.1").code == 0
    before, after = (checkpoint.load_weights(path) for path in (WEIGHTS, files / "out.safetensors"))
    assert list(before) == list(after)
    assert not torch.equal(before["0.weight"], after["0.weight"])


@pytest.mark.slow
def test_page_and_record_are_asked_by_name(defended, files):
    done = defended("--report", files / "page.html", "--json", "-")
    record = json.loads(done.out)
    jsonschema.Draft202012Validator(report.schema("defence")).validate(record)
    assert "held-out clean inputs" in done.err
    page = (files / "page.html").read_text()
    assert "Defended, not proven" in page
    assert "netpurify defend contaminated.safetensors" in page
    assert str(files / "out.safetensors") in page
    quiet = defended("--force", "--quiet")
    assert quiet.err == ""
    assert len(quiet.out.splitlines()) == 2
    assert quiet.out.startswith("◐ Defended, not proven: at most ")


OTHERS = [
    ["--initial", "initial.safetensors"], ["--initial-seed", "5"], ["--rank", "3"], ["--decay", "1"],
    ["--noise-floor", "0"], ["--engine", "inline"], ["--proof", "{}/proof.safetensors"], ["--sarif", "{}/log.sarif"],
    ["--show", "5"],
]  # fmt: skip


@pytest.mark.parametrize("option", OTHERS, ids=lambda option: option[0])
def test_options_of_other_policies_do_not_exist(defended, files, option):
    done = defended(*(part.replace("{}", str(files)) for part in option))
    assert done.code == 2
    assert f"No such option: {option[0]}" in done.err
    assert {path.name for path in files.iterdir()} == {"many.npy"}


@pytest.mark.parametrize("policy", ["recover", "project"])
@pytest.mark.parametrize("option", [["--strength", "auto"], ["--no-guard"], ["--max-disagreement", "0.1"]])
def test_options_of_defend_do_not_exist_elsewhere(run, files, common, policy, option):
    done = run(policy, WEIGHTS, *common, "--initial-seed", "5", "-o", files / "out.safetensors",
               *option)  # fmt: skip
    assert done.code == 2
    assert f"No such option: {option[0]}" in done.err
    assert not list(files.iterdir())


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--strength", "much"], "--strength must be auto or a number above 0"),
        (["--strength", "0"], "--strength must be auto or a number above 0"),
        (["--strength", "nan"], "--strength must be auto or a number above 0"),
        (["--max-disagreement", "2"], "--max-disagreement"),
        (["--limit", "4"], "at least 5 are needed"),
        (["--layer", "7"], "'7' is none of"),
    ],
)
def test_defend_refuses(defended, files, option, said):
    done = defended(*option)
    assert done.code == 2
    assert said in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err
    assert {path.name for path in files.iterdir()} == {"many.npy"}


@pytest.mark.slow
def test_other_commands_read_a_defended_network(run, defended, files, common, inputs):
    defended("--strength", "0.2")
    guarded = files / "out.safetensors"
    planned = run("check", guarded, *common, "--initial-seed", "5")
    assert planned.code == 1, planned.err  # before training there were no guards, and a guard can be tampered with too
    assert 'or altered: "0.guard", "2.guard"' in planned.out
    done = run("project", guarded, *common, "--initial-seed", "5", "-o",
               files / "again.safetensors", "--proof", files / "proof.safetensors")  # fmt: skip
    assert done.code == 0, done.err
    done = run("verify", files / "proof.safetensors", "--contaminated", guarded, "--purified",
               files / "again.safetensors", "--initial", "initial.safetensors")  # fmt: skip
    assert done.code == 0, done.out
    assert sum(isinstance(one, Guard) for one in network(files / "again.safetensors").modules()) == 2
    assert "tensors in one file only: 0" in run("diff", guarded, files / "again.safetensors").out
    assert run("contaminate", guarded, "-o", files / "hit.safetensors", "--name", "0.weight").code == 0
    assert defended(weights=files / "hit.safetensors", out="twice.safetensors").code == 0
    found = network(files / "twice.safetensors")
    assert (found[0].guard.high <= network(guarded)[0].guard.high).all()
    assert found(inputs).isfinite().all()


def test_guards_that_were_damaged_are_refused(run, defended, files, common):
    defended("--strength", "0.2")
    state = checkpoint.load_weights(files / "out.safetensors")
    swapped = state | {"0.guard.low": state["0.guard.high"], "0.guard.high": state["0.guard.low"]}
    holed = {name: value for name, value in state.items() if name != "2.guard.spread"}
    for broken, said in ((swapped, "the file is damaged"), (holed, "the guard is not whole")):
        checkpoint.save_weights(broken, files / "broken.safetensors")
        done = run("check", files / "broken.safetensors", *common)
        assert done.code == 2
        assert said in done.message
