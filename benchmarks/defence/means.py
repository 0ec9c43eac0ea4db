"""Means over rows of the defences' table, and how the page writes them."""

from collections.abc import Sequence
from statistics import fmean

from netpurify.findings import TableRow
from rows import DEFENCES

COUNT = 500
"""Clean images of the main tables and of the figure."""
TITLES = {"sample_cnn": "CNN on the MNIST sample", "mnist_cnn": "CNN without BatchNorm, MNIST",
          "resnet": "ResNet with BatchNorm, CIFAR-10", "vgg": "VGG-like network, CIFAR-10"}  # fmt: skip


def before(rows: list[TableRow], attack: str, like: TableRow | None = None) -> tuple[float, float | None]:
    """Accuracy and attack success of the network as it came; of the one of a row if it is given."""
    found = [row for row in rows if row["defence"] == "nothing" and row["attack"] == attack]
    if like is not None:
        found = [row for row in found if row["network"] == like["network"] and row["seed"] == like["seed"]]
    asr = [number(row, "asr") for row in found if row["asr"] is not None]
    return fmean(number(row, "accuracy") for row in found), fmean(asr) if asr else None


def lost(rows: list[TableRow], attack: str, defence: str, before: float) -> str:
    """The cell of a defence and an attack; empty if there is no such row."""
    found = [row for row in of(rows, defence) if row["attack"] == attack]
    if not found:
        return ""
    asr = [number(row, "asr") for row in found if row["asr"] is not None]
    lost = before - fmean(number(row, "accuracy") for row in found)
    return cell(100 * lost, fmean(asr) if asr else None)


def of(rows: list[TableRow], defence: str) -> list[TableRow]:
    """The rows of a defence with the images of the main tables, or with none if it takes none."""
    return [row for row in rows if row["defence"] == defence and row["images"] in (0, COUNT)]


def defences(rows: list[TableRow]) -> list[str]:
    """Their names, ours first."""
    names = list(dict.fromkeys(str(row["defence"]) for row in rows if row["defence"] != "nothing"))
    return sorted(names, key=lambda name: name != "defend")


def name(defence: str) -> str:
    """Ours stands out."""
    return f"**{defence}**" if defence == "defend" else defence


def uses(defence: str) -> str:
    """What a defence needs besides the network."""
    needs = DEFENCES[defence]
    words = ["labels" if needs.labels else "inputs"] if needs.data else []
    return ", ".join([*words, "initial weights"] if needs.initial else words)


def cell(points: float, asr: float | None, sign: str = "+") -> str:
    """Points lost, as the change that they are, and attack success if there is an attack."""
    shown = f"{round(-points, 1) + 0.0:{sign}.1f}" if sign else f"{points:.1f}"  # no -0.0
    return shown if asr is None else f"{shown} / {100 * asr:.1f}"


def number(row: TableRow, name: str) -> float:
    """The value of a column; NaN if it has none."""
    value = row[name]
    return float(value) if isinstance(value, int | float) else float("nan")


def table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of Markdown; numbers stand to the right."""
    words = {"defence", "uses", "network", "attack"}
    ruler = "|".join("---" if name in words else "---:" for name in columns)
    return [f"| {' | '.join(columns)} |", f"|{ruler}|", *(f"| {' | '.join(line)} |" for line in lines), ""]
