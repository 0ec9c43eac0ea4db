"""Means over rows of the table of defences, and how the page writes them."""

from statistics import fmean

from netpurify.experiments.studies.defence.defences import DEFENCES
from netpurify.experiments.studies.markdown import number
from netpurify.findings import TableRow

COUNT = 500
"""Clean images of the main tables and of the figure."""
TITLES = {"sample_cnn": "CNN on the MNIST sample", "mnist_cnn": "CNN without BatchNorm, MNIST",
          "fashion_cnn": "CNN without BatchNorm, Fashion-MNIST", "resnet": "ResNet with BatchNorm, CIFAR-10",
          "vgg": "VGG-like network, CIFAR-10", "short_resnet": "ResNet, CIFAR-10, trained briefly",
          "short_vgg": "VGG-like network, CIFAR-10, trained briefly"}  # fmt: skip


def before(rows: list[TableRow], attack: str, like: TableRow | None = None) -> tuple[float, float | None]:
    """Mean accuracy and attack success before any defence; with ``like``, of the network of that row alone."""
    chosen = [row for row in rows if row["defence"] == "nothing" and row["attack"] == attack]
    if like is not None:
        chosen = [row for row in chosen if row["network"] == like["network"] and row["seed"] == like["seed"]]
    asr = [number(row["asr"]) for row in chosen if row["asr"] is not None]
    return fmean(number(row["accuracy"]) for row in chosen), fmean(asr) if asr else None


def lost(rows: list[TableRow], attack: str, defence: str, before: float) -> str:
    """The cell of a defence and an attack; empty if there is no such row."""
    chosen = [row for row in main_rows(rows, defence) if row["attack"] == attack]
    if not chosen:
        return ""
    asr = [number(row["asr"]) for row in chosen if row["asr"] is not None]
    lost = before - fmean(number(row["accuracy"]) for row in chosen)
    return cell(100 * lost, fmean(asr) if asr else None)


def main_rows(rows: list[TableRow], defence: str) -> list[TableRow]:
    """The rows of a defence with the images of the main tables, or with none if it takes none."""
    return [row for row in rows if row["defence"] == defence and row["images"] in (0, COUNT)]


def defences(rows: list[TableRow]) -> list[str]:
    """Names of the defences in some rows; that of this library stands first."""
    names = list(dict.fromkeys(str(row["defence"]) for row in rows if row["defence"] != "nothing"))
    return sorted(names, key=lambda name: name != "defend")


def name(defence: str) -> str:
    """The name as the page writes it; that of this library is bold."""
    return f"**{defence}**" if defence == "defend" else defence


def uses(defence: str) -> str:
    """What a defence needs besides the network."""
    needs = DEFENCES[defence]
    words = ["labels" if needs.labels else "inputs"] if needs.data else []
    return ", ".join([*words, "initial weights"] if needs.initial else words)


def cell(points: float, asr: float | None, sign: str = "+") -> str:
    """Lost points of accuracy, written as a change with its sign, and attack success if there is an attack."""
    shown = f"{round(-points, 1) + 0.0:{sign}.1f}" if sign else f"{points:.1f}"  # no -0.0
    return shown if asr is None else f"{shown} / {100 * asr:.1f}"
