"""What a result says of the past stays true after weights, activations and the caller's tensors are written over."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from netpurify import report
from netpurify.contaminate import BitFlip, Normal
from netpurify.network import Defend, Project, Recover, check, purify
from tests.network import made_networks as networks


def trained(*, bias, kind="linear", dtype=torch.float32, steps=100):
    """A layer trained on few inputs, or not at all: (network, initial, inputs)."""
    if kind == "linear":
        network = networks.seeded(lambda: nn.Sequential(nn.Linear(200, 16, bias=bias)))
        inputs = networks.seeded(lambda: torch.randn(20, 200), seed=1)
    else:
        network = networks.seeded(lambda: nn.Sequential(nn.Conv2d(4, 16, 10, groups=2, bias=bias), nn.Flatten()))
        inputs = networks.seeded(lambda: torch.randn(20, 4, 10, 10), seed=1)
    network, inputs = network.to(dtype), inputs.to(dtype)
    initial = copy.deepcopy(network)
    networks.train(network, inputs, torch.arange(20) % 16, network.parameters(), steps=steps)
    return network, initial, inputs


@pytest.mark.parametrize("steps", [0, 100], ids=["frozen", "trained"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_altered_weights_are_listed_with_what_they_were(kind, bias, steps, dtype):
    network, initial, inputs = trained(bias=bias, kind=kind, dtype=dtype, steps=steps)
    dirty, masks = networks.altered(network, Normal(0.0, 5.0), 0.05)
    result = purify(dirty, inputs, policy=Recover(initial))
    assert result.layers[0].frozen == (steps == 0)
    assert networks.positions(result.altered) == networks.truth(masks)
    table = result.altered
    for tensor, name in enumerate(table.names):
        mine = table.tensor == tensor
        place = torch.from_numpy(table.index[mine])
        assert np.array_equal(table.was[mine], dirty.state_dict()[name].reshape(-1)[place].double().numpy())
        assert np.array_equal(table.now[mine], result.model.state_dict()[name].reshape(-1)[place].double().numpy())
    assert result.layers[0].changed == len(table)
    messages = [one["message"]["text"] for one in report.sarif(result, file="model.pt")["runs"][0]["results"]]
    assert messages
    assert all("largest change" in text and "largest change 0 " not in text for text in messages)


@pytest.mark.parametrize("bias", [False, True])
def test_approximate_repairs_are_listed_with_what_they_were(bias):
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(60, 40, bias=bias)))
    initial, inputs = copy.deepcopy(network), networks.seeded(lambda: torch.randn(400, 60), seed=1)
    networks.train(network, inputs, torch.arange(400) % 40, network.parameters(), steps=20, lr=0.01)
    dirty, masks = networks.altered(network, BitFlip(30), 0.01, names=["0.weight"])
    result = purify(dirty, inputs, policy=Recover(initial))
    assert networks.positions(result.altered) == networks.truth(masks)
    place = torch.from_numpy(result.altered.index)
    assert np.array_equal(result.altered.was, dirty[0].weight.detach().reshape(-1)[place].double().numpy())
    assert result.layers[0].changed == len(result.altered)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("steps", [0, 100], ids=["frozen", "trained"])
def test_project_counts_what_it_changed(bias, steps):
    network, initial, inputs = trained(bias=bias, steps=steps)
    dirty, _ = networks.altered(network, Normal(0.0, 5.0), 0.05)
    result = purify(dirty, inputs, policy=Project(initial))
    after, before = result.model.state_dict(), dirty.state_dict()
    changed = sum(int((after[name] != before[name]).sum()) for name in before)
    assert result.layers[0].changed == changed > 0


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_defence_says_how_far_weights_moved(bias, dtype):
    network, _, inputs = trained(bias=bias, dtype=dtype)
    result = purify(network, inputs, policy=Defend(strength=0.5, guard=False))
    before, after = network.state_dict(), result.model.state_dict()
    moved = sum(float((after[name] - value).square().sum()) for name, value in before.items())
    size = sum(float(value.square().sum()) for value in before.values())
    assert result.layers[0].change == pytest.approx((moved / size) ** 0.5, rel=1e-4)


def test_initial_weights_that_the_caller_trains_on_do_not_reach_the_result():
    network, initial, inputs = trained(bias=False)
    dirty, _ = networks.altered(network, Normal(0.0, 5.0), 0.05)
    result = purify(dirty, inputs, policy=Recover(initial))
    assert result.verify().sound
    with torch.no_grad():
        initial[0].weight += 1.0
    assert result.verify().sound


class InPlace(nn.Module):
    """Works in place on what its second layer was given."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.Linear(30, 30, bias=False) for _ in range(2))

    def forward(self, inputs):
        hidden = self.first(inputs)
        hidden.add_(self.second(hidden)).clamp_(min=100.0)
        return hidden


def test_plan_sees_what_a_layer_was_given_though_the_network_works_in_place():
    network = networks.seeded(InPlace).double()
    inputs = networks.seeded(lambda: torch.randn(8, 30)).double()
    assert [layer.rank for layer in check(network, inputs, initial=network).layers] == [8, 8]


class OwnOutput(nn.Module):
    """Gives its own weights as its output."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(200, 16, bias=False)

    def forward(self, inputs):
        self.layer(inputs)
        return self.layer.weight


def test_outputs_before_are_not_those_after():
    initial = networks.seeded(OwnOutput)
    dirty, _ = networks.altered(initial, Normal(0.0, 5.0), 0.05)
    result = purify(dirty, torch.randn(5, 200, generator=torch.Generator().manual_seed(0)), policy=Recover(initial))
    assert result.agreement.change > 0.1
