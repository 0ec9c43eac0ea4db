"""Trials of Figures 8 to 13 and 16: a backdoor learnt from poisoned training images, purified with clean ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from netpurify import data
from netpurify.contaminate import Pixels, Poisoned, measure, poison
from netpurify.experiments.figures.trials.altered_weights import share_certified
from netpurify.experiments.figures.trials.three_classes import ThreeClasses
from netpurify.paper import PatchCNN, StepSizes, Training, purify, train

Cell = dict[str, Any]
"""Settings and rows of a trial; the types of single columns are those of the grid."""
TARGET = 0
TRIGGERS = {"first five pixels": range(5), "middle": range(14 * 28 + 12, 14 * 28 + 17)}
"""The paper's trigger, and one of the same size in row 14, columns 12 to 16 of a digit, where clean digits have ink."""
MAIN = "paper"
"""The variant with the settings of the paper's text; every other variant changes what its name says."""
ORIGINS = ("training", "other")
"""Clean copies of the training images (none carries the trigger), and images that training never saw."""
NAMED_ORIGINS = ("as trained on", "not poisoned", "other classes")
"""Further clean images, at one share of poisoned images: the training images with the trigger where they had it; those
of the training images that were not poisoned, however many they are; and images of three other classes."""
NAMED_RATIO = 0.3
NO_PURIFICATION: Cell = {"clean": None, "origin": None, "rank": None, "certified": None}


def paper_settings(data_set: str, *, p: int, steps: int) -> Cell:
    """The settings of the paper's text, with what it leaves open: p, gamma, steps and the centring of CIFAR-10."""
    colour = data_set == "cifar10"
    return {
        "data": data_set, "variant": MAIN, "trigger": "first five pixels", "colour": "black" if colour else "ink",
        "pixels": "centred" if colour else "raw", "training": 99, "poison": "all", "ratio": NAMED_RATIO, "m": 2,
        "k": 512 if colour else 392, "p": p, "layers": 1, "gamma": 3.0 if colour else 4.0, "hidden": None,
        "steps": steps,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PoisonedNetwork:
    """A network trained on poisoned images, and all that is needed to purify it and to measure the attack.

    Attributes:
        source: The data.
        trigger: What is stamped on poisoned images.
        inside: The training images, without the trigger.
        outside: As many images that training never saw.
        poisoned: The training set as the network saw it.
        training: The network before and after training.
    """

    source: ThreeClasses
    trigger: Pixels
    inside: data.Images
    outside: data.Images
    poisoned: Poisoned
    training: Training

    def clean(self, origin: str, n: int, seed: int) -> Tensor:
        """The first ``n`` images of one origin; drawn subsets are balanced up to any n."""
        if origin == "as trained on":
            return self.poisoned.inputs[:n]
        if origin == "not poisoned":
            kept = torch.ones(len(self.inside), dtype=torch.bool)
            kept[self.poisoned.indices] = False
            return self.source.inputs(self.inside)[kept]
        if origin in ORIGINS:
            return self.source.inputs(data.take(self.inside if origin == "training" else self.outside, range(n)))
        return self.source.elsewhere(origin, n, torch.Generator().manual_seed(seed))


def victim(settings: Cell, seed: int) -> PoisonedNetwork:
    """A network of one to three hidden layers trained on images some of which are poisoned."""
    generator = torch.Generator().manual_seed(seed)
    source = ThreeClasses(settings["data"], pixels=settings["pixels"])
    inside, outside = source.draw((settings["training"], settings["training"]), generator)
    trigger = Pixels(tuple(TRIGGERS[settings["trigger"]]), source.value({"ink": 1.0, "black": 0.0}[settings["colour"]]))
    options = {"target": TARGET, "ratio": settings["ratio"], "source": settings["poison"], "generator": generator}
    poisoned = poison(source.inputs(inside), inside.labels, trigger, **options)
    sizes: Cell = {name: settings[name] for name in ("m", "k", "p", "layers")}
    initial = PatchCNN(**sizes, classes=3, generator=generator)
    steps = StepSizes(settings["gamma"], settings["hidden"])
    training = train(initial, poisoned.inputs, poisoned.labels, gamma=steps, steps=settings["steps"])
    return PoisonedNetwork(source, trigger, inside, outside, poisoned, training)


def backdoor(settings: Cell, seed: int, *, counts: Sequence[int]) -> list[Cell]:
    """One poisoned network, purified with all numbers and origins of clean images: Figures 8 to 13."""
    attacked = victim(settings, seed)
    origins = ORIGINS
    if settings["variant"] == MAIN and settings["ratio"] == NAMED_RATIO:
        origins += NAMED_ORIGINS
    return [*untouched(attacked), *purifications(attacked, counts, origins, seed)]


def untouched(attacked: PoisonedNetwork) -> list[Cell]:
    """What doing nothing gives: the network as it was trained, and its initial weights."""
    networks = {"before": attacked.training.trained, "initial weights": attacked.training.initial}
    return [{"method": method, **NO_PURIFICATION, **rates(attacked, network)} for method, network in networks.items()]


def purifications(
    attacked: PoisonedNetwork, counts: Sequence[int], origins: Sequence[str], seed: int
) -> Iterator[Cell]:
    """Rates after purification by L1, and in the paper's own two cases also by least squares."""
    for origin in origins:
        for n in counts if origin != "not poisoned" else counts[-1:]:
            clean = attacked.clean(origin, n, seed)
            for method in ("l1", "l2") if origin in ORIGINS else ("l1",):
                training = attacked.training
                purified = purify(training.trained, training.initial, clean, fit=method, certify=False)
                yield {
                    "method": method,
                    "clean": len(clean),
                    "origin": origin,
                    "rank": purified.layers[0].rank,
                    "certified": share_certified(purified) if method == "l1" else None,
                    **rates(attacked, purified.model),
                }


def rates(attacked: PoisonedNetwork, network: PatchCNN) -> Cell:
    """Accuracy, attack success over other classes and over all images, and robust accuracy on the test images."""
    source = attacked.source
    labels = source.test().labels
    found = measure(network, source.test_inputs(), labels, trigger=attacked.trigger, target=TARGET)
    return {"accuracy": found.accuracy, "asr": found.asr, "asr_all": found.asr_all, "ra": found.ra}
