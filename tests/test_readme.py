"""The examples of the README and of the guides do what they say."""

import ast
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from netpurify import checkpoint
from netpurify.experiments import demo

README = Path(__file__).parents[1] / "README.md"


def examples():
    found = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert max(len(example.strip().splitlines()) for example in found) <= 10
    return found


@pytest.mark.slow
def test_example_recovers_everything(capsys):
    example, *_ = examples()
    exec(compile(example, str(README), "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert float(first.split()[0]) < 1e-12
    assert first.endswith("True")
    assert second == "1000 of 1000 columns recovered, with proof"


@pytest.mark.slow
def test_own_network_is_recovered_and_defended(capsys, tmp_path, monkeypatch, once):
    story = once("recovery of the demo", demo.recovery)
    folder = tmp_path / "netpurify-demo"
    folder.mkdir()
    checkpoint.save_weights(story.contaminated.state_dict(), folder / "contaminated.safetensors")
    np.save(folder / "inputs.npy", story.inputs.numpy())
    monkeypatch.chdir(tmp_path)
    _, *both = examples()
    names = {}
    for example in both:  # the second goes on where the first ends
        exec(compile(example, str(README), "exec"), names)
    first, second, *price = capsys.readouterr().out.splitlines()
    assert ast.literal_eval(first) == ("0",)  # the other layer is seen through altered weights: perhaps
    hit = sum(int(mask.sum()) for mask in story.hit.values())
    assert second == f"{hit} altered weights; proof sound: True"
    assert price == [f"{names['defence'].chosen.differing} of 5 change their class, bound {names['defence'].bound}"]
    assert 0.0 < names["defence"].bound < 1.0
    assert torch.equal(names["again"](9 * story.inputs), names["defence"].model(9 * story.inputs))


@pytest.mark.slow
def test_a_backdoor_of_the_example_no_longer_opens():
    example = runpy.run_path(str(README.parent / "examples" / "backdoor.py"))
    found = example["trial"](example["TRIGGERS"]["patch"])
    assert found.same
    assert found.before.asr > 0.95
    assert found.after.asr < 0.1
    assert found.after.accuracy > found.before.accuracy - 0.02
    assert found.defence.chosen.inputs == 100


def test_the_papers_example_recovers_both_layers(capsys):
    guide = README.parent / "docs" / "paper.md"
    (example,) = re.findall(r"```python\n(.*?)```", guide.read_text(), flags=re.DOTALL)
    exec(compile(example, str(guide), "exec"), {})
    errors = ast.literal_eval(capsys.readouterr().out)
    assert errors.keys() == {"hidden.0", "output"}
    assert max(errors.values()) < 1e-12


def test_commands_exist():
    targets = set(re.findall(r"^([a-z-]+):", (README.parent / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"^make ([a-z-]+)", README.read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets
    guide = (README.parent / "CONTRIBUTING.md").read_text()
    assert {"test", "test-fast", "test-all"} <= set(re.findall(r"`make ([a-z-]+)`", guide)) <= targets
