"""What was not examined is not called well: layers that could not be are named, and the exit code is 1."""

import json

import pytest
import torch
from torch import nn

from netpurify import checkpoint
from netpurify.cli.factory import find_factory
from netpurify.errors import InputError
from netpurify.network import Project, Recover, Seeded, check, purify

WEIGHTS = "trained.safetensors"


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.spare = nn.Linear(60, 3)

    def forward(self, inputs):
        return inputs


def save(factory, path):
    checkpoint.save_weights(Seeded(find_factory(factory), 5).build().state_dict(), path)


@pytest.fixture
def initial(files):
    """Writes initial weights with some left out or changed."""

    def write(without=(), **changed):
        state = {name: value for name, value in checkpoint.load_weights("initial.safetensors").items()
                 if name not in without}  # fmt: skip
        checkpoint.save_weights(state | changed, files / "base.safetensors")
        return files / "base.safetensors"

    return write


@pytest.mark.parametrize("policy", ["recover", "project"])
@pytest.mark.parametrize("how", ["left out", "another shape"])
def test_a_layer_without_initial_weights_that_fit_is_a_finding(run, files, common, initial, policy, how):
    base = initial(["0.bias"]) if how == "left out" else initial(**{"0.bias": torch.zeros(39)})
    done = run(policy, WEIGHTS, *common, "--initial", base, "-o", files / "out.safetensors")
    assert done.code == 1, (done.out, done.err)
    assert 'layers that could not be examined, so that nothing is known about them: "0"' in done.out
    assert "other module" not in done.out
    assert (files / "out.safetensors").exists()
    record = run(policy, WEIGHTS, *common, "--initial", base, "-o", files / "o.safetensors",
                 "--json", "-", "--sarif", files / "log.sarif")  # fmt: skip
    assert record.code == 1
    (log,) = json.loads((files / "log.sarif").read_text())["runs"]
    assert [one["level"] for one in log["invocations"][0]["toolExecutionNotifications"]] == ["warning"]
    assert [part["missed"] for part in json.loads(record.out)["skipped"]] == [True]


def test_a_layer_that_was_not_asked_for_is_no_finding(run, files, common, initial):
    done = run("recover", WEIGHTS, *common, "--initial", initial(["0.bias"]), "--layer", "2", "-o",
               files / "out.safetensors")  # fmt: skip
    assert done.code == 0, done.out
    assert "○ 1 module not examined" in done.out


def changed_everywhere(factory, path, *names):
    """The initial weights, with some tensors changed in every entry, as training changes them."""
    state = Seeded(find_factory(factory), 5).build().state_dict()
    noise = torch.Generator().manual_seed(0)
    checkpoint.save_weights(
        {name: value + 0.01 * torch.randn(value.shape, generator=noise) if name in names else value
         for name, value in state.items()}, path)  # fmt: skip


@pytest.mark.parametrize(("kind", "changed", "code", "told"), [
    ("Normed", (), 0, "✓ Nothing was altered in 2,725 weights examined"),
    ("Spare", (), 0, "✓ Nothing was altered in 2,725 weights examined"),
    ("Spare", ("last.weight", "last.bias"), 1, 'nothing is known about them: "last"'),
])  # fmt: skip
def test_what_has_its_initial_bits_is_no_finding_and_a_changed_layer_that_no_input_reaches_is(
    run, files, kind, changed, code, told
):
    changed_everywhere(f"small_networks:{kind}", files / "weights.safetensors", *changed)
    done = run("recover", files / "weights.safetensors", "--factory", f"small_networks:{kind}", "--data", "inputs.npy",
               "--initial-seed", "5", "-o", files / "out.safetensors")  # fmt: skip
    assert done.code == code, done.out
    assert told in done.out


def test_a_kind_that_is_never_examined_is_a_finding_if_it_was_asked_for(run, files):
    save("small_networks:Normed", files / "weights.safetensors")
    done = run("recover", files / "weights.safetensors", "--factory", "small_networks:Normed", "--data", "inputs.npy",
               "--initial-seed", "5", "--layer", "first", "--layer", "norm", "-o",
               files / "out.safetensors")  # fmt: skip
    assert done.code == 1, done.out
    assert 'nothing is known about them: "norm"' in done.out


def test_a_parametrised_weight_is_a_finding(run, files):
    changed_everywhere(
        "small_networks:normed_weights", files / "weights.safetensors", "0.parametrizations.weight.original1"
    )
    done = run("recover", files / "weights.safetensors", "--factory", "small_networks:normed_weights", "--data",
               "inputs.npy", "--initial-seed", "5", "-o", files / "out.safetensors")  # fmt: skip
    assert done.code == 1, done.out
    assert 'nothing is known about them: "0.parametrizations.weight"' in done.out


def test_a_layer_that_could_not_be_defended_is_a_finding(run, files):
    save("small_networks:Spare", files / "weights.safetensors")
    done = run("defend", files / "weights.safetensors", "--factory", "small_networks:Spare", "--data", "inputs.npy",
               "--strength", "0.1", "-o", files / "out.safetensors")  # fmt: skip
    assert done.code == 1, done.err
    assert 'layers that could not be defended and are as they were: "last"' in done.out


def test_check_of_nothing_is_not_well(run, files, common):
    checkpoint.save_weights({"weight": torch.ones(3)}, files / "norm.safetensors")
    done = run("check", files / "norm.safetensors", "--factory", "small_networks:scaling", *common[2:])
    assert done.code == 1, (done.out, done.err)
    assert "no layer can be examined" in done.out


def test_check_names_what_it_cannot_examine(run, common, initial):
    done = run("check", WEIGHTS, *common, "--initial", initial(["0.bias"]))
    assert done.code == 1, done.err
    assert "1 of 1 layer can be recovered exactly" in done.out
    assert 'layers that cannot be examined: "0"' in done.out


def gated(files, **changed):
    """The initial weights of a network with parts of kinds that are not examined, and some of them changed."""
    state = Seeded(find_factory("small_networks:Gated"), 5).build().state_dict()
    checkpoint.save_weights(state, files / "before.safetensors")
    state |= {name: torch.as_tensor(value) for name, value in changed.items()}
    checkpoint.save_weights(state, files / "weights.safetensors")
    return [files / "weights.safetensors", "--factory", "small_networks:Gated", "--data", "inputs.npy"]


CHANGED = {
    "a parameter of the network itself": ({"gate": torch.full((40,), 2.0)}, "the network itself"),
    "the sign of a zero": ({"norm.running_mean": torch.full((40,), -0.0)}, '"norm"'),
    "a count alone": ({"norm.num_batches_tracked": 3}, '"norm"'),
    "two parts": ({"gate": torch.zeros(40), "norm.running_var": torch.zeros(40)}, 'the network itself, "norm"'),
}


@pytest.mark.parametrize(("changed", "names"), CHANGED.values(), ids=CHANGED.keys())
def test_a_part_that_is_not_examined_and_is_not_as_it_was_is_a_finding(run, files, changed, names):
    given = [*gated(files, **changed), "--initial", files / "before.safetensors"]
    done = run("recover", *given, "-o", files / "out.safetensors", "--quiet")
    assert done.code == 1, done.out
    told = f"or have none, so that they may have been trained, or altered: {names}"
    assert told in done.out
    planned = run("check", *given)
    assert planned.code == 1, planned.out
    assert told in planned.out


def test_parts_that_are_not_examined_and_have_their_initial_bits_are_no_finding(run, files):
    given = gated(files)
    for start in (["--initial", files / "before.safetensors"], ["--initial-seed", "5"]):
        done = run("recover", *given, *start, "-o", files / "out.safetensors", "--force")
        assert done.code == 0, done.out
        assert "✓ Nothing was altered in " in done.out
        assert run("check", *given, *start).code == 0


def test_a_part_without_initial_weights_is_a_finding(run, files):
    given = gated(files)
    state = checkpoint.load_weights(files / "before.safetensors")
    del state["norm.running_var"]
    checkpoint.save_weights(state, files / "base.safetensors")
    done = run(
        "recover", *given, "--initial", files / "base.safetensors", "-o", files / "out.safetensors", "--json", "-"
    )
    assert done.code == 1
    assert 'so that they may have been trained, or altered: "norm"' in json.loads(done.out)["verdict"]
    (part,) = [part for part in json.loads(done.out)["skipped"] if part["missed"]]
    assert (part["name"], part["kind"]) == ("norm", "BatchNorm1d")
    assert part["reason"].startswith("it has no initial norm.running_var, and is of a kind that is not examined")


def test_the_library_refuses_what_the_command_line_refuses():
    inputs, model = torch.randn(4, 60), nn.Sequential(nn.Linear(60, 5))
    odd = nn.Sequential(nn.Linear(60, 5, device="meta"))
    with pytest.raises(InputError, match=r"plain tensors with values; its weights are on the meta device"):
        purify(odd, inputs, policy=Recover(model))
    with pytest.raises(InputError, match=r"none is; spare \(Linear\): the clean inputs never reach it"):
        purify(Unused(), inputs, policy=Recover(Unused()))
    same = Unused()
    assert purify(same, inputs, policy=Recover(same)).coverage.examined == 183  # compared, and all bits are there
    with pytest.raises(InputError, match="none is; it has no weights"):
        purify(nn.ReLU(), inputs, policy=Project())
    assert check(nn.ReLU(), inputs).layers == ()


def test_a_proof_of_nothing_is_not_sound(run, files):
    digest = checkpoint.digest(checkpoint.load_weights(WEIGHTS))
    about = {"version": 1, "policy": "project", "decays": {}, "noise_floor": None, "blocks": [],
             "digests": {"contaminated": digest, "purified": digest, "initial": None, "data": None}}  # fmt: skip
    checkpoint.save_weights({"none": torch.zeros(1)}, files / "proof.safetensors",
                            metadata={"netpurify.proof": json.dumps(about)})  # fmt: skip
    done = run("verify", files / "proof.safetensors", "--contaminated", WEIGHTS, "--purified", WEIGHTS)
    assert done.code == 1, done.err
    assert "proves nothing" in done.err


def test_an_lstm_with_a_changed_bias_is_examined_and_not_called_well(run, files):
    given = gated(files, **{"cell.bias_hh_l0": torch.ones(160)})
    initial = files / "before.safetensors"
    done = run("recover", *given, "--initial", initial, "-o", files / "out.safetensors", "--quiet")
    assert done.code == 1
    assert "160 of 365 units could not be judged" in done.out
