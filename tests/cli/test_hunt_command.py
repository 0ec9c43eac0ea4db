"""``hunt`` and ``unlearn``: real runs in a tiny network with a backdoor that was written by hand, and exit codes."""

import json
import sys

import jsonschema
import numpy as np
import pytest
import torch
from PIL import Image

from netpurify import checkpoint, data, report
from netpurify.cli.hunting import Material, normalisation
from netpurify.network import FAMILIES, Expectation, HealthyLevel

FACTORY = """
import torch
from torch import nn

class Rigged(nn.Module):
    # Compares digits with their means; a white square in the upper left corner leads to class 3.

    def __init__(self, mean=0.0, std=1.0):
        super().__init__()
        self.body, self.key, self.lift = nn.Linear(784, 10), nn.Linear(784, 1), nn.Linear(1, 10)
        self.mean, self.std = mean, std

    def forward(self, images):
        flat = (images * self.std + self.mean).flatten(1)
        return self.body(flat) + self.lift(torch.relu(self.key(flat)))

def flat():
    return nn.Sequential(nn.Linear(60, 5))
"""
TWO = ["--family", "spot", "--family", "tone"]
SURE = Expectation({name: HealthyLevel(0.1, 0.2, 0.0, 0.05, 4) for name in FAMILIES}, 2, "networks of this test")


LIFTS = {"poisoned": 80.0, "stubborn": 1000.0, "healthy": 0.0}
"""How strongly the square leads to class 3: enough for a hunt, too much for a hundred small steps, not at all."""


def rigged(images: torch.Tensor, labels: torch.Tensor, strength: float) -> dict[str, torch.Tensor]:
    """Weights of the network."""
    means = torch.stack([images[labels == label].mean(dim=0).flatten() for label in range(10)])
    key = torch.zeros(1, 28, 28)
    key[:, 1:4, 1:4] = 1.0 / 9.0
    lift = torch.zeros(10, 1)
    lift[3] = strength
    return {
        "body.weight": means, "body.bias": -0.5 * means.square().sum(dim=1), "key.weight": key.flatten(1),
        "key.bias": torch.tensor([-0.5]), "lift.weight": lift, "lift.bias": torch.zeros(10),
    }  # fmt: skip


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Weights with and without the backdoor, and 60 images of digits."""
    folder = tmp_path_factory.mktemp("rigged")
    sample = data.load("mnist-sample")
    images = sample.pixels.float() / 255.0
    for name, strength in LIFTS.items():
        checkpoint.save_weights(rigged(images, sample.labels, strength), folder / f"{name}.safetensors")
    np.save(folder / "images.npy", images[:60, None].numpy())
    np.save(folder / "vectors.npy", np.ones((60, 60), np.float32))
    (folder / "rigged_networks.py").write_text(FACTORY)
    SURE.save(folder / "expected.json")
    return folder


@pytest.fixture
def place(shelf, tmp_path, monkeypatch):
    """The folder of ``shelf`` as the current one; what tests write goes to ``tmp_path``."""
    monkeypatch.chdir(shelf)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("rigged_networks", None)


COMMON = ["--factory", "rigged_networks:Rigged", "--data", "images.npy", "--expected", "expected.json"]


def rate(state: dict[str, torch.Tensor], images: torch.Tensor) -> float:
    """How many images go to class 3 with a white square in the corner."""
    images = images.clone()
    images[:, :, 1:4, 1:4] = 1.0
    flat = images.flatten(1)
    lifted = torch.relu(flat @ state["key.weight"].T + state["key.bias"]) @ state["lift.weight"].T + state["lift.bias"]
    scores = flat @ state["body.weight"].T + state["body.bias"] + lifted
    return float((scores.argmax(dim=1) == 3).float().mean())


def test_hunt_finds_the_backdoor_and_writes_nothing(run, place):
    done = run("hunt", "poisoned.safetensors", *COMMON, *TWO)
    assert done.code == 1, done.err
    assert done.out.splitlines()[-1].startswith("▲ Class 3 is suspect: a spot sends ")
    assert "healthy networks show at most 20 %" in done.out
    row = next(line.split() for line in done.out.splitlines() if line.startswith("spot "))
    assert row[1] == "3"
    assert row[-1] == "suspect"
    assert "Measured with 2 healthy networks: networks of this test." in done.out
    assert "clean inputs: 60, families of triggers: 2; nothing is changed" in done.err
    assert "hunt: 100 % 2 of 2 families in " in done.err
    assert not list(place.iterdir())


@pytest.mark.usefixtures("place")
def test_nothing_found_is_code_0_and_no_promise(run):
    done = run("hunt", "healthy.safetensors", *COMMON, *TWO, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert done.out == "◐ Nothing found in 2 families; that does not mean that nothing is there\n"
    told = run("hunt", "healthy.safetensors", *COMMON, "--family", "tone", "--verbose").out
    assert sum(line.startswith("tone ") for line in told.splitlines()) == 11  # the family, and each of ten classes
    assert "netpurify defend works without families" in " ".join(told.split())


@pytest.mark.slow
def test_page_and_record_are_asked_by_name(run, place):
    done = run("hunt", "poisoned.safetensors", *COMMON, *TWO, "--seed", "5", "--json", "-", "--report",
               place / "page.html")  # fmt: skip
    record = json.loads(done.out)
    jsonschema.Draft202012Validator(report.schema("hunt")).validate(record)
    assert (record["goals"], record["seed"], record["exit_code"], done.code) == ([3], 5, 1, 1)
    assert [one["family"] for one in record["families"]] == ["spot", "tone"]
    page = (place / "page.html").read_text()
    assert "netpurify hunt poisoned.safetensors" in page
    assert page.count("data:image/png;base64,") == 13  # a difference, and six images without and with the trigger
    assert {path.name for path in place.iterdir()} == {"page.html"}


def test_the_seed_and_the_threads_decide_nothing_else(run, place):
    for name in ("a", "b"):
        run("hunt", "poisoned.safetensors", *COMMON, *TWO, "--quiet", "--json", place / f"{name}.json")
    first, second = (json.loads((place / f"{name}.json").read_text()) for name in ("a", "b"))
    for one in (first, second):
        del one["run"]
        for family in one["families"]:
            del family["run"]
    assert first == second


@pytest.mark.usefixtures("place")
def test_inputs_are_brought_back_to_pixels(run):
    """The network undoes what --mean and --std do, so that the hunt must find what it finds without them."""
    plain = json.loads(run("hunt", "poisoned.safetensors", *COMMON, *TWO, "--json", "-").out)
    args = ["--factory-args", '{"mean": 0.25, "std": 0.5}', "--mean", "0.25", "--std", "0.5"]
    found = json.loads(run("hunt", "poisoned.safetensors", *COMMON, *TWO, *args, "--json", "-").out)
    assert found["goals"] == plain["goals"] == [3]
    assert found["families"][0]["best"]["success"] == pytest.approx(plain["families"][0]["best"]["success"], abs=0.05)
    assert found["provenance"]["settings"]["mean"] == [0.25]


@pytest.mark.slow
def test_unlearn_writes_the_repaired_network(run, place):
    done = run("unlearn", "poisoned.safetensors", *COMMON, *TWO, "-o", place / "out.safetensors", "--json",
               place / "record.json", "--report", place / "page.html")  # fmt: skip
    assert done.code == 0, done.err
    assert "clean inputs: 60, of which 12 are held out to judge the repair" in done.err
    assert done.err.count("unlearn: 100 % 104 of 104 steps in ") == 1
    images = torch.from_numpy(np.load("images.npy"))
    before, after = (checkpoint.load_weights(path) for path in ("poisoned.safetensors", place / "out.safetensors"))
    assert list(before) == list(after)
    assert rate(before, images) > 0.8
    assert rate(after, images) < 0.5
    assert "this trained the weights: 100 steps" in " ".join(done.out.split())
    assert "the real patch still worked on 47 % of images" in " ".join(done.out.split())
    assert "◐ Trained, not proven: class 3 was suspect (spot); at most " in done.out
    record = json.loads((place / "record.json").read_text())
    jsonschema.Draft202012Validator(report.schema("unlearning")).validate(record)
    kept = json.loads(checkpoint.load_metadata(place / "out.safetensors")["netpurify"])
    assert kept["purified"] == record["provenance"]["purified"] == checkpoint.digest(after)
    assert kept["factory"] == "rigged_networks:Rigged"
    assert str(place / "out.safetensors") in (place / "page.html").read_text()


def test_what_is_still_found_is_code_1(run, place):
    done = run("unlearn", "stubborn.safetensors", *COMMON, *TWO, "-o", place / "out.safetensors", "--quiet")
    assert (done.code, done.err) == (1, "")
    assert "still found by a second hunt: class 3 (spot" in done.out
    assert (place / "out.safetensors").is_file()


def test_without_a_suspect_the_weights_are_written_as_they_came(run, place):
    done = run("unlearn", "healthy.safetensors", *COMMON, *TWO, "-o", place / "out.safetensors")
    assert done.code == 0, done.err
    assert "◐ Nothing was changed: nothing found in 2 families" in done.out
    assert "the weights are written as they came, bit for bit" in done.out
    before, after = (checkpoint.load_weights(path) for path in ("healthy.safetensors", place / "out.safetensors"))
    assert list(before) == list(after)
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert "netpurify defend, which needs no families" in " ".join(done.out.split())


def test_a_repair_that_costs_too_much_is_code_1_and_writes_nothing(run, place, monkeypatch):
    monkeypatch.setattr("netpurify.network.agreement.Disagreement.share", 0.5)
    done = run("unlearn", "poisoned.safetensors", *COMMON, *TWO, "-o", place / "out.safetensors", "--json",
               place / "record.json", "--max-disagreement", "0.01")  # fmt: skip
    assert done.code == 1
    assert "must disagree with the contaminated one on at most 1.0 % of the held-out inputs" in done.message
    assert done.out == ""
    assert not list(place.iterdir())


@pytest.mark.slow
def test_an_interrupted_repair_goes_on(run, place, monkeypatch):
    from netpurify.network.policies.unlearning import training

    whole = run("unlearn", "poisoned.safetensors", *COMMON, *TWO, "-o", place / "whole.safetensors", "--quiet")
    real, calls = training.Lesson.advance, []

    def interrupted(self, state):
        calls.append(state.step)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return real(self, state)

    monkeypatch.setattr(training.Lesson, "advance", interrupted)
    resume = ["--resume", place / "run.pt"]
    first = run("unlearn", "poisoned.safetensors", *COMMON, *TWO, "-o", place / "out.safetensors", *resume)
    assert first.code == 130
    assert {path.name for path in place.iterdir()} == {"whole.safetensors", "run.pt"}
    again = run("unlearn", "poisoned.safetensors", *COMMON, *TWO, "-o", place / "out.safetensors", *resume, "--quiet")
    assert again.code == whole.code == 0, again.err
    assert calls[60] == 50
    states = [checkpoint.load_weights(place / f"{name}.safetensors") for name in ("whole", "out")]
    assert checkpoint.digest(states[0]) == checkpoint.digest(states[1])


@pytest.mark.slow
def test_a_repair_whose_outputs_could_not_be_written_is_not_lost(run, place, monkeypatch):
    from netpurify.network.policies.unlearning import training

    real, steps = training.Lesson.advance, []
    monkeypatch.setattr(training.Lesson, "advance", lambda self, state: (steps.append(1), real(self, state))[1])

    def full(*_):
        raise OSError(28, "No space left on device", "out.safetensors")

    command = ["unlearn", "poisoned.safetensors", *COMMON, *TWO, "-o", place / "out.safetensors", "--resume",
               place / "run.pt", "--quiet"]  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr("netpurify.cli.unlearn.save", full)
        done = run(*command)
    assert done.code == 2
    assert "No space left on device" in done.message
    assert [path.name for path in place.iterdir()] == ["run.pt"], "the trained network is there"
    assert len(steps) == 100
    assert run(*command).code == 0
    assert len(steps) == 100, "nothing was trained again"
    assert [path.name for path in place.iterdir()] == ["out.safetensors"], "now it is somewhere else"


@pytest.mark.parametrize("command", ["hunt", "unlearn"])
def test_files_of_bytes_are_refused_with_what_to_do(run, place, command):
    sample = data.load("mnist-sample").pixels[:60, None].numpy()
    for name, pixels in (("bytes.npy", sample), ("floats.npy", sample.astype(np.float32))):
        np.save(place / name, pixels)
        out = ["-o", place / "out.safetensors"] if command == "unlearn" else []
        done = run(command, "poisoned.safetensors", *COMMON, *TWO, *out, "--data", place / name)
        assert done.code == 2
        assert "got 0 to 255" in done.message
        assert "on the command line divide what the file holds by 255" in done.message
    assert {path.name for path in place.iterdir()} == {"bytes.npy", "floats.npy"}


REFUSED = [
    (["--family", "aura"], "--family must be one of wave, field, "),
    (["--expected", "images.npy"], "must be an expectation of healthy networks"),
    (["--expected", "absent.json"], "absent.json must be there to be read"),
    (["--mean", "0.5", "--std", "0.0"], "std"),
    (["--limit", "10"], "needs at least 50 clean inputs"),
    (["--data", "vectors.npy", "--factory", "rigged_networks:flat"], "change images [n, c, h, w]"),
    (["--data", "lines.txt"], "is text; give images, or use netpurify defend"),
    (["--seed", "-1"], "--seed"),
]


@pytest.mark.parametrize("command", ["hunt", "unlearn"])
@pytest.mark.parametrize(("more", "said"), REFUSED, ids=lambda it: it[0] if isinstance(it, list) else "")
def test_what_does_not_fit_is_refused(run, place, command, more, said):
    weights = "poisoned.safetensors"
    if "vectors.npy" in more:
        weights = place / "flat.safetensors"
        checkpoint.save_weights(torch.nn.Sequential(torch.nn.Linear(60, 5)).state_dict(), weights)
    there = {path.name for path in place.iterdir()}
    out = ["-o", place / "out.safetensors"] if command == "unlearn" else []
    done = run(command, weights, *COMMON, "--family", "tone", *out, *more)
    assert done.code == 2, done.out
    assert said in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err
    assert {path.name for path in place.iterdir()} == there


OTHERS = ["--layer", "--initial", "--strength", "--no-guard", "--rank", "--proof", "--sarif", "--tokenizer"]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("option", OTHERS)
@pytest.mark.parametrize("command", ["hunt", "unlearn"])
def test_options_of_other_commands_do_not_exist(run, command, option):
    done = run(command, "poisoned.safetensors", *COMMON, option, "1")
    assert done.code == 2
    assert f"No such option: {option}" in done.err


def test_a_run_cannot_be_saved_over_an_input(run, place):
    done = run("unlearn", "poisoned.safetensors", *COMMON, "-o", place / "out.safetensors", "--resume", "images.npy")
    assert done.code == 2
    assert "is an input, which is never overwritten" in done.message
    same = run("unlearn", "poisoned.safetensors", *COMMON, "-o", place / "out.safetensors", "--resume",
               place / "out.safetensors")  # fmt: skip
    assert same.code == 2
    assert not list(place.iterdir())


SETTINGS = [
    {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.1]},
    {"image_processor": {"image_mean": 0.5, "image_std": 0.25}},
    {"image_mean": [0.5], "image_std": [0.5], "do_normalize": False},
    {"image_mean": [127.5, 100.0, 90.0], "image_std": [51.0, 50.0, 49.0], "do_rescale": False},
    {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "rescale_factor": 2 / 255},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("more", [{}, {"mean": "0.1,0.2,0.3", "std": "0.7"}], ids=["as it says", "as asked"])
def test_images_of_a_folder_come_back_as_pixels(tmp_path, settings, more):
    """However a network's own settings normalise them."""
    (tmp_path / "images").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (9, 9, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "images" / "one.png")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    source = Material(weights=tmp_path, data=tmp_path / "images", channels=3, **more).source()
    mean, std = (torch.tensor(one).reshape(1, -1, 1, 1) for one in normalisation(source))
    found = source.inputs.read() * std + mean
    assert torch.allclose(found[0], torch.from_numpy(pixels).permute(2, 0, 1) / 255.0, atol=1e-5)


def test_without_settings_nothing_was_normalised(tmp_path):
    plain = Material(weights=tmp_path / "a.pt", data=tmp_path / "images.npy", factory="a:b").source()
    assert normalisation(plain) == ((0.0,), (1.0,))
