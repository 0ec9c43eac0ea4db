"""The picture of the architecture, kept true: which room may import which, and what the public names are."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import netpurify
from netpurify import checkpoint, contaminate, findings, lad, network, paper
from netpurify.cli.app import app as cli_app
from netpurify.paper import theory

SOURCE = Path(netpurify.__file__).parent
LEVELS = [
    {"errors", "atomic", "threads"},
    {"lad", "checkpoint", "findings"},
    {"network", "contaminate", "paper", "data", "engine"},
    {"report", "experiments"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}
ONLY_IN = {
    "matplotlib": {"report", "experiments"},
    "transformers": {"experiments", "network"},
    "typer": {"cli"},
    "rich": {"cli"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imports_of(path: Path) -> set[str]:
    names = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name, so that this test can read it"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "netpurify":
            names |= {f"netpurify.{node.attr}"} if node.attr in LEVEL else set()  # loaded when it is used
    return names


def rooms_imported(path: Path) -> set[str]:
    parts = [name.split(".") for name in imports_of(path)]
    return {part[1] for part in parts if part[0] == "netpurify" and len(part) > 1} - {room_of(path)}


def test_imports_point_downwards():
    inside = [path for path in FILES if room_of(path) != "__init__"]
    assert {room_of(path) for path in inside} == LEVEL.keys(), "every room of the architecture is there, and no other"
    upwards = {
        (str(path.relative_to(SOURCE)), other)
        for path in inside
        for other in rooms_imported(path)
        if LEVEL[other] > LEVEL[room_of(path)]
    }
    assert not upwards, "who imports from above"


def test_rooms_do_not_import_each_other_in_circles():
    graph: dict[str, set[str]] = {}
    for path in FILES:
        if room_of(path) != "__init__":
            graph.setdefault(room_of(path), set()).update(rooms_imported(path))
    assert list(TopologicalSorter(graph).static_order())


def test_screens_and_plots_stay_in_their_rooms():
    rooms = {library: set() for library in ONLY_IN}
    for path in FILES:
        for library in {name.split(".")[0] for name in imports_of(path)} & rooms.keys():
            rooms[library].add(room_of(path))
    assert rooms == ONLY_IN, "which rooms import libraries that only some may"


def test_library_neither_prints_nor_seeds_the_global_generator():
    forbidden = {"print", "torch.manual_seed", "torch.seed", "torch.random.manual_seed", "np.random.seed"}
    calls = {
        (str(path.relative_to(SOURCE)), name)
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in forbidden
    }
    assert not calls


def test_mathematics_know_nothing_of_networks():
    for path in (SOURCE / "lad").rglob("*.py"):
        assert not any(name.startswith("torch.nn") for name in imports_of(path)), path.name


def test_public_names():
    assert netpurify.__all__ == [
        "Defence", "Defend", "DisagreementError", "Grade", "Hunt", "InputError", "NetpurifyError", "Plan",
        "Project", "Purification", "Recover", "Seeded", "Unlearn", "Unlearning", "check", "checkpoint",
        "contaminate", "data", "engine", "experiments", "findings", "hunt", "lad", "load_defended",
        "load_pretrained", "network", "paper", "purify", "report", "scan",
    ]  # fmt: skip
    assert network.__all__ == [
        "DOUBT_SHARE", "EDGES", "FAMILIES", "HELD_OUT", "LEAST_DISAGREEMENT", "Adapter", "Agreement",
        "Altered", "Coverage", "Defence", "Defend", "DefendedLayer", "Disagreement", "Entries", "Expectation",
        "FamilyHunt", "FitOptions", "FoundTrigger", "Grade", "Guard", "HealthyLevel", "Hunt", "Layer",
        "LayerPlan", "LayerPolicy", "LayerProofCheck", "LayerRecord", "LowRankFinding", "MergeCheck",
        "MergeDifference", "Network", "Outcome", "Plan", "Policy", "Probe", "Project", "Proof", "ProofCheck",
        "ProofFile", "Purification", "PurifiedLayer", "Recover", "Regressions", "RepairClaim", "Scan",
        "Seeded", "Skipped", "Span", "SpanError", "Step", "TensorComparison", "TensorVerdict", "Tolerance",
        "TriggerFamily", "UnitFits", "Unlearn", "Unlearning", "Weights", "allowed_disagreement",
        "build_design", "calibrate", "capture", "check", "check_merged", "compare_tensors", "expectation_for",
        "expected_merge", "fill", "fit_units", "from_config", "healthy_level", "hunt", "layer_by_layer",
        "layers_of", "load_adapter", "load_defended", "load_expectation", "load_pretrained", "load_proof",
        "low_rank_alterations", "names_in", "place_guards", "pose", "prepare", "probe", "purify",
        "purify_layers", "register_family", "register_layer", "resolve", "save_proof", "scan",
        "strongest_classes", "verify_proof",
    ]  # fmt: skip
    assert lad.__all__ == [
        "Certificate", "Claim", "Design", "LADRegressor", "Loss", "OddsEstimate", "SimulatedOdds", "Solution",
        "Statistics", "Status", "WorstCase", "compilation", "largest_share", "recovery_probability", "simulate",
        "solve", "stream", "to_numpy", "tolerance", "verify", "worst_case",
    ]  # fmt: skip
    assert checkpoint.__all__ == [
        "ModelFiles", "TensorEntry", "WeightsFile", "check_like", "digest", "digest_tensor", "find_files",
        "load_content", "load_metadata", "load_weights", "open_regular", "open_weights", "raw_bytes", "read_settings",
        "require_plain", "save_like", "save_weights", "unusual",
    ]  # fmt: skip
    assert paper.__all__ == [
        "DivergenceError", "FittedLayer", "LayerError", "PatchCNN", "Purified", "StepSizes", "Training", "Trajectory",
        "compare", "gradients", "purify", "train", "train_output",
    ]  # fmt: skip
    assert findings.__all__ == [
        "CLAIM_VERDICTS", "MODES", "Evidence", "Experiment", "Figure", "Finding", "Line", "Mode", "PlotPanel", "Rule",
        "Scalar", "SettingRow", "TableRow", "TrialSummary", "Verdict", "group", "read_table", "select", "summarise",
        "write_table",
    ]  # fmt: skip
    for module in (netpurify, checkpoint, lad, contaminate, network, paper, theory):
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{name} has no docstring"


MOST_PARAMETERS, LONGEST_FUNCTION, LONGEST_FILE = 8, 50, 300
COMPILED = {"kernel", "inner"}
"""Decorators of compiled loops, which take arrays one by one instead of a record and are one function for speed."""
FRONT_DOORS = {"netpurify.experiments.figures", "netpurify.experiments.studies", "netpurify.paper.theory"}
"""Rooms within rooms that have a front door of their own, because they are another subject and are loaded late."""
HIDDEN_MODULES = {
    "netpurify.paper.theory.constants": "the function has the paper's word; only its own room imports the module",
    "netpurify.paper.theory.kernels": "the function has the paper's word; only its own room imports the module",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    """All functions but compiled loops, with the name under which an exception is listed."""
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, Function) and not COMPILED & {ast.unparse(mark) for mark in node.decorator_list}:
                yield f"{path.relative_to(SOURCE)}: {node.name}", node


def parameters_of(node: Function) -> int:
    taken = node.args
    named = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
    return sum(parameter is not None and parameter.arg not in ("self", "cls") for parameter in named)


def lines_of(node: Function) -> int:
    """How many lines a function has, without its docstring."""
    first = node.body[0]
    documented = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
    return node.end_lineno - node.lineno + 1 - documented


def commands() -> set[str]:
    """The functions behind the commands, whose parameters are options of the command line with their help texts."""
    groups = [group.typer_instance for group in cli_app.registered_groups if group.typer_instance is not None]
    callbacks = [command.callback for app in (cli_app, *groups) for command in app.registered_commands]
    plain = [inspect.unwrap(callback) for callback in callbacks if callback is not None]
    return {f"{Path(inspect.getfile(made)).relative_to(SOURCE)}: {made.__name__}" for made in plain}


def test_functions_take_few_parameters():
    many = {name for name, node in functions() if parameters_of(node) > MOST_PARAMETERS}
    assert not many - commands() - {"lad/solver.py: solve"}, (
        "gather parameters that belong together in a frozen dataclass"
    )


def test_functions_and_files_are_short():
    long = {name for name, node in functions() if lines_of(node) > LONGEST_FUNCTION}
    assert not long - commands(), "a block that wants a title wants a function"
    assert not {str(path) for path in FILES if len(path.read_text().splitlines()) > LONGEST_FILE}


def test_rooms_are_imported_through_their_front_door():
    deep = {
        f"{path.relative_to(SOURCE)}: {module}"
        for path in FILES
        for module in modules_imported(path)
        if module.count(".") > 1 and module not in FRONT_DOORS and module.split(".")[1] != room_of(path)
    }
    assert not deep, "export the name from the room, and import it from there"


def modules_imported(path: Path) -> set[str]:
    """Modules of this package that a file imports or takes names from."""
    taken = {node.module for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.module}
    plain = {alias.name for node in nodes_of(path) if isinstance(node, ast.Import) for alias in node.names}
    return {module for module in taken | plain if module.startswith("netpurify.")}


def test_no_public_class_name_stands_for_two_ideas():
    rooms: dict[str, set[str]] = {}
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms.setdefault(node.name, set()).add(str(path.parent.relative_to(SOURCE)))
    assert not {name for name, places in rooms.items() if len(places) > 1}


def test_no_module_is_hidden_by_a_name_that_its_package_exports():
    hidden = set()
    for path in FILES:
        if path.name == "__init__.py":
            package = importlib.import_module(".".join(("netpurify", *path.parent.relative_to(SOURCE).parts)))
            modules = {found.name for found in pkgutil.iter_modules([str(path.parent)])}
            exported = modules & set(getattr(package, "__all__", ()))
            hidden |= {
                f"{package.__name__}.{name}" for name in exported if not inspect.ismodule(getattr(package, name))
            }
    assert hidden == HIDDEN_MODULES.keys(), "rename the module after what it does: purifying, not purify"


def test_the_map_shows_every_room():
    guide = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
    table = guide.split("## The rooms")[1].split("## ")[0]
    rooms = {str(path.parent.relative_to(SOURCE)) for path in FILES if path.name == "__init__.py"} - {"."}
    named = set()
    for line in table.splitlines():
        first, *inside = re.findall(r"`([a-z_/]+)/`", line) or [None]
        named |= {first, *(name if "/" in name else f"{first}/{name}" for name in inside)} - {None}
    assert named == rooms
    levels = re.findall(r"^\| \d \| (.*) \|$", guide, flags=re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", rooms)) for rooms in reversed(levels)] == LEVELS[:-1]
    named_files = {name for cell in re.findall(r"`([a-z_/]+\.py)`", guide) for name in [cell.rsplit("/", 1)[-1]]}
    assert named_files <= {path.name for path in FILES} | {"test_architecture.py"}
