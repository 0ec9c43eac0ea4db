"""Small networks that were really defended, each made once."""

from collections import OrderedDict
from functools import cache

import torch
from torch import Tensor, nn

from netpurify.network import Defence, Defend, purify

HOSTILE = "<script>alert(1)</script>"


def inputs(count: int = 200) -> Tensor:
    """Images of four kinds, a bright quarter each, and noise."""
    generator = torch.Generator().manual_seed(5)
    images = 1.5 * torch.randn(count, 1, 8, 8, generator=generator)
    for kind in range(4):
        row, column = 4 * (kind // 2), 4 * (kind % 2)
        images[kind::4, :, row : row + 4, column : column + 4] += 1.0
    return images


@cache
def network(first: str = "conv", last: str = "head") -> nn.Sequential:
    """Trained to tell the four kinds apart."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        parts = [(first, nn.Conv2d(1, 6, 3, padding=1)), ("norm", nn.BatchNorm2d(6)), ("relu", nn.ReLU())]
        parts += [("pool", nn.AvgPool2d(4)), ("flat", nn.Flatten()), (last, nn.Linear(24, 4))]
        net = nn.Sequential(OrderedDict(parts))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs()), torch.arange(200) % 4).backward()
        optimizer.step()
    return net.eval()


@cache
def automatic() -> Defence:
    """With guards, and a strength that was chosen."""
    return purify(network(), inputs(), policy=Defend())


@cache
def asked() -> Defence:
    """Without guards, one layer alone, a strength that was asked for."""
    return purify(network(), inputs(), policy=Defend(0.3, guard=False, max_disagreement=0.9), layers=["head"])


@cache
def costly() -> Defence:
    """Of a network that is sure of itself and wrong about everything: even the weakest strength is too strong."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 40))
        with torch.no_grad():
            net[2].weight.mul_(200.0)
    return purify(net, torch.randn(200, 64, generator=torch.Generator().manual_seed(1)), policy=Defend())


@cache
def uncounted() -> Defence:
    """Of a network that gives no scores of classes, and is one layer without a name."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        net = nn.Linear(6, 1)
    return purify(net, torch.randn(50, 6, generator=torch.Generator().manual_seed(1)), policy=Defend(0.1))


@cache
def hostile() -> Defence:
    """Layers whose names are markup."""
    return purify(network(HOSTILE, "a\"b'{0}[x](http://y)&amp;"), inputs(), policy=Defend())
