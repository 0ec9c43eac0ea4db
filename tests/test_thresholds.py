"""The table of thresholds names every constant that decides a claim, with the value that the code has."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import netpurify

SOURCE = Path(netpurify.__file__).parent
GUIDE = Path(__file__).parents[1] / "docs" / "thresholds.md"
DECIDING = [
    *SOURCE.glob("network/policies/recovery/*.py"),
    *SOURCE.glob("network/comparison/*.py"),
    SOURCE / "network/policies/policy.py",
    SOURCE / "network/rounded.py",
    SOURCE / "network/adapter/weights.py",
    *SOURCE.glob("network/comparison/*.py"),
    *SOURCE.glob("lad/verifier/*.py"),
]
BOUND_MEMORY = {"_BLOCK", "KEPT"}


def constants(path):
    """Names of the numbers that a module defines."""
    named = {
        target.id
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    module = importlib.import_module(".".join(("netpurify", *path.relative_to(SOURCE).with_suffix("").parts)))
    return {name: getattr(module, name) for name in named if isinstance(getattr(module, name), int | float)}


def documented():
    """The table: names and values, file by file."""
    sections = re.split(r"^## `(.*)`$", GUIDE.read_text(), flags=re.MULTILINE)[1:]
    return {
        file: {name: float(value) for name, value in re.findall(r"^\| `(\w+)` \| (\S+) \|", rows, flags=re.MULTILINE)}
        for file, rows in zip(sections[::2], sections[1::2], strict=True)
    }


def test_every_threshold_is_in_the_table_with_its_value():
    code = {str(path.relative_to(SOURCE)): constants(path) for path in DECIDING}
    deciding = {
        file: {name: pytest.approx(value, rel=1e-12) for name, value in found.items() if name not in BOUND_MEMORY}
        for file, found in code.items()
        if found.keys() - BOUND_MEMORY
    }
    assert documented() == deciding


def test_tests_that_the_table_names_exist():
    named = set(re.findall(r"`(test_\w+)` \(", GUIDE.read_text()))
    tests = "\n".join(path.read_text() for path in Path(__file__).parent.rglob("test_*.py"))
    assert len(named) > 10
    assert {name for name in named if f"def {name}(" not in tests} == set()
