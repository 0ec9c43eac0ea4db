"""Networks as people have them: what is found and repaired in them, tuned in part or whole, in float32 and bfloat16."""

import copy
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

import netpurify
from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.architectures.networks import ARCHITECTURES, build
from netpurify.experiments.studies.architectures.tampering import ATTACKS, FLIPS, Places, altered, tuned
from netpurify.experiments.studies.study import RunFacts, Study, Tables, always
from netpurify.findings import Experiment, Mode, TableRow
from netpurify.network import Altered, Purification, Scan, Seeded

TUNED = {"head": "head by SGD, rest frozen", "all": "all by AdamW"}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_INPUTS = 4
Found = TypeVar("Found")
PAGE = """# Networks as people have them

Made by `{commands}` in {core_time} of one core ([the table itself](results/architectures.csv.gz)). Networks of Hugging
Face transformers and an LSTM tagger, built from their configs with random weights, which are the base. Either the head
is tuned by SGD on {inputs} inputs while all else is frozen, or all of the network by five steps of AdamW. Then the
weights are stored in float32 or bfloat16 (the base too), and altered: random bits of {flips} weights flipped, single
weights set to 20 times the usual size, entries of three vectors (norms, biases, statistics) and of the largest table
changed, a block of a matrix set to zero. `scan` has the two sets of weights and nothing else; `recover` has the
{inputs} clean inputs too.

*Found*: altered weights that are called altered, impossible or outlying (by `recover`: replaced). *Named*: those that
`recover` lists as suspicious. *False*: weights that are called so and were not altered. *Exact*: replaced weights that
have their old bits again (in float32, of trained layers, up to 1e-5 of the tensor's largest weight). *Bits changed*: of
healthy networks, by `recover`. Convolutions that were tuned whole take a minute each: of these only the full mode has
more attacks than flipped bits.

## Healthy networks

{healthy}

## Altered networks

{altered}

## What was left, and why

{left}
"""


def grid(mode: Mode) -> list[TableRow]:
    """All networks; the quick grid has the smallest, the full one all attacks on convolutions that were tuned whole."""
    names = ("LSTM tagger",) if mode == "quick" else tuple(ARCHITECTURES)
    cells: list[TableRow] = [
        {"network": name, "tuned": how, "dtype": dtype, "attack": attack}
        for name in names
        for how in TUNED
        for dtype in DTYPES
        for attack in ATTACKS
    ]
    return cells if mode == "full" else [cell for cell in cells if not _is_long(cell)]


def _is_long(cell: TableRow) -> bool:
    """Whether recovery takes a minute, and another attack on the same network takes seconds elsewhere."""
    convolutions = cell["network"] in ("ResNet-18", "ConvNeXt") and cell["tuned"] == "all"
    return convolutions and cell["attack"] not in ("none", "bit flips")


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Build, tune, store and alter the network; then scan it and purify it."""
    name, how = str(settings["network"]), str(settings["tuned"])
    dtype = DTYPES[str(settings["dtype"])]
    base = Seeded(partial(build, name), seed).build()
    inputs = ARCHITECTURES[name].inputs(_INPUTS, torch.Generator().manual_seed(seed + 1))
    network = tuned(name, base, inputs, how).to(dtype)
    initial = {key: value.clone() for key, value in base.to(dtype).state_dict().items()}
    truth = {key: value.clone() for key, value in network.state_dict().items()}
    dirty, places = altered(truth, str(settings["attack"]), seed + 2)
    model = copy.deepcopy(network)
    model.load_state_dict(dirty)
    scanned, scan_seconds, _ = _measured(lambda: netpurify.scan(dirty, initial))
    policy = netpurify.Recover(initial, proof=False)
    result, seconds, memory = _measured(lambda: netpurify.purify(model, [inputs], policy=policy))
    return [
        {
            "weights": sum(value.numel() for value in truth.values()),
            "altered": len(places),
            **_scanned(scanned, places),
            "scan_seconds": scan_seconds,
            **_purified(result, truth, places),
            "recover_seconds": seconds,
            "peak_bytes": memory,
            "reasons": "; ".join(sorted(_reasons(result, places))),
        }
    ]


def _measured(work: Callable[[], Found]) -> tuple[Found, float, int]:
    """What the work gives, the seconds it took, and the memory that it took beyond what was in use before."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    before = 0
    if reset.exists():
        reset.write_text("5")  # the highest mark of memory begins anew
        before = _memory(status, "VmRSS")
    begun = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - begun
    return found, seconds, _memory(status, "VmHWM") - before if reset.exists() else 0


def _memory(status: Path, field: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def _scanned(scanned: Scan, places: Places) -> TableRow:
    called = {
        (one.name, int(index))
        for one in scanned.tensors
        for entries in (one.altered, one.impossible, one.outliers)
        for index in entries.index
    }
    return {"scan_found": len(called & places), "scan_false": len(called - places)}


def _purified(result: Purification, truth: dict[str, Tensor], places: Places) -> TableRow:
    called, listed = _entries(result.altered), _entries(result.suspicious)
    now = result.model.state_dict()
    exact = sum(_is_exact(now[name], truth[name], index) for name, index in called & places)
    changed = sum(int((now[name] != truth[name]).sum()) for name in truth if truth[name].is_floating_point())
    examined, compared, unknown = result.coverage.shares()
    return {
        "found": len(called & places),
        "named": len((listed & places) - called),
        "false": len(called - places),
        "exact": exact,
        "bits_changed": changed,
        "examined": examined,
        "compared": compared,
        "unknown": unknown,
    }


def _is_exact(now: Tensor, true: Tensor, index: int) -> bool:
    found, meant = float(now.reshape(-1)[index]), float(true.reshape(-1)[index])
    if now.dtype != torch.float32:
        return found == meant
    return abs(found - meant) <= 1e-5 * float(true.abs().max())


def _entries(table: Altered) -> Places:
    return {(table.names[tensor], int(index)) for tensor, index in zip(table.tensor, table.index, strict=True)}


def _reasons(result: Purification, places: Places) -> set[str]:
    """Why altered weights were left, by layer and module."""
    left = {name for name, index in places - _entries(result.altered)}
    reasons = {layer.reason for layer in result.layers if layer.reason and left & set(layer.altered.names)}
    return reasons | {part.reason for part in result.skipped if any(name.startswith(part.name) for name in left)}


def page(tables: Tables, facts: RunFacts) -> str:
    """The page: healthy networks, altered ones, and why altered weights were left."""
    rows = tables["architectures"]
    healthy = [row for row in rows if row["attack"] == "none"]
    attacked = [row for row in rows if row["attack"] != "none"]
    return PAGE.format(
        commands=facts.commands,
        core_time=facts.core_time,
        inputs=_INPUTS,
        flips=FLIPS,
        healthy=markdown.table(_HEALTHY, [_healthy_line(row) for row in healthy]),
        altered=markdown.table(_ALTERED, [_altered_line(row) for row in attacked]),
        left=_left(attacked),
    )


_HEALTHY = (
    "network", "tuned", "dtype", "weights", "examined, %", "compared only, %", "unknown, %", "scan: false",
    "recover: false", "bits changed",
)  # fmt: skip
_ALTERED = (
    "network", "tuned", "dtype", "attack", "altered", "scan: found", "false", "scan, s", "recover: found", "named",
    "false", "exact", "recover, s", "memory, MB",
)  # fmt: skip


def _healthy_line(row: TableRow) -> list[str]:
    shares = [f"{100.0 * _number(row[name]):.1f}" for name in ("examined", "compared", "unknown")]
    counts = [str(row[name]) for name in ("scan_false", "false", "bits_changed")]
    return [str(row["network"]), TUNED[str(row["tuned"])], str(row["dtype"]), f"{row['weights']:,}", *shares, *counts]


def _altered_line(row: TableRow) -> list[str]:
    return [
        str(row["network"]),
        TUNED[str(row["tuned"])],
        str(row["dtype"]),
        *(str(row[name]) for name in ("attack", "altered", "scan_found", "scan_false")),
        f"{_number(row['scan_seconds']):.1f}",
        *(str(row[name]) for name in ("found", "named", "false", "exact")),
        f"{_number(row['recover_seconds']):.1f}",
        f"{_number(row['peak_bytes']) / 1e6:.0f}",
    ]


def _left(rows: list[TableRow]) -> str:
    reasons: dict[str, set[str]] = {}
    for row in rows:
        for reason in filter(None, str(row["reasons"] or "").split("; ")):
            reasons.setdefault(reason, set()).add(str(row["network"]))
    lines = [[reason, ", ".join(sorted(names))] for reason, names in sorted(reasons.items())]
    return markdown.table(("reason", "networks"), lines) if lines else "Nothing was left."


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


EXPERIMENT = Experiment(
    name="architectures",
    title="alterations in networks as people have them",
    grid=grid,
    trial=trial,
    cost=lambda cell: 30.0 if cell["network"] in ("ResNet-18", "ConvNeXt") else 10.0,
    trials={"quick": 1, "default": 1, "full": 3},
)
STUDY = Study(
    name="architectures",
    title="What is found and repaired in networks as people have them?",
    document="architectures-results.md",
    experiments=always(EXPERIMENT),
    page=page,
    libraries=("transformers",),
)
