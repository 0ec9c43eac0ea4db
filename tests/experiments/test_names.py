"""Names of experiments and findings: one class for one name in the whole package, and no module that a name hides."""

import ast
import importlib
import pkgutil
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

import netpurify
from netpurify import experiments, findings
from netpurify.experiments import figures, studies
from netpurify.experiments.studies import defence, healthy

SOURCE = Path(netpurify.__file__).parent


def test_a_public_class_of_these_rooms_has_a_name_of_its_own():
    homes = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(str(path.relative_to(SOURCE)))
    own = {
        name: paths for name, paths in homes.items() if any(p.startswith(("experiments", "findings")) for p in paths)
    }
    assert own
    assert {name: paths for name, paths in own.items() if len(paths) > 1} == {}


@pytest.mark.parametrize(
    "package", [experiments, findings, figures, studies, defence, healthy], ids=lambda it: it.__name__
)
def test_no_module_is_hidden_by_a_name_of_its_package(package):
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    assert names
    for name in names:
        importlib.import_module(f"{package.__name__}.{name}")
        assert isinstance(getattr(package, name), ModuleType), name
