"""Small networks that were really contaminated and purified, each made once."""

import copy
from collections import OrderedDict
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from netpurify.contaminate import Normal, contaminate
from netpurify.network import Plan, Project, Purification, Recover, check, purify

HOSTILE = "<script>alert(1)</script>"


def inputs() -> Tensor:
    return torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(5))


def network(first: str = "conv", last: str = "head") -> nn.Sequential:
    parts = [(first, nn.Conv2d(1, 8, (4, 8), stride=(4, 8))), ("relu", nn.ReLU()), ("flat", nn.Flatten())]
    parts += [("norm", nn.BatchNorm1d(16)), (last, nn.Linear(16, 4))]
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        for _, module in parts:
            if isinstance(module, nn.Conv2d | nn.Linear):
                module.reset_parameters()
    return nn.Sequential(OrderedDict(parts)).eval()


def trained(first: str = "conv", last: str = "head", *, frozen: bool = False) -> tuple[nn.Sequential, nn.Sequential]:
    """A trained network and what training began with; few inputs, so that each layer spans less than its fan-in."""
    net = network(first, last)
    initial = copy.deepcopy(net)
    labels = torch.arange(6) % 4
    chosen = net.get_submodule(last) if frozen else net.get_submodule(first)
    optimizer = torch.optim.SGD(chosen.parameters(), lr=0.2)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs()[:6]), labels).backward()
        optimizer.step()
    return net, initial


def altered(net: nn.Module, share: float) -> nn.Module:
    kept = {name: value for name, value in net.state_dict().items() if "norm" not in name}
    done = contaminate(kept, Normal(0.0, 1.0), share=share, generator=torch.Generator().manual_seed(1))
    found = copy.deepcopy(net)
    found.load_state_dict({**net.state_dict(), **done.state})
    return found


@cache
def recovered() -> Purification:
    """Trained in its first layer, one weight in ten altered; a BatchNorm is skipped."""
    net, initial = trained()
    return purify(altered(net, 0.1), inputs()[:6], policy=Recover(initial))


@cache
def planned() -> Plan:
    net, initial = trained()
    return check(altered(net, 0.1), inputs()[:6], initial=initial)


@cache
def untouched() -> Purification:
    net, initial = trained()
    return purify(net, inputs()[:6], policy=Recover(initial))


@cache
def hostile() -> Purification:
    """Layers whose names are markup."""
    net, initial = trained(HOSTILE, "a\"b'{0}[x](http://y)&amp;")
    return purify(altered(net, 0.1), inputs()[:6], policy=Recover(initial))


@cache
def mixed() -> Purification:
    """A layer in which nothing can be proven, with a NaN and wild weights, before one that was never trained."""
    net, initial = trained()
    dirty = copy.deepcopy(net)
    with torch.no_grad():
        weight = dirty.get_submodule("conv").get_parameter("weight")
        weight[0, 0, 1, 2] = float("nan")
        weight[3, 0, 0, 0] = float("-inf")
        weight[5, 0, 2, 2] = 1e30
        dirty.get_submodule("head").get_parameter("weight")[1, 3] = 4.0
    data = torch.rand(80, 1, 8, 8, generator=torch.Generator().manual_seed(6))
    return purify(dirty, data, policy=Recover(initial))


@cache
def projected() -> Purification:
    net, initial = trained()
    return purify(altered(net, 0.1), inputs()[:6], policy=Project(initial, proof=False))


KINDS = {
    "conv1d": (lambda: nn.Conv1d(3, 5, 4), (1, 3, 6)),
    "conv3d": (lambda: nn.Conv3d(2, 6, (2, 3, 3)), (3, 2, 3, 4, 3)),
    "groups": (lambda: nn.Conv2d(6, 8, 3, groups=2, bias=False), (2, 6, 4, 4)),
    "linear": (lambda: nn.Linear(30, 9, bias=False), (5, 30)),
}


@cache
def kind(name: str) -> Purification:
    """A network that is a single layer, and so has no name, each unit moved by training and altered in a weight."""
    make, shape = KINDS[name]
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        initial = make()
    data = torch.rand(shape, generator=torch.Generator().manual_seed(2))
    net = copy.deepcopy(initial)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        net(data).square().sum().backward()
        optimizer.step()
    with torch.no_grad():
        for unit in range(net.weight.shape[0]):
            net.weight[unit].view(-1)[2 * unit] += 1.0
    return purify(net, data, policy=Recover(initial))


@cache
def deep(layers: int = 100) -> Purification:
    """As many layers as a deep network has, each a copy of one that was purified."""
    one = recovered()
    first = one.layers[0]
    names = [f"block{number}.conv" for number in range(layers)]
    records = tuple(
        replace(first, name=name, altered=replace(first.altered, names=(f"{name}.weight", f"{name}.bias")))
        for name in names
    )
    state = {f"{name}.{part}": one.contaminated[f"conv.{part}"] for name in names for part in ("weight", "bias")}
    return replace(one, layers=records, contaminated=state)
