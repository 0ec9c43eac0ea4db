"""The demo, and the other commands on the files that it leaves behind, as their help shows them."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from netpurify import checkpoint

GUIDE = Path(__file__).parents[2] / "docs" / "cli.md"
README = Path(__file__).parents[2] / "README.md"

COMMANDS = {
    "check": ["check", "netpurify-demo/contaminated.safetensors", "--factory", "netpurify.experiments.demo:network",
              "--initial-seed", "0", "--data", "netpurify-demo/inputs.npy"],
    "recover": ["recover", "netpurify-demo/contaminated.safetensors", "--factory", "netpurify.experiments.demo:network",
               "--initial-seed", "0", "--data", "netpurify-demo/inputs.npy", "-o", "purified.safetensors", "--proof",
               "proof.safetensors"],
    "verify": ["verify", "netpurify-demo/proof.safetensors", "--contaminated",
               "netpurify-demo/contaminated.safetensors", "--purified", "netpurify-demo/purified.safetensors",
               "--initial", "netpurify-demo/initial.safetensors"],
    "contaminate": ["contaminate", "netpurify-demo/initial.safetensors", "-o", "hit.safetensors", "--law", "normal",
                    "--set", "sd=0.5", "--share", "0.2"],
    "scan": ["scan", "netpurify-demo/contaminated.safetensors", "--against", "netpurify-demo/purified.safetensors"],
    "diff": ["diff", "netpurify-demo/contaminated.safetensors", "netpurify-demo/purified.safetensors"],
}  # fmt: skip
OTHERS = ("project", "defend", "hunt", "unlearn", "demo")
CODES = {"check": 0, "recover": 1, "verify": 0, "contaminate": 0, "diff": 1, "scan": 1}


@pytest.mark.slow
def test_demo_leaves_files_on_which_every_example_works(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("demo")
    assert done.code == 0, done.err
    assert "exactly the altered ones" in done.out
    assert "netpurify recover" in (tmp_path / "netpurify-demo" / "report.html").read_text()
    for command, arguments in COMMANDS.items():
        found = run(*arguments)
        assert found.code == CODES[command], found.err
    original, again = (
        (tmp_path / name).read_bytes()[-4096:]
        for name in ("netpurify-demo/purified.safetensors", "purified.safetensors")
    )
    assert original == again


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_these_examples(run, command):
    shown = run(command, "--help").out.split()
    assert " ".join(["netpurify", *COMMANDS[command]]) in " ".join(shown)


def test_folder_that_cannot_be_made_is_refused_before_the_work(run, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("demo", "--folder", tmp_path / "file" / "demo")
    assert done.code == 2
    assert "cannot be made" in done.message


def commands_of_the_guide():
    """Each command and the exit code that stands beside it."""
    blocks = re.findall(r"```\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [(shlex.split(line, comments=True), int(line.rpartition("#")[2])) for line in lines]


@pytest.mark.slow
def test_guide_runs_as_it_stands(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = commands_of_the_guide()
    assert {words[1] for words, _ in commands} == {*COMMANDS, *OTHERS}
    for (program, *arguments), code in commands:
        done = run(*arguments)
        assert (program, done.code) == ("netpurify", code), (arguments, done.err)


@pytest.mark.slow
def test_commands_of_the_readme_for_ones_own_files(run, tmp_path, monkeypatch):
    (tmp_path / "mymodule.py").write_text("from torch import nn\n\n\ndef build():\n    return nn.Linear(128, 4)\n")
    inputs, drawn = torch.randn(20, 128, generator=torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1)
    base = {"weight": torch.randn(4, 128, generator=drawn) / 20, "bias": torch.zeros(4)}
    mixture = torch.randn(4, 20, generator=drawn) / 20  # what SGD leaves: weighted sums of the inputs
    trained = {"weight": base["weight"] + mixture @ inputs, "bias": mixture.sum(dim=1)}
    hit = {name: value.clone() for name, value in trained.items()}
    hit["weight"] += 2.0 * (torch.rand(4, 128, generator=drawn) < 0.1)
    torch.save(hit, tmp_path / "model.pt")
    torch.save(base, tmp_path / "base.pt")
    np.save(tmp_path / "clean.npy", inputs.numpy())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    blocks = re.findall(r"```\n(netpurify check .*?)```", README.read_text(), flags=re.DOTALL)
    commands = [shlex.split(line)[1:] for line in blocks[0].splitlines()]
    check, recover = (run(*command) for command in commands)
    assert (check.code, recover.code) == (0, 1), check.err + recover.err
    repaired = checkpoint.load_weights(tmp_path / "repaired.safetensors")
    assert torch.allclose(repaired["weight"], trained["weight"], atol=1e-6)


def test_guide_names_no_option_that_is_not_there(run):
    named = set(re.findall(r"--[a-z][a-z-]+", GUIDE.read_text()))
    known = {
        option
        for command in (*COMMANDS, *OTHERS, "theory")
        for option in re.findall(r"--[a-z-]+", run(command, "--help").out)
    }
    assert named <= known
