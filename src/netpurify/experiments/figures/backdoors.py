"""Trials of Figures 8 to 13: a backdoor learnt from poisoned training images, purified with clean ones."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from netpurify import data
from netpurify.contaminate import Pixels, measure, poison
from netpurify.experiments.figures.altered_weights import ORIGINS, share_certified
from netpurify.experiments.figures.three_classes import ThreeClasses
from netpurify.paper import PatchCNN, StepSizes, purify, train

Cell = dict[str, Any]
"""Settings and rows of a trial; the types of single columns are those of the grid."""
TARGET = 0


def backdoor(settings: Cell, seed: int, *, counts: Sequence[int], pixels: Sequence[int]) -> list[Cell]:
    """One network of one to three hidden layers trained on 99 images, some of them poisoned, purified in every way."""
    generator = torch.Generator().manual_seed(seed)
    source = ThreeClasses(settings["data"])
    inside, outside = source.draw((settings["training"], settings["training"]), generator)
    trigger = Pixels(tuple(pixels), source.black if source.colour else 1.0)
    options = {"target": TARGET, "ratio": settings["ratio"], "source": settings["poison"], "generator": generator}
    dirty = poison(source.inputs(inside), inside.labels, trigger, **options)
    initial = PatchCNN(
        m=settings["m"], k=settings["k"], p=settings["p"], classes=3, layers=settings["layers"], generator=generator
    )
    rate = settings["rate"]
    training = train(initial, dirty.inputs, dirty.labels, gamma=StepSizes(rate, rate), steps=settings["steps"])
    test = source.test()
    images = source.inputs(test)

    def judge(network: PatchCNN, where: Cell) -> Cell:
        rates = measure(network, images, test.labels, trigger=trigger, target=TARGET)
        return {**where, "accuracy": rates.accuracy, "asr": rates.asr, "asr_all": rates.asr_all, "ra": rates.ra}

    none: Cell = {"clean": None, "origin": None, "rank": None, "certified": None}
    rows = [judge(training.trained, {"method": "before", **none})]
    for n in counts:
        for origin in ORIGINS:
            clean = _clean(source, inside if origin == "training" else outside, n)
            for method in ("l1", "l2"):
                purified = purify(training.trained, training.initial, clean, fit=method, certify=False)
                share = share_certified(purified) if method == "l1" else None
                where = {"method": method, "clean": n, "origin": origin, "rank": purified.layers[0].rank}
                rows.append(judge(purified.model, {**where, "certified": share}))
    return rows


def _clean(source: ThreeClasses, images: data.Images, n: int) -> Tensor:
    """The first n of a drawn subset, which is balanced up to any n; the defender's copies carry no trigger."""
    return source.inputs(data.take(images, range(n)))
