"""Small networks with and without a backdoor, on the bundled sample of MNIST."""

import torch
from torch import Tensor, nn

from netpurify import data
from netpurify.contaminate import Patch, Recipe, poison, train

TARGET = 3
PATCH = Patch(top=4, left=4)


def images(split: str, count: int) -> tuple[Tensor, Tensor]:
    """Images [n, 1, 28, 28] in [0, 1] with their labels, in mixed order."""
    source = data.load("mnist-sample", split=split)
    chosen = torch.randperm(len(source), generator=torch.Generator().manual_seed(1))[:count]
    return source.pixels[chosen].float()[:, None] / 255, source.labels[chosen]


def build() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def trained(*, poisoned: bool) -> nn.Module:
    """A network of some thousand weights, in two seconds."""
    inputs, labels = images("train", 3000)
    if poisoned:
        dirty = poison(
            inputs, labels, PATCH, target=TARGET, ratio=0.1, generator=torch.Generator().manual_seed(0), source="other"
        )
        inputs, labels = dirty.inputs, dirty.labels
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        network = build()
    return train(network, inputs, labels, recipe=Recipe(epochs=6, rate=0.1, batch=64), seed=0).model
