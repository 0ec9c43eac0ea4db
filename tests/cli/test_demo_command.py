"""The demo, and the other commands on the files that it leaves behind, as their help shows them."""

import sys
from types import ModuleType

import pytest

COMMANDS = {
    "check": ["check", "netpurify-demo/contaminated.safetensors", "--factory", "netpurify.experiments.demo:network",
              "--initial-seed", "0", "--data", "netpurify-demo/inputs.npy"],
    "purify": ["purify", "netpurify-demo/contaminated.safetensors", "--factory", "netpurify.experiments.demo:network",
               "--initial-seed", "0", "--data", "netpurify-demo/inputs.npy", "-o", "purified.safetensors", "--proof",
               "proof.safetensors"],
    "verify": ["verify", "netpurify-demo/proof.safetensors", "--contaminated",
               "netpurify-demo/contaminated.safetensors", "--purified", "netpurify-demo/purified.safetensors",
               "--initial", "netpurify-demo/initial.safetensors"],
    "contaminate": ["contaminate", "netpurify-demo/initial.safetensors", "-o", "hit.safetensors", "--law", "normal",
                    "--set", "sd=0.5", "--share", "0.2"],
    "diff": ["diff", "netpurify-demo/contaminated.safetensors", "netpurify-demo/purified.safetensors"],
}  # fmt: skip
CODES = {"check": 0, "purify": 1, "verify": 0, "contaminate": 0, "diff": 1}


def test_demo_leaves_files_on_which_every_example_works(run, tmp_path, monkeypatch):
    page = ModuleType("netpurify.report.purification")
    monkeypatch.setattr(page, "page", lambda result, **_: f"{len(result.layers)} layers", raising=False)
    monkeypatch.setitem(sys.modules, page.__name__, page)
    monkeypatch.chdir(tmp_path)
    done = run("demo")
    assert done.code == 0, done.err
    assert "exactly the altered ones" in done.out
    assert (tmp_path / "netpurify-demo" / "report.html").read_text() == "2 layers"
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
