"""Figure 9: the backdoor is weakened on CIFAR-10."""

from netpurify.experiments.figures import figure08
from netpurify.experiments.figures.claims import attack, attack_additions
from netpurify.experiments.figures.panels import main_line
from netpurify.experiments.figures.settings.table import settings_of, units_of
from netpurify.experiments.figures.trials import backdoors
from netpurify.findings import Experiment, Figure, Finding, Mode, PlotPanel, TableRow

COUNTS = (9, 33, 36, 69, 99)


def grid(mode: Mode) -> list[TableRow]:
    """The paper's settings over shares of poisoned images, and at one share what each variant changes."""
    quick = mode == "quick"
    ratios = (0.0, 0.3) if quick else (0.0, 0.1, 0.2, 0.3)
    width, steps = (100, 500) if quick else (300, 1500)
    main: TableRow = backdoors.paper_settings("cifar10", p=width, steps=steps)
    changed: list[TableRow] = [
        {"variant": "other classes poisoned", "poison": "other"},
        {"variant": "one step size", "gamma": 0.1, "hidden": 0.1},
        {"variant": "one step size, other classes poisoned", "gamma": 0.1, "hidden": 0.1, "poison": "other"},
        {"variant": "raw pixels", "pixels": "raw"},
    ]
    return [*(main | {"ratio": ratio} for ratio in ratios), *(main | change for change in ([] if quick else changed))]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """All numbers of clean images, from all places."""
    return backdoors.backdoor(settings, seed, counts=COUNTS)


def cost(settings: TableRow) -> float:
    """Training and fits both grow with p."""
    return 0.08 * float(settings["p"] or 0)


def panels(rows: list[TableRow]) -> list[PlotPanel]:
    """The paper's two panels, as in Figure 8."""
    return figure08.panels(rows)


def findings(rows: list[TableRow]) -> list[Finding]:
    """The paper's claims one by one, and what we add: other settings, other clean images, least squares."""
    own = main_line(rows)
    added = [
        attack_additions.as_trained(rows, COUNTS[-1]),
        attack_additions.other_settings(rows, {"clean": 33}),
        attack_additions.least_squares(rows, "clean"),
    ]
    return [
        attack.attack_rises(own, "The trigger is five pixels within the range of the image."),
        attack.attack_weakened(
            own,
            33,
            "Clean images have grey values in the trigger's pixels, so that the attack is weakened and not removed.",
        ),
        attack.accuracy_kept(
            own, COUNTS[0], COUNTS[-1], 2.0, "Nine images span less than what the three classes need on CIFAR-10."
        ),
        attack.outside_similar(
            own,
            "clean",
            "More images from outside leave more of the attack, not less.",
        ),
        *(finding for finding in added if finding is not None),
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
    remarks=figure08.FIGURE.remarks,
)
