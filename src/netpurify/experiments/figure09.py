"""Figure 9: the backdoor is weakened on CIFAR-10."""

from typing import Any

from netpurify.experiments import backdoors, figure08, noise
from netpurify.experiments.experiment import Experiment, Mode, Row
from netpurify.experiments.figure import Figure, Finding, Panel
from netpurify.experiments.views import level, show

COUNTS = (9, 33, 36, 69, 99)


def grid(mode: Mode) -> list[Row]:
    """Shares of poisoned images."""
    ratios = (0.0, 0.3) if mode == "quick" else (0.0, 0.1, 0.2, 0.3, 0.4)
    width, steps = (100, 500) if mode == "quick" else (300, 1500)
    return [
        {"data": "cifar10", "training": 99, "poison": "other", "ratio": ratio, "m": 2, "k": 512, "p": width,
         "layers": 1, "rate": 0.1, "steps": steps}
        for ratio in ratios
    ]  # fmt: skip


def trial(settings: Row, seed: int) -> list[Row]:
    """All numbers of clean images, from both places."""
    return backdoors.backdoor(settings, seed, counts=COUNTS, pixels=range(5))


def cost(settings: Row) -> float:
    """Training and fits both grow with p."""
    return 0.08 * float(settings["p"] or 0)


def panels(rows: list[Row]) -> list[Panel]:
    """The paper's two panels."""
    return [figure08.attack_panel(rows, place, y) for y in ("asr_all", "accuracy") for place in noise.PLACES]


def findings(rows: list[Row]) -> list[Finding]:
    """The paper's claims, with what least squares does."""
    at: dict[str, Any] = {"ratio": 0.3, "clean": 99, "origin": "training"}
    l1, l2 = (level(rows, "asr_all", method=method, **at) for method in ("l1", "l2"))
    return figure08.attack_findings(
        rows,
        (
            "The attack success rate rises to 100 % at 30 % poisoned images; one third of the training data takes 20 "
            "points off.",
            "Accuracy stays stable; it drops by about 2 points with 10 % of the training data.",
        ),
        33,
        (
            "100 % before purification is not reached with a trigger of five pixels within the range of the image. "
            "Clean "
            f"images excite the trigger's pixels, so that it is weakened and not removed. L1 does better than least "
            f"squares (n = 99, training images: {show(l1)} against {show(l2)}).",
            "A linear reading of 99 grey images does not get far on CIFAR-10, with or without the attack.",
        ),
    )


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
    setting="Airplane, automobile, bird, grey, (x - .48) / .25, trigger: first five pixels black, target airplane, "
    "images of "
    "other classes poisoned, m = 2, k = 512, p = 300 (quick: 100), step size .1, 1,500 steps.",
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
    remarks=("Raw pixels are not usable: without centring purification can raise the attack's success.",),
)
