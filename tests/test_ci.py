"""What docs/ci.md says of pipelines is so: the action's own lines, the hook's entry and the commands are run."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import torch
import yaml

from netpurify import checkpoint

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
SARIF = json.loads((ROOT / "tests" / "report" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
GITHUB, GITLAB, PRE_COMMIT = (
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)
)
COMMANDS = re.findall(r"```bash\n(.*?)```", GUIDE, flags=re.DOTALL)


def write_adapter(base, folder, *, name="adapter"):
    """An adapter as PEFT writes it, and the base with this adapter merged by torch."""
    draw = torch.Generator().manual_seed(1)
    down, up = torch.randn(2, 30, generator=draw), torch.randn(20, 2, generator=draw)
    (folder / name).mkdir()
    (folder / name / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 2}))
    factors = {"base_model.model.a.lora_A.weight": down, "base_model.model.a.lora_B.weight": up}
    checkpoint.save_weights(factors, folder / name / "adapter_model.safetensors")
    checkpoint.save_weights(base | {"a.weight": base["a.weight"] + up @ down}, folder / "merged.safetensors")


@pytest.fixture
def pipeline(tmp_path):
    """A folder with weights, and a shell in it that knows the command netpurify."""
    generator = torch.Generator().manual_seed(0)
    base = {"a.weight": torch.randn(20, 30, generator=generator), "a.bias": torch.randn(20, generator=generator)}
    hit = base["a.weight"].clone()
    hit[3, 4] = 9.0
    checkpoint.save_weights(base, tmp_path / "base.safetensors")
    checkpoint.save_weights(base, tmp_path / "copy.safetensors")
    checkpoint.save_weights(base | {"a.weight": hit}, tmp_path / "model.safetensors")
    write_adapter(base, tmp_path)
    command = tmp_path / "bin" / "netpurify"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m netpurify "$@"\n')
    command.chmod(0o755)

    def run(script, **variables):
        environment = os.environ | {"PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"} | variables
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(bash, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def scan_step():
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "scan"]
    return step


def variables(folder, **inputs):
    """The environment of the action's step, as GitHub fills it from the inputs and their defaults."""
    known = {name: str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()} | inputs
    filled = {"GITHUB_OUTPUT": str(folder / "outputs")}
    for name, text in scan_step()["env"].items():
        asked = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", text)
        filled[name] = known[asked.group(1)] if asked else str(folder / "numba")
    return filled


def validated(path):
    log = json.loads(path.read_text())
    jsonschema.Draft4Validator(SARIF).validate(log)
    return [one["ruleId"] for one in log["runs"][0]["results"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "code", "failed", "rules"),
    [
        ({}, 1, 1, ["altered-tensor"]),
        ({"fail-on": "errors", "sarif": "a b.sarif"}, 1, 0, ["altered-tensor"]),
        ({"weights": "copy.safetensors", "frozen": "a.*\n*.bias", "args": "--strict --quiet"}, 0, 0, []),
        ({"weights": "$(touch hacked)", "fail-on": "never"}, 2, 0, None),
    ],
)
def test_the_lines_of_the_action_do_what_they_say(pipeline, tmp_path, inputs, code, failed, rules):
    given = {"weights": "model.safetensors", "against": "base.safetensors"} | inputs
    done = pipeline(scan_step()["run"], **variables(tmp_path, **given))
    assert done.returncode == failed, done.stderr
    log = given.get("sarif", "netpurify.sarif")
    assert (tmp_path / "outputs").read_text() == f"exit-code={code}\nsarif={log}\n"
    assert not (tmp_path / "hacked").exists()
    if rules is not None:
        assert validated(tmp_path / log) == rules


def test_the_workflow_of_the_guide_gives_what_the_action_takes():
    steps = GITHUB["jobs"]["scan"]["steps"]
    ours = next(step for step in steps if "netpurify" in step["uses"])
    assert ours["with"].keys() <= ACTION["inputs"].keys()
    assert {name for name, entry in ACTION["inputs"].items() if entry.get("required")} <= ours["with"].keys()
    upload = next(step for step in steps if "upload-sarif" in step["uses"])
    assert upload["with"]["sarif_file"] == ACTION["inputs"]["sarif"]["default"]
    assert upload["if"] == "always()"
    table = set(re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`[a-z-].*?) \|", GUIDE, flags=re.MULTILINE))))
    assert ACTION["inputs"].keys() <= table
    assert all(f"`{name}`" in GUIDE for name in ACTION["outputs"])


def test_no_input_is_pasted_into_a_command():
    assert all("${{" not in step.get("run", "") for step in ACTION["runs"]["steps"])
    assert {output["value"] for output in ACTION["outputs"].values()} == {
        "${{ steps.scan.outputs.exit-code }}",
        "${{ steps.scan.outputs.sarif }}",
    }


@pytest.mark.slow
def test_the_commands_of_the_guide_run(pipeline, tmp_path):
    codes = [pipeline(command).returncode for command in COMMANDS]
    assert codes == [1, 0, 0]
    install, scan = GITLAB["scan"]["script"]
    assert install == "pip install ./netpurify"
    assert pipeline(scan).returncode == 1
    assert validated(tmp_path / "netpurify.sarif") == ["altered-tensor"]
    assert json.loads((tmp_path / "netpurify.json").read_text())["exit_code"] == 1
    assert set(GITLAB["scan"]["artifacts"]["paths"]) == {"netpurify.json", "netpurify.sarif"}


@pytest.mark.slow
def test_the_hook_scans_every_changed_file(pipeline):
    (hook,) = PRE_COMMIT["repos"][0]["hooks"]
    assert hook["id"] == HOOK["id"]
    changed = ["base.safetensors", "copy.safetensors", "model.safetensors", "notes.txt"]
    files = [name for name in changed if re.search(HOOK["files"], name) and not re.search(hook["exclude"], name)]
    assert files == ["copy.safetensors", "model.safetensors"]
    done = pipeline(shlex.join([*shlex.split(HOOK["entry"]), *hook["args"], *files]))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "copy.safetensors:"
    assert lines[1].startswith("✓ nothing was found")
    assert lines[2] == "model.safetensors:"
    assert lines[3] == "▲ 1 entry altered in 1 tensor (a.weight)"
