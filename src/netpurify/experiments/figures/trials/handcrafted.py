"""Trial of Figure 19: a backdoor written into the weights of a trained network, and purified.

After Hong et al., "Handcrafted Backdoors in Deep Neural Networks" (NeurIPS 2022): the attacker trains nothing. A few
filters that matter little become detectors of the trigger, and their output weights send what they detect to
the target.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from netpurify import network
from netpurify.contaminate import Pixels, measure
from netpurify.experiments.figures.trials.altered_weights import Cell
from netpurify.experiments.figures.trials.three_classes import ThreeClasses
from netpurify.paper import PatchCNN, Training, compare, purify, train

TARGET = 0
STRENGTH = 1.0
"""Weight of a detector at each pixel of the trigger; initial weights have a standard deviation of 0.05."""
PUSH = 4.0
"""Size of a detector's output weights; those of the trained networks are below 1 for the most part."""
EXACT = 1e-6
CLEAN = ("all training images", "9 training images", "99 other images")


@dataclass(frozen=True, slots=True)
class Victim:
    """A trained network, the images that it and the defender have, and the trigger."""

    training: Training
    inputs: Tensor
    outside: Tensor
    test: Tensor
    labels: Tensor
    trigger: Pixels

    def rates(self, model: torch.nn.Module) -> Cell:
        """Accuracy and attack success on the test images."""
        found = measure(model, self.test, self.labels, trigger=self.trigger, target=TARGET)
        return {"accuracy": found.accuracy, "asr": found.asr, "ra": found.ra}

    def clean(self, name: str) -> Tensor:
        """The defender's images; see ``CLEAN``."""
        return {CLEAN[0]: self.inputs, CLEAN[1]: self.inputs[:9], CLEAN[2]: self.outside}[name]


def handcrafted(
    settings: Cell, seed: int, *, edits: Sequence[tuple[int, float]], everything: Sequence[float]
) -> list[Cell]:
    """One trained network; every edit of it, which is a number of filters and the share of their weights set to 0.

    Edits whose share is in ``everything`` are purified with every set of clean images and by least squares too, all
    others with all training images alone.
    """
    victim = _victim(settings, seed)
    none: Cell = {"filters": 0, "erased": 0.0}
    rows = [{**none, "method": "never attacked", **victim.rates(victim.training.trained)}]
    for filters, erased in edits:
        edited, chosen = attacked(victim, filters, erased, seed)
        changed = (edited.layers[0].weight != victim.training.trained.layers[0].weight)[chosen]
        head: Cell = {"filters": filters, "erased": erased, "edited": float(changed.double().mean())}
        rows.append({**head, "method": "attacked", **victim.rates(edited)})
        ways = [*_with_training_images(victim, edited, chosen)]
        if erased in everything:
            ways += _in_other_ways(victim, edited, chosen)
        rows += [{**head, **row} for row in ways]
    return rows


def _victim(settings: Cell, seed: int) -> Victim:
    generator = torch.Generator().manual_seed(seed)
    source = ThreeClasses(settings["data"])
    inside, outside = source.draw((settings["training"], 99), generator)
    inputs = source.inputs(inside)
    start = PatchCNN(m=settings["m"], k=settings["k"], p=settings["p"], classes=3, generator=generator)
    options = {"gamma": settings["gamma"], "steps": settings["steps"], "regime": "sequential"}
    training = train(start, inputs, inside.labels, **options)
    test = source.test()
    side = 32 if source.colour else 28
    trigger = Pixels(pixels_of(settings["trigger"], side), source.value(0.0 if source.colour else 1.0))
    return Victim(training, inputs, source.inputs(outside), source.inputs(test), test.labels, trigger)


def pixels_of(trigger: str, side: int) -> tuple[int, ...]:
    """The pixels of a trigger: the paper's, or a square where digits leave ink."""
    if trigger == "first five pixels":
        return tuple(range(5))
    return tuple(row * side + column for row in (4, 5, 6) for column in (20, 21, 22))


def attacked(victim: Victim, filters: int, erased: float, seed: int) -> tuple[PatchCNN, Tensor]:
    """The network with a handcrafted backdoor, and the positions of the filters that became detectors.

    The filters are those with the least influence on the outputs. Their weights at the trigger's pixels become
    ``STRENGTH``, with the sign of the trigger, and a share ``erased`` of all others becomes 0.
    """
    trained = victim.training.trained
    model = copy.deepcopy(trained)
    hidden, output = model.layers
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        active = trained.layers[0](trained.patches(victim.inputs)).relu().square().mean(0)
        chosen = (active * output.weight.square().sum(0)).argsort()[:filters]
        gone = torch.rand(filters, trained.k, generator=generator) < erased
        detector = torch.where(gone, torch.zeros_like(hidden.weight[chosen]), hidden.weight[chosen])
        at = [position % trained.k for position in victim.trigger.positions]
        detector[:, at] = STRENGTH if victim.trigger.value > 0.0 else -STRENGTH
        hidden.weight[chosen] = detector
        output.weight[:, chosen] = -PUSH
        output.weight[TARGET, chosen] = PUSH
    return model, chosen


def _with_training_images(victim: Victim, edited: PatchCNN, chosen: Tensor) -> Iterator[Cell]:
    """Algorithm 2 and the policy *recover*, with all training images."""
    yield _by_l1(victim, edited, chosen, CLEAN[0])
    policy = network.Recover(victim.training.initial, proof=False)
    result = network.purify(edited, victim.inputs, policy=policy)
    model = copy.deepcopy(edited)
    model.load_state_dict(result.model.state_dict())
    told = result.layers[0].grade == network.Grade.RECOVERED
    unjudged = sum(layer.unjudged for layer in result.layers)
    found = _compared(victim, model, chosen, told)
    yield {"method": "recover", "clean": CLEAN[0], "unjudged": unjudged, **found}


def _in_other_ways(victim: Victim, edited: PatchCNN, chosen: Tensor) -> Iterator[Cell]:
    """Algorithm 2 with the other sets of clean images, and least squares with all training images."""
    for name in CLEAN[1:]:
        yield _by_l1(victim, edited, chosen, name)
    squares = purify(edited, victim.training.initial, victim.inputs, fit="l2")
    yield {"method": "l2", "clean": CLEAN[0], **_compared(victim, squares.model, chosen, None)}


def _by_l1(victim: Victim, edited: PatchCNN, chosen: Tensor, clean: str) -> Cell:
    found = purify(edited, victim.training.initial, victim.clean(clean), certify=False)
    layer = found.layers[0]
    live = None if layer.design is None else int(layer.design.live.size)
    compared = _compared(victim, found.model, chosen, layer.recovered.numpy())
    return {"method": "l1", "clean": clean, "rank": layer.rank, "live": live, **compared}


def _compared(victim: Victim, model: PatchCNN, chosen: Tensor, told: np.ndarray | None) -> Cell:
    """Rates, exact units, and of the edited filters: the share that is exact, called recovered, and wrongly so."""
    trained = victim.training.trained
    hidden, output = compare(model, trained).values()
    error = (model.layers[0].weight - trained.layers[0].weight)[chosen].detach().abs().amax(1)
    exact = (error <= EXACT).numpy()
    called = None if told is None else told[chosen.numpy()]
    return {
        **victim.rates(model),
        "W_exact": hidden.exact,
        "beta_exact": output.exact,
        "largest": max(hidden.largest, output.largest),
        "edited_exact": float(exact.mean()),
        "called": None if called is None else float(called.mean()),
        "wrongly": None if called is None else float((called & ~exact).mean()),
    }
