"""Small networks that tests train, alter and purify."""

import copy

import torch
from torch import nn

from netpurify import Defend, purify
from netpurify.contaminate import contaminate


def defend(model, data, *, layers=None, forward=None, batch=32, progress=None, **options):
    """``purify`` with the policy ``Defend(**options)``."""
    return purify(model, data, policy=Defend(**options), layers=layers, forward=forward, batch=batch, progress=progress)


def seeded(build, seed=0):
    """What ``build`` makes with torch's global generator at this seed, which is put back afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build()


def train(network, inputs, labels, parameters, *, steps=200, **options):
    """Full-batch SGD on some of a network's parameters."""
    optimiser = torch.optim.SGD(list(parameters), **({"lr": 0.05} | options))
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        optimiser.step()


def head(decay=0.0, steps=300, units=10):
    """A Linear head trained with momentum on 96 samples: (network, initial, inputs)."""
    network = seeded(lambda: nn.Sequential(nn.Linear(512, units)))
    inputs, labels = seeded(lambda: (torch.randn(96, 512).relu(), torch.randint(0, units, (96,))), seed=1)
    initial = copy.deepcopy(network)
    train(network, inputs, labels, network.parameters(), steps=steps, momentum=0.9, weight_decay=decay)
    return network, initial, inputs


def patches():
    """A CNN on 28x28 images, one layer trained after the other: (network, initial, inputs)."""
    network = seeded(
        lambda: nn.Sequential(nn.Conv2d(1, 40, (14, 28), stride=(14, 28)), nn.ReLU(), nn.Flatten(), nn.Linear(80, 5))
    )
    inputs, labels = seeded(lambda: (torch.rand(20, 1, 28, 28), torch.randint(0, 5, (20,))), seed=1)
    initial = copy.deepcopy(network)
    for layer in (network[0], network[3]):
        train(network, inputs, labels, layer.parameters(), lr=0.1)
    return network, initial, inputs


def altered(network, law, share, seed=2, names=None):
    """An altered copy, and the mask of what is altered by name."""
    dirty = copy.deepcopy(network)
    found = contaminate(
        network.state_dict(), law, share=share, generator=torch.Generator().manual_seed(seed), names=names
    )
    dirty.load_state_dict(found.state)
    return dirty, found.altered


def largest_error(a, b):
    return max(float((value - b.state_dict()[name]).abs().max()) for name, value in a.state_dict().items())


def same_bits(a, b):
    pairs = [(value, b.state_dict()[name]) for name, value in a.state_dict().items()]
    return all(torch.equal(*(it.reshape(-1).view(torch.uint8) for it in pair)) for pair in pairs)


def positions(table):
    """The altered table as a set of (tensor, index)."""
    return {(table.names[tensor], int(index)) for tensor, index in zip(table.tensor, table.index, strict=True)}


def truth(masks):
    return {(name, int(index)) for name, mask in masks.items() for index in mask.reshape(-1).nonzero()}
