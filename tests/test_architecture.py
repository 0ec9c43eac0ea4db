"""The picture of the architecture, kept true: which room may import which, and what the public names are."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import netpurify
from netpurify import checkpoint, contaminate, findings, lad, network, paper
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
ONLY_IN = {"matplotlib": {"report", "experiments"}, "transformers": {"experiments"}, "typer": {"cli"}, "rich": {"cli"}}
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
        "Defence", "Defend", "DisagreementError", "Grade", "InputError", "NetpurifyError", "Plan", "Project",
        "Purification", "Recover", "Seeded", "check", "checkpoint", "contaminate", "data", "engine", "experiments",
        "findings", "lad", "load_defended", "network", "paper", "purify", "report",
    ]  # fmt: skip
    assert network.__all__ == [
        "EDGES", "Agreement", "Altered", "Defence", "Defend", "DefendedLayer", "FitOptions", "Grade", "Guard", "Layer",
        "LayerPlan", "LayerPolicy", "LayerProofCheck", "LayerRecord", "Network", "Outcome", "Plan", "Policy",
        "Project", "Proof", "ProofCheck", "ProofFile", "Purification", "PurifiedLayer", "Recover", "Regressions",
        "RepairClaim", "Seeded", "Skipped", "Span", "SpanError", "Step", "UnitFits", "Weights", "build_design",
        "capture", "check", "fit_units", "layer_by_layer", "layers_of", "load_defended", "load_proof", "place_guards",
        "pose", "prepare", "purify", "purify_layers", "register_layer", "resolve", "save_proof", "verify_proof",
    ]  # fmt: skip
    assert lad.__all__ == [
        "Certificate", "Claim", "Design", "Solution", "Statistics", "Status", "WorstCase",
        "compilation", "largest_share", "recovery_probability", "solve", "stream", "to_numpy", "tolerance", "verify",
        "worst_case",
    ]  # fmt: skip
    assert checkpoint.__all__ == [
        "digest", "digest_tensor", "load_content", "load_metadata", "load_weights", "open_regular", "raw_bytes",
        "require_plain", "save_weights", "unusual",
    ]  # fmt: skip
    assert paper.__all__ == [
        "DivergenceError", "LayerError", "LayerFit", "PatchCNN", "Purified", "Training", "Trajectory",
        "compare", "gradients", "purify", "train", "train_output",
    ]  # fmt: skip
    assert findings.__all__ == [
        "CLAIM_VERDICTS", "MODES", "Experiment", "Figure", "Finding", "Line", "Mode", "PlotPanel", "Scalar", "TableRow",
        "TrialSummary", "Verdict", "group", "read_table", "select", "summarise", "write_table",
    ]  # fmt: skip
    for module in (netpurify, checkpoint, lad, contaminate, network, paper, theory):
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{name} has no docstring"
