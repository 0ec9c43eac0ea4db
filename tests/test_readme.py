"""The README's example does what the README says."""

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


def test_commands_exist():
    targets = set(re.findall(r"^([a-z]+):", (README.parent / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"^make ([a-z]+)", README.read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets
