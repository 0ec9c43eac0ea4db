"""Half precision: what is found, and what is called altered falsely, as training changes more or less than rounding.

A layer is trained in float32 by SGD, its change is scaled so that the median change is a given number of times the
median rounding (half a step of the grid), and the result is stored in bfloat16 or float16. Every stored weight whose
bits differ from those that training left is altered; a weight is *false* if it is called altered and is not. A second
experiment trains in half precision itself, under autocast, and with Adam, where the errors are not those of one
rounding: there, nothing but what stands far out may be called altered.
"""

import copy
from itertools import product
from statistics import median

import torch
from torch import Tensor, nn

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.half_networks import ALTERATIONS, HalfTrained
from netpurify.experiments.studies.study import RunFacts, Study, Tables, always
from netpurify.findings import Experiment, Mode, TableRow, group
from netpurify.network import Grade, Recover, purify

RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
BASES = ("float32", "half")
LAYERS = ("head", "convolution")
COUNTS = ("units", "recovered", "altered", "found", "false", "exact")
WAYS = ("float32", "bfloat16 itself", "autocast", "Adam", "other inputs")
STEPS = (1, 5, 40)
PAGE = """# Half precision: what is found, and what is called altered falsely

Made by `{commands}` in {core_time} of one core ([first table](results/half.csv.gz),
[second table](results/half-training.csv.gz)).

A head (Linear 256 to 32 on a frozen part, 32 inputs) or a first convolution (8 channels, 5 x 5, 6 images) is trained by
SGD in float32. The change is scaled so that the median change is *change / rounding* times the median rounding, half a
step of the dtype's grid, and stored in half precision. *Base half*: the initial weights are known in half precision
only, so that two roundings add up. Alterations hit 3 % of the weights: a flipped bit of the 16, of which two in sixteen
change the number by one or two steps of the grid and cannot be seen; 0.05 to 0.2 added or subtracted (*tampered*); or a
normal number of standard deviation 10 in its place (*large*).

*Recovered*: share of units that are proven. *Found*: share of the altered weights that were replaced, proven or far
outside. *False*: weights that were replaced and had the bits that training left. *To the bit*: share of the found
weights that got exactly the bits that training left; the others are off by the rounding of the fit. Healthy networks
must not change at all: *changed* counts their weights with other bits.

{table}

All {trials} purifications together: {false} false alterations, {changed} weights of healthy networks changed.

## Training that is not rounded once

The same head, with 3 % of its weights altered by flipped bits, and healthy. *bfloat16 itself*: weights, gradients and
steps in bfloat16, so that every step rounds. *autocast*: float32 weights, products in bfloat16. *other inputs*: half of
the training inputs are not among the clean ones. Stored in bfloat16; the base is in float32. *Change / rounding* is the
median over trials.

{second}

All {second_trials} purifications together: {second_false} false alterations, {second_changed} weights of healthy
networks changed.
"""


def counts(trained: HalfTrained, stored: nn.Module, base: nn.Module, altered: Tensor | None) -> TableRow:
    """Purify a network with some altered weights, or a healthy one, and compare with what training left."""
    key = f"{trained.name}.weight"
    truth = stored.state_dict()[key]
    model = copy.deepcopy(stored)
    if altered is not None:
        model.get_submodule(trained.name).weight.data = altered
    result = purify(model, trained.inputs, policy=Recover(base, proof=False), layers=[trained.name])
    before, after = model.state_dict()[key], result.model.state_dict()[key]
    wrong, changed = ~_same_bits(before, truth), ~_same_bits(before, after)
    (record,) = result.layers
    return {
        "units": record.units,
        "recovered": record.count(Grade.RECOVERED),
        "altered": int(wrong.sum()),
        "found": int((wrong & changed).sum()),
        "false": int((changed & ~wrong).sum()) + (0 if altered is not None else _others(model, result.model, key)),
        "exact": int((wrong & changed & _same_bits(after, truth)).sum()),
    }


def _same_bits(a: Tensor, b: Tensor) -> Tensor:
    return a.view(torch.int16) == b.view(torch.int16)


def _others(before: nn.Module, after: nn.Module, key: str) -> int:
    """How many numbers of the other tensors have changed."""
    states = before.state_dict(), after.state_dict()
    return sum(int((~_same_bits(states[0][name], states[1][name])).sum()) for name in states[0] if name != key)


def grid(mode: Mode) -> list[TableRow]:
    """Every ratio, dtype, base and layer; in the quick grid every third ratio."""
    ratios = RATIOS[::3] if mode == "quick" else RATIOS
    return [
        {"layer": layer, "dtype": dtype, "base": base, "ratio": ratio}
        for layer, dtype, base, ratio in product(LAYERS, DTYPES, BASES, ratios)
    ]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """One trained network, stored once, then altered in every way, and healthy."""
    dtype = DTYPES[str(settings["dtype"])]
    trained = HalfTrained(str(settings["layer"]), seed)
    stored = trained.stored(float(settings["ratio"] or 0.0), dtype)
    base = trained.initial if settings["base"] == "float32" else copy.deepcopy(trained.initial).to(dtype)
    return _rows(trained, stored, base, tuple(ALTERATIONS), seed)


def _rows(trained: HalfTrained, stored: nn.Module, base: nn.Module, laws: tuple[str, ...], seed: int) -> list[TableRow]:
    rows: list[TableRow] = [{"alteration": "none", **counts(trained, stored, base, None)}]
    for law in laws:
        generator = torch.Generator().manual_seed(seed + 1000)
        altered = ALTERATIONS[law](stored.state_dict(), f"{trained.name}.weight", generator)
        rows.append({"alteration": law, **counts(trained, stored, base, altered)})
    return rows


def training_grid(_: Mode) -> list[TableRow]:
    """Every way of training, in one long step, a few, and many."""
    return [{"way": way, "steps": steps} for way, steps in product(WAYS, STEPS)]


def training_trial(settings: TableRow, seed: int) -> list[TableRow]:
    """One network that was trained in this way, stored in bfloat16, with flipped bits, and healthy."""
    trained = HalfTrained("head", seed, str(settings["way"]), int(settings["steps"] or 0))
    rows = _rows(trained, trained.stored(None, torch.bfloat16), trained.initial, ("bit flips",), seed)
    return [row | {"measured": trained.ratio(torch.bfloat16)} for row in rows]


def page(tables: Tables, facts: RunFacts) -> str:
    """The page: a line for each setting, with every alteration beside the others."""
    rows = tables["half"]
    columns = ["layer", "dtype", "base", "change / rounding", "recovered"]
    columns += [f"{law}: {what}" for law in ALTERATIONS for what in ("found", "false")] + ["to the bit", "changed"]
    keys = ["layer", "dtype", "base", "ratio"]
    lines = [line([str(value) for value in key], own, tuple(ALTERATIONS)) for key, own in group(rows, keys).items()]
    second = tables["half-training"]
    ways = [
        line([str(way), str(steps), f"{median(float(row['measured'] or 0.0) for row in own):.1f}"], own, ("bit flips",))
        for (way, steps), own in group(second, ["way", "steps"]).items()
    ]
    names = (
        "training",
        "steps",
        "change / rounding",
        "recovered",
        "bit flips: found",
        "bit flips: false",
        "to the bit",
        "changed",
    )
    healthy, healthy_second = ([row for row in own if row["alteration"] == "none"] for own in (rows, second))
    return PAGE.format(
        table=markdown.table(columns, lines, texts=3),
        second=markdown.table(names, ways),
        trials=len(rows),
        false=total(rows, "false") - total(healthy, "false"),
        changed=total(healthy, "false"),
        second_trials=len(second),
        second_false=total(second, "false") - total(healthy_second, "false"),
        second_changed=total(healthy_second, "false"),
        commands=facts.commands,
        core_time=facts.core_time,
    )


def total(rows: list[TableRow], name: str) -> int:
    """The sum of a column."""
    return sum(int(row[name] or 0) for row in rows)


def line(labels: list[str], rows: list[TableRow], laws: tuple[str, ...]) -> list[str]:
    """The sums over some rows, as one line of a table."""
    healthy = [row for row in rows if row["alteration"] == "none"]
    others = [row for row in rows if row["alteration"] != "none"]
    cells = [share(total(rows, "recovered"), total(rows, "units"))]
    for law in laws:
        own = [row for row in rows if row["alteration"] == law]
        cells += [share(total(own, "found"), total(own, "altered")), str(total(own, "false"))]
    return [*labels, *cells, share(total(others, "exact"), total(others, "found")), str(total(healthy, "false"))]


def share(part: int, whole: int) -> str:
    """A share with two digits; a dash if there is nothing to share."""
    return f"{part / whole:.2f}" if whole else "-"


EXPERIMENT = Experiment(
    name="half",
    title="what is found in half precision, as training changes more or less than rounding",
    grid=grid,
    trial=trial,
    cost=lambda _: 2.0,
    trials={"quick": 1, "default": 2, "full": 20},
)
TRAINING = Experiment(
    name="half-training",
    title="training whose errors are not those of one rounding",
    grid=training_grid,
    trial=training_trial,
    cost=lambda _: 1.0,
    trials={"quick": 2, "default": 4, "full": 40},
)
STUDY = Study(
    name="half",
    title="What is found in half precision, and what is called altered falsely?",
    document="half-results.md",
    experiments=always(EXPERIMENT, TRAINING),
    page=page,
)
