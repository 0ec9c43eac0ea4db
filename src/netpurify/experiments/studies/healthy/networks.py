"""Small healthy networks of many kinds, trained by many optimisers.

A case is a kind of network, an optimiser, a number of steps and a dtype. The number of training inputs, the size of a
batch and the learning rate are drawn from a seed that depends on the case alone, so that a case gives the same network
whatever else is run.
"""

import copy
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from netpurify.experiments.studies.blocks import ResidualBlock
from netpurify.network import Seeded

SIDE = 12
WORDS = 400
FEATURES = 160
CLASSES = 8
OPTIMISERS: dict[str, Callable[[list[nn.Parameter], float], torch.optim.Optimizer]] = {
    "SGD": lambda values, rate: torch.optim.SGD(values, lr=0.1 * rate),
    "SGD, decay": lambda values, rate: torch.optim.SGD(values, lr=0.1 * rate, weight_decay=1e-3),
    "momentum": lambda values, rate: torch.optim.SGD(values, lr=0.05 * rate, momentum=0.9),
    "Nesterov": lambda values, rate: torch.optim.SGD(values, lr=0.05 * rate, momentum=0.9, nesterov=True),
    "Adam": lambda values, rate: torch.optim.Adam(values, lr=3e-3 * rate),
    "AdamW": lambda values, rate: torch.optim.AdamW(values, lr=3e-3 * rate),
    "RMSprop": lambda values, rate: torch.optim.RMSprop(values, lr=1e-3 * rate),
    "Adagrad": lambda values, rate: torch.optim.Adagrad(values, lr=1e-2 * rate),
    "Rprop": lambda values, rate: torch.optim.Rprop(values, lr=1e-2 * rate),
    "L-BFGS": lambda values, rate: torch.optim.LBFGS(values, lr=0.3 * rate, max_iter=4),
}
STEPS = (1, 10, 100)
DTYPES = {"float32": torch.float32, "float64": torch.float64}
CLEAN = ("training inputs", "half of them", "others of their kind", "another kind")


def mlp(*, bias: bool = True) -> nn.Sequential:
    """Three layers on all pixels."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(SIDE * SIDE, 40, bias=bias), nn.ReLU(), nn.Linear(40, 24, bias=bias), nn.ReLU(),
        nn.Linear(24, CLASSES, bias=bias),
    )  # fmt: skip


def cnn(*, bias: bool = True) -> nn.Sequential:
    """Two convolutions and a head."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=bias), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, bias=bias), nn.ReLU(),
        nn.Flatten(), nn.Linear(256, CLASSES, bias=bias),
    )  # fmt: skip


def resnet() -> nn.Sequential:
    """Convolutions with BatchNorm and a residual block."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), ResidualBlock(8),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, CLASSES),
    )  # fmt: skip


def depthwise() -> nn.Sequential:
    """Depthwise and pointwise convolutions."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1, groups=6),
        nn.Conv2d(6, 16, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(144, CLASSES),
    )  # fmt: skip


def patches() -> nn.Sequential:
    """One convolution that sees half an image at a time, as in the paper."""
    return nn.Sequential(
        nn.Conv2d(1, 20, (SIDE // 2, SIDE), stride=(SIDE // 2, SIDE)), nn.ReLU(), nn.Flatten(), nn.Linear(40, CLASSES)
    )


def bag_of_words() -> nn.Sequential:
    """Two layers on counts of words, of which each input has few."""
    return nn.Sequential(nn.Linear(WORDS, 24), nn.ReLU(), nn.Linear(24, CLASSES))


def uneven() -> nn.Sequential:
    """Three layers on features of very different size, with LayerNorm between them."""
    return nn.Sequential(
        nn.Linear(FEATURES, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 32, bias=False), nn.GELU(),
        nn.Linear(32, CLASSES),
    )  # fmt: skip


def digits(count: int, generator: torch.Generator) -> Tensor:
    """Smooth blobs in the middle of an image with a blank border, in two tones."""
    small = torch.rand(count, 1, 4, 4, generator=generator)
    blob = nn.functional.interpolate((small - 0.4).clamp(min=0.0), size=SIDE - 4, mode="bilinear")
    return nn.functional.pad(blob, (2, 2, 2, 2)) * 1.6


def noise(count: int, generator: torch.Generator) -> Tensor:
    """Images that are lit everywhere."""
    return torch.rand(count, 1, SIDE, SIDE, generator=generator)


def texts(count: int, generator: torch.Generator, words: int = WORDS // 2) -> Tensor:
    """Counts of words; a few words are in most texts, most words in few."""
    odds = 1.0 / (1.0 + torch.arange(words)) ** 0.8
    drawn = torch.multinomial(odds.expand(count, -1), 12, replacement=True, generator=generator)
    return torch.zeros(count, WORDS).scatter_add_(1, drawn, torch.ones(count, 12))


def long_texts(count: int, generator: torch.Generator) -> Tensor:
    """Texts that have words that the others never have."""
    return texts(count, generator, WORDS) + texts(count, generator, WORDS)


def measurements(count: int, generator: torch.Generator) -> Tensor:
    """Features whose sizes span four orders of magnitude; a third is 0 more often than not."""
    sizes = torch.logspace(-2.0, 2.0, FEATURES)[torch.randperm(FEATURES, generator=torch.Generator().manual_seed(0))]
    found = torch.randn(count, FEATURES, generator=generator)
    rare = torch.rand(count, FEATURES, generator=generator) < 0.9
    rare[:, FEATURES // 3 :] = False
    return 0.1 * sizes * found.masked_fill(rare, 0.0)


def other_measurements(count: int, generator: torch.Generator) -> Tensor:
    """Features of the same size all over."""
    return torch.randn(count, FEATURES, generator=generator)


Draw = Callable[[int, torch.Generator], Tensor]
KINDS: dict[str, tuple[Callable[[], nn.Sequential], Draw, Draw]] = {
    "MLP": (mlp, digits, noise),
    "MLP without bias": (lambda: mlp(bias=False), digits, noise),
    "CNN": (cnn, digits, noise),
    "CNN without bias": (lambda: cnn(bias=False), digits, noise),
    "ResNet, BatchNorm": (resnet, digits, noise),
    "depthwise CNN": (depthwise, digits, noise),
    "patches": (patches, digits, noise),
    "bag of words": (bag_of_words, texts, long_texts),
    "uneven features": (uneven, measurements, other_measurements),
}


@dataclass(frozen=True, slots=True)
class HealthyCase:
    """How a healthy network is built and trained.

    Attributes:
        kind: Kind of network, one of ``KINDS``.
        optimiser: One of ``OPTIMISERS``.
        steps: Number of steps.
        dtype: One of ``DTYPES``.
        seed: Number of the network among those with the same other settings.
    """

    kind: str
    optimiser: str
    steps: int
    dtype: str
    seed: int

    @property
    def name(self) -> str:
        """A text from which all random numbers of the case follow."""
        return f"{self.kind}, {self.optimiser}, {self.steps} steps, {self.dtype}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class HealthyNetwork:
    """A trained network in which nothing is wrong, its initial weights, and clean inputs of each kind."""

    network: nn.Sequential
    initial: nn.Sequential
    clean: dict[str, Tensor]


def cases(seeds: Iterable[int]) -> Iterator[HealthyCase]:
    """All cases, in an order in which every stretch has many kinds of networks."""
    for seed, steps, dtype, optimiser, kind in product(seeds, STEPS, DTYPES, OPTIMISERS, KINDS):
        yield HealthyCase(kind, optimiser, steps, dtype, seed)


def make(case: HealthyCase) -> HealthyNetwork:
    """Train the network of a case."""
    build, draw, draw_other = KINDS[case.kind]
    generator = torch.Generator().manual_seed(zlib.crc32(case.name.encode()))

    def choose(values: tuple[float, ...]) -> float:
        return values[int(torch.randint(len(values), (), generator=generator))]

    count, batch, rate = int(choose((4, 12, 40, 120))), int(choose((8, 1000))), choose((0.3, 1.0, 3.0))
    network = Seeded(build, int(torch.randint(1 << 30, (), generator=generator))).build().to(DTYPES[case.dtype])
    assert isinstance(network, nn.Sequential)
    inputs, same, other = (sample(count, generator).to(DTYPES[case.dtype]) for sample in (draw, draw, draw_other))
    labels = torch.randint(CLASSES, (count,), generator=generator)
    initial = copy.deepcopy(network)
    optimiser = OPTIMISERS[case.optimiser](list(network.parameters()), rate)
    for _ in range(case.steps):
        chosen = torch.randperm(count, generator=generator)[:batch]

        def closure(chosen: Tensor = chosen) -> float:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(network(inputs[chosen]), labels[chosen])
            loss.backward()
            return float(loss.detach())

        optimiser.step(closure)
    kinds = (inputs, inputs[: max(2, count // 2)], same, other)
    return HealthyNetwork(network.eval(), initial.eval(), dict(zip(CLEAN, kinds, strict=True)))
