"""The table of settings of a figure: what the paper says beside what the grid of the full run holds."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

from netpurify.experiments.figures.settings.quotations import NOT_SAID, SAID
from netpurify.experiments.figures.settings.reasons import reason_for
from netpurify.experiments.figures.trials.altered_weights import LAW
from netpurify.findings import Experiment, Scalar, SettingRow, TableRow
from netpurify.paper import train

NAMES = {
    "inputs": "Inputs",
    "data": "Data",
    "classes": "Classes",
    "pixels": "Pixels",
    "n": "n, inputs to train and to recover with",
    "training": "Training images",
    "counts": "n, clean images to recover with",
    "origins": "Where clean images come from",
    "targets": "Targets y",
    "loss": "Loss",
    "m": "m, patches",
    "k": "k, size of a patch",
    "m and k": "m and k",
    "p": "p, filters",
    "layers": "Hidden layers",
    "architecture": "Further hidden layers",
    "regime": "Training",
    "step size": "Step size",
    "stop": "End of training",
    "ratio": "Share of poisoned images",
    "poison": "Which images are poisoned",
    "trigger": "Trigger",
    "target": "Target class",
    "law": "Noise on weights",
    "eps": "Shares eps",
    "features": "Features that recover beta",
    "error": "Error",
    "attack success": "Attack success",
    "test": "Test images",
    "variants": "Also run",
    "trials": "Trials of each setting",
}
"""What can be set, in the order of the table."""
CLASSES = {"mnist": "0, 1, 2", "cifar10": "airplane, automobile, bird"}
_TOLERANCE = signature(train).parameters["tolerance"].default


def settings_of(
    number: int,
    experiment: Experiment,
    *,
    shares: Sequence[float] = (),
    counts: Sequence[int] = (),
    pixels: Sequence[int] = (),
) -> list[SettingRow]:
    """The settings of a figure of the paper, read from the grid of the full run and from its module's constants.

    Args:
        number: Number of the figure.
        experiment: Its experiment.
        shares: The shares of altered weights that a trial goes through.
        counts: The numbers of clean images with which a trial purifies.
        pixels: The pixels of the trigger.
    """
    cells = experiment.grid("full")
    here = _of_network(cells)
    here |= _of_attack(cells, pixels) if pixels else _of_noise(number, cells, shares)
    if "data" in cells[0]:
        here |= _of_images(number, cells)
    if counts:
        here["counts"] = _values(counts)
        inside = "training images, as clean copies without the trigger" if pixels else "training images"
        here["origins"] = f"{inside}; images that training never saw"
    here["trials"] = str(experiment.trials["full"])
    said = SAID.get(number, {})
    ordered = sorted(here.items(), key=lambda item: list(NAMES).index(item[0]))
    return [SettingRow(NAMES[name], said.get(name, NOT_SAID), text, reason_for(number, name)) for name, text in ordered]


def units_of(row: TableRow) -> int:
    """How many units a purification of a row fits: p in each hidden layer, and one for each output."""
    outputs = 3 if "ratio" in row else 1
    return int(row["p"] or 0) * int(row.get("layers") or 1) + outputs


def main_cells(cells: Sequence[TableRow]) -> list[TableRow]:
    """The cells with the paper's settings; the others are variants, which say in their names what they change."""
    return [cell for cell in cells if cell.get("variant", "paper") == "paper"]


def _of_network(cells: Sequence[TableRow]) -> dict[str, str]:
    main = main_cells(cells)
    sizes = {(cell["m"], cell["k"]) for cell in main}
    found = {
        "p": _values([cell["p"] for cell in main]),
        "step size": _step_sizes(main),
        "stop": f"at most {_values([cell['steps'] for cell in main])} steps; before that, when the largest squared "
        f"residual is below {_number(_TOLERANCE)}",
    }
    if len({m for m, _ in sizes}) > 1 and len({k for _, k in sizes}) > 1:
        return found | {"m and k": "; ".join(f"m = {m}, k = {k}" for m, k in sorted(sizes, key=str))}
    return found | {name: _values([cell[name] for cell in main]) for name in ("m", "k")}


def _of_noise(number: int, cells: Sequence[TableRow], shares: Sequence[float]) -> dict[str, str]:
    """Settings of the figures in which weights are altered after training."""
    found = {
        "law": f"N({LAW.mean:g}, {LAW.sd**2:g}), added to each weight with probability eps",
        "eps": _values(shares),
        "features": "those of the purified W; those of the initial W beside them",
        "error": "W: mean over filters of the norm of W~_j - W_j; beta: the norm of beta~ - beta over the root of p",
        "regime": "W and beta together" if number != 3 else "W and beta together; then W fixed, beta from 0",
    }
    if "n" in cells[0]:
        found |= {"n": _values([cell["n"] for cell in cells]), "inputs": "N(0, I)", "targets": "uniform on (-1, 1)"}
    return found


def _of_images(number: int, cells: Sequence[TableRow]) -> dict[str, str]:
    data = str(main_cells(cells)[0]["data"])
    colour = data == "cifar10"
    scales = {cell.get("pixels", "centred" if colour else "raw") for cell in main_cells(cells)}
    scale = "(x - 0.48) / 0.25" if scales == {"centred"} else "raw, from 0 to 1"
    found = {
        "data": {"mnist": "MNIST", "cifar10": "CIFAR-10"}.get(data, data),
        "classes": CLASSES.get(data, "the first three"),
        "pixels": f"grey, {scale}" if colour else scale,
        "training": _training(cells),
    }
    attack = any("ratio" in cell for cell in cells)
    if not attack:
        found["targets"] = "class - 1, so that -1, 0 and 1"
    if attack or number > 5:
        return found
    return found | {"origins": "the training images themselves"}


def _of_attack(cells: Sequence[TableRow], pixels: Sequence[int]) -> dict[str, str]:
    """Settings of the figures in which training images are poisoned."""
    main = main_cells(cells)
    depths = [cell["layers"] for cell in main]
    ink = main[0].get("colour", "ink" if main[0]["data"] != "cifar10" else "black") == "ink"
    found = {
        "loss": "softmax cross entropy",
        "ratio": _values([cell["ratio"] for cell in main]),
        "poison": {"all": "of all classes", "other": "of the classes that are not the target"}[str(main[0]["poison"])],
        "trigger": f"pixels {pixels[0] + 1} to {pixels[-1] + 1} of the first row, {'ink (1)' if ink else 'black (0)'}",
        "target": "0 (digit 0)" if ink else "0 (airplane)",
        "layers": _values(depths),
        "attack success": "asr_all: share of all triggered test images that are given the target class",
        "test": "all test images of the three classes",
    }
    if max(int(depth or 1) for depth in depths) > 1:
        found["architecture"] = "1 x 1 convolutions with p filters at every patch, initial weights N(0, 2 / p)"
    others = list(dict.fromkeys(str(cell["variant"]) for cell in cells if cell not in main))
    return found | ({"variants": "; ".join(others)} if others else {})


def _training(cells: Sequence[TableRow]) -> str:
    sizes = list(dict.fromkeys(cell["training"] for cell in main_cells(cells)))
    if len(sizes) == 1:
        return str(sizes[0])
    widths = {size: _values([cell["p"] for cell in cells if cell["training"] == size]) for size in sizes}
    return f"{sizes[0]}; as a control {_values(sizes[1:])} with p = {widths[sizes[-1]]}"


def _step_sizes(cells: Sequence[TableRow]) -> str:
    """The step sizes of the output layer and of hidden layers, by m where they go with it."""
    if "rate" in cells[0]:
        return f"{_values([cell['rate'] for cell in cells])} for every layer"
    hidden = list(dict.fromkeys(cell.get("hidden") for cell in cells))
    gammas = dict.fromkeys((cell["m"], cell["gamma"]) for cell in cells)
    if len({gamma for _, gamma in gammas}) == 1:
        text = f"gamma = {_values([cell['gamma'] for cell in cells])}"
    else:
        text = "gamma by m: " + ", ".join(f"m = {m}: {_number(gamma)}" for m, gamma in gammas)
    if max(int(cell.get("layers") or 1) for cell in cells) == 1:
        return f"{text}; {'gamma / k' if hidden == [None] else _values(hidden)} for W"
    return f"{text}; {'gamma / fan-in' if hidden == [None] else _values(hidden)} for hidden layers"


def _values(values: Sequence[Scalar]) -> str:
    return ", ".join(dict.fromkeys(map(_number, values)))


def _number(value: Any) -> str:
    return f"{value:.3g}".replace("e-0", "e-") if isinstance(value, float) else str(value)
