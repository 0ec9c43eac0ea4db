"""Figure 9: the backdoor is weakened on CIFAR-10."""

from netpurify.experiments.figures import backdoors, figure08
from netpurify.experiments.figures.settings import settings_of, units_of
from netpurify.experiments.figures.verdicts import graded, level, show, simple
from netpurify.findings import Experiment, Figure, Finding, Mode, PlotPanel, TableRow

COUNTS = (9, 33, 36, 69, 99)


def grid(mode: Mode) -> list[TableRow]:
    """Shares of poisoned images."""
    ratios = (0.0, 0.3) if mode == "quick" else (0.0, 0.1, 0.2, 0.3, 0.4)
    width, steps = (100, 500) if mode == "quick" else (300, 1500)
    return [
        {"data": "cifar10", "training": 99, "poison": "other", "ratio": ratio, "m": 2, "k": 512, "p": width,
         "layers": 1, "rate": 0.1, "steps": steps}
        for ratio in ratios
    ]  # fmt: skip


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """All numbers of clean images, from both places."""
    return backdoors.backdoor(settings, seed, counts=COUNTS, pixels=range(5))


def cost(settings: TableRow) -> float:
    """Training and fits both grow with p."""
    return 0.08 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """The paper's two panels, as in Figure 8."""
    return figure08.panels(rows)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The paper's claims one by one, with what least squares does."""
    start = level(rows, "asr_all", method="before", ratio=0.3)
    third = level(rows, "asr_all", method="l1", clean=33, origin="training", ratio=0.3)
    squares = level(rows, "asr_all", method="l2", clean=33, origin="training", ratio=0.3)
    points = start.mean - third.mean
    return [
        figure08.reached(
            rows,
            "The attack success rate rises to 100 % at 30 % poisoned images.",
            "The trigger is five pixels within the range of the image.",
        ),
        simple(
            "Using just one third of the training data reduces the attack success rate by 20 %.",
            f"asr_all before {show(start)}; after, {figure08.spoken(rows, 'asr_all')}",
            graded([start, third], holds=points >= 0.18, limits=points >= 0.1),
            f"{100 * points:.0f} points with 33 training images; least squares leaves {show(squares)}. Clean images "
            f"excite "
            "the trigger's pixels, so that it is weakened and not removed.",
        ),
        figure08.accuracy_kept(
            rows, "Accuracy stays stable; it drops by about 2 points with 10 % of the training data.", 0.02
        ),
    ]


EXPERIMENT = Experiment(
    name="cifar10-backdoor",
    title="CIFAR-10, 99 training images, some poisoned: number and origin of clean images",
    grid=grid,
    trial=trial,
    cost=cost,
    trials={"quick": 1, "default": 3, "full": 10},
)
FIGURE = Figure(
    number=9,
    title="The backdoor is weakened on CIFAR-10",
    settings=settings_of(9, EXPERIMENT, counts=COUNTS, pixels=range(5)),
    experiment=EXPERIMENT,
    units=units_of,
    panels=panels,
    findings=findings,
    remarks=("Raw pixels are not usable: without centring purification can raise the attack's success.",),
)
