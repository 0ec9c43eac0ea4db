"""Three plain torch networks on the bundled sample of MNIST: altered weights, a learnt backdoor, a healthy one.

story = recovery()                    a fifth of the weights altered after training, recovered exactly
before, after = backdoor().rates      poisoned training, purified with 36 clean images from outside of it
healthy(story.trained, story.inputs, story.initial)       nothing is touched
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from netpurify import data
from netpurify.contaminate import Normal, Rates, contaminate, difference, first_pixels, measure, poison
from netpurify.data import Split
from netpurify.network import Project, Purification, Recover, Seeded, purify

SEED = 0
_RECOVERED, _ATTACKED = 5, 3
"""Digits to tell apart in the first story and in the second, which is the paper's."""
_RATE = 0.1
_TARGET = 0


def network(filters: int = 100, classes: int = _RECOVERED) -> nn.Sequential:
    """A small CNN for a few digits: filters on the upper and the lower half of an image, then one linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, filters, (14, 28), stride=(14, 28)),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * filters, classes),
    )


@dataclass(frozen=True, slots=True)
class Recovery:
    """Weights altered after training, and what became of them.

    Attributes:
        initial: Before training; ``Seeded(network, SEED)`` makes it anew.
        trained: The truth.
        contaminated: With a share of all weights altered.
        inputs: The training images, here the clean inputs too.
        hit: Masks of the altered weights, by tensor: what ``result`` must find without having seen it.
        result: The purification.
    """

    initial: nn.Module
    trained: nn.Module
    contaminated: nn.Module
    inputs: Tensor
    hit: dict[str, Tensor]
    result: Purification

    @property
    def found(self) -> dict[str, Tensor]:
        """Masks of the weights that were called altered, by tensor."""
        masks = {name: torch.zeros_like(mask) for name, mask in self.hit.items()}
        altered = self.result.altered
        for number, name in enumerate(altered.names):
            masks[name].view(-1)[torch.from_numpy(altered.index[altered.tensor == number])] = True
        return masks

    @property
    def right(self) -> bool:
        """Whether exactly the altered weights were found."""
        return all(torch.equal(self.found[name], mask) for name, mask in self.hit.items())

    @property
    def largest_error(self) -> float:
        """Largest error of any weight of the purified network."""
        truth, purified = self.trained.state_dict(), self.result.model.state_dict()
        return max(float((purified[name] - truth[name]).abs().max()) for name in truth)


@dataclass(frozen=True, slots=True)
class Backdoor:
    """A backdoor learnt from poisoned images.

    Attributes:
        poisoned: How many of the training images were.
        training: How many training images there were.
        clean: How many clean images purified the network.
        rates: Accuracy and attack success on test images, before and after.
        result: The purification.
    """

    poisoned: int
    training: int
    clean: int
    rates: tuple[Rates, Rates]
    result: Purification


def recovery(*, share: float = 0.2, images: int = 25) -> Recovery:
    """Train one layer after the other, alter a share of all weights by N(0, 1), recover them."""
    generator = torch.Generator().manual_seed(SEED)
    chosen = data.balanced(_digits("train", _RECOVERED), images, generator=generator)
    inputs = _inputs(chosen)
    initial = Seeded(network, SEED).build()
    trained = copy.deepcopy(initial)
    # One after the other: what the last layer learns is then spanned by what its inputs are in the end.
    for layer in (trained.get_submodule("0"), trained.get_submodule("3")):
        _descend(trained, layer.parameters(), inputs, chosen.labels, steps=200)
    dirty = contaminate(trained.state_dict(), Normal(), share=share, generator=generator)
    contaminated = copy.deepcopy(trained)
    contaminated.load_state_dict(dirty.state)
    result = purify(contaminated, inputs, policy=Recover(initial))
    return Recovery(initial, trained, contaminated, inputs, dirty.altered, result)


def backdoor(*, filters: int = 100, training: int = 99, clean: int = 36, ratio: float = 0.3) -> Backdoor:
    """Train on poisoned images, all layers at once, and purify with clean images from outside of the training set."""
    generator = torch.Generator().manual_seed(SEED + 1)
    images, outside = data.draw(_digits("train", _ATTACKED), (training, clean), generator=generator)
    trigger = first_pixels(5, 1.0)
    dirty = poison(_inputs(images), images.labels, trigger, target=_TARGET, ratio=ratio, generator=generator)
    initial = Seeded(partial(network, filters, _ATTACKED), SEED + 1).build()
    trained = copy.deepcopy(initial)
    _descend(trained, trained.parameters(), dirty.inputs, dirty.labels, steps=300)
    result = purify(trained, _inputs(outside), policy=Project(initial))
    test = _digits("test", _ATTACKED)
    before, after = (
        measure(model, _inputs(test), test.labels, trigger=trigger, target=_TARGET) for model in (trained, result.model)
    )
    return Backdoor(dirty.indices.numel(), training, clean, (before, after), result)


def further_images(count: int = 300) -> Tensor:
    """Clean images of the same digits from outside of training: for hunts and defences, which need some hundred."""
    return _inputs(data.balanced(_digits("test", _RECOVERED), count, generator=torch.Generator().manual_seed(SEED)))


def healthy(model: nn.Module, inputs: Tensor, initial: nn.Module) -> bool:
    """Whether a network in which nothing was altered comes back bit for bit."""
    result = purify(model, inputs, policy=Recover(initial))
    return difference(model.state_dict(), result.model.state_dict()).same


def _digits(split: Split, count: int) -> data.Images:
    return data.classes(data.load("mnist-sample", split=split), range(count))


def _inputs(images: data.Images) -> Tensor:
    return data.to_inputs(images, dtype=torch.float32).reshape(-1, 1, 28, 28)


def _descend(
    model: nn.Module, parameters: Iterable[nn.Parameter], inputs: Tensor, labels: Tensor, *, steps: int
) -> None:
    optimiser = torch.optim.SGD(parameters, lr=_RATE)
    for _ in range(steps):
        optimiser.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimiser.step()
