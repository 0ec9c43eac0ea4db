"""Figure 16 (ours): clean images from elsewhere purify too: other classes, the other data set, noise."""

from netpurify.experiments.figures import backdoors, figure08, figure09
from netpurify.experiments.figures.backdoors import MAIN
from netpurify.findings import Experiment, Mode, TableRow

COUNTS = (9, 36, 99)
ORIGINS = ("training", "other", "other classes", "other data set", "noise")
RATIO = 0.3


def grid(mode: Mode) -> list[TableRow]:
    """The main line of Figures 8 and 9 at one share of poisoned images; quick runs need no download."""
    figures = (figure08,) if mode == "quick" else (figure08, figure09)
    cells = [cell for figure in figures for cell in figure.grid(mode) if cell["variant"] == MAIN]
    return [cell | {"p": min(int(cell["p"] or 0), 300)} for cell in cells if cell["ratio"] == RATIO]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Every origin with every number of images."""
    attacked = backdoors.victim(settings, seed)
    sample = settings["data"] == "mnist-sample"
    origins = [origin for origin in ORIGINS if not (sample and origin == "other data set")]
    return [*backdoors.untouched(attacked), *backdoors.purifications(attacked, COUNTS, origins, seed)]


def cost(settings: TableRow) -> float:
    """Training and fits both grow with p."""
    return 0.05 * float(settings["p"] or 0)


EXPERIMENT = Experiment(
    name="elsewhere",
    title="MNIST and CIFAR-10, 30 of 99 training images poisoned: clean images from elsewhere",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
