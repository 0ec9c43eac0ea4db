"""The examples of the README and of the guides do what they say."""

import ast
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_example_recovers_everything(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(example.strip().splitlines()) <= 10
    exec(compile(example, str(README), "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert float(first.split()[0]) < 1e-12
    assert first.endswith("True")
    assert second == "1000 of 1000 columns recovered, with proof"


def test_the_papers_example_recovers_both_layers(capsys):
    guide = README.parent / "docs" / "paper.md"
    (example,) = re.findall(r"```python\n(.*?)```", guide.read_text(), flags=re.DOTALL)
    exec(compile(example, str(guide), "exec"), {})
    errors = ast.literal_eval(capsys.readouterr().out)
    assert errors.keys() == {"hidden.0", "output"}
    assert max(errors.values()) < 1e-12


def test_commands_exist():
    targets = set(re.findall(r"^([a-z]+):", (README.parent / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"^make ([a-z]+)", README.read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets
