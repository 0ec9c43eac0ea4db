"""``check`` tries units before it promises anything: what it says for optimisers, wrong weights and later layers."""

import copy

import pytest
import torch
from torch import nn

from netpurify.contaminate import Erase, Normal
from netpurify.network import Recover, check, purify
from tests.network import made_networks as networks


def trained(make, *, steps=60):
    """A network of one wide layer and a head, trained by an optimiser of torch: (network, initial, inputs)."""
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(300, 24), nn.Tanh(), nn.Linear(24, 4)))
    inputs, labels = networks.seeded(lambda: (torch.randn(20, 300), torch.randint(0, 4, (20,))), seed=1)
    initial = copy.deepcopy(network)
    optimiser = make(network.parameters())
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        optimiser.step()
    return network, initial, inputs


def small():
    return nn.Sequential(nn.Linear(80, 40), nn.Tanh(), nn.Linear(40, 4))


def one_after_the_other():
    """Two layers that SGD trained one after the other, so that both are exact: (network, initial, inputs)."""
    network = networks.seeded(small)
    inputs, labels = networks.seeded(lambda: (torch.randn(8, 80), torch.randint(0, 4, (8,))), seed=1)
    initial = copy.deepcopy(network)
    for layer in (network[0], network[2]):
        networks.train(network, inputs, labels, layer.parameters(), steps=50)
    return network, initial, inputs


OPTIMISERS = {
    "SGD": (lambda values: torch.optim.SGD(values, lr=0.1), 8),
    "Nesterov": (lambda values: torch.optim.SGD(values, lr=0.05, momentum=0.9, nesterov=True), 8),
    "decay": (lambda values: torch.optim.SGD(values, lr=0.1, weight_decay=0.01), 8),
    "Adam": (lambda values: torch.optim.Adam(values, lr=0.003), 0),
    "AdamW": (lambda values: torch.optim.AdamW(values, lr=0.003), 0),
    "RMSprop": (lambda values: torch.optim.RMSprop(values, lr=0.001), 0),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_as_many_units_agree_as_purify_recovers(name):
    make, agreeing = OPTIMISERS[name]
    network, initial, inputs = trained(make)
    dirty, _ = networks.altered(network, Normal(0.0, 1.0), 0.05, names=["0.weight"])
    first, last = check(dirty, inputs, initial=initial).layers
    assert (first.probed, first.agreeing, first.repairable) == (8, agreeing, agreeing > 0)
    assert not first.provisional
    recovered = purify(dirty, inputs, policy=Recover(initial)).layers[0].count(0)
    assert recovered == (24 if agreeing else 0)
    if agreeing:
        assert first.reason.startswith("8 of 8 units tried agree on a fit")
        assert ("times the initial weights (weight decay)" in first.reason) == (name == "decay")
    else:
        assert first.reason.startswith(
            "none of 8 units tried agrees on a fit: the layer was trained with Adam, RMSprop"
        )
        assert "repairs first" not in first.reason
    assert last.provisional == (agreeing > 0 and last.probed > 0)


def test_strong_decay_is_found_where_inputs_are_of_very_different_size():
    """Trimmed least squares converges too slowly here, and gave a factor with which no unit agreed."""
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(120, 6)))
    sizes = torch.logspace(-2, 1, 120)
    inputs, labels = networks.seeded(lambda: (sizes * torch.rand(15, 120), torch.randint(0, 6, (15,))), seed=1)
    initial = copy.deepcopy(network)
    networks.train(network, inputs, labels, network.parameters(), steps=100, lr=0.01, momentum=0.9, weight_decay=0.05)
    dirty, masks = networks.altered(network, Normal(0.0, 0.02), 0.05, names=["0.weight"])
    result = purify(dirty, inputs, policy=Recover(initial))
    assert result.layers[0].count(0) == 6
    assert result.layers[0].decay < 0.9
    assert networks.positions(result.altered) == networks.truth(masks)
    assert check(dirty, inputs, initial=initial).layers[0].agreeing == 6


def test_other_initial_weights_are_named_as_a_cause_by_check_and_by_recover():
    network, initial, inputs = one_after_the_other()
    other = networks.seeded(small, seed=9)
    right, wrong = (check(network, inputs, initial=it) for it in (initial, other))
    assert (right.layers[0].probed, right.layers[0].agreeing) == (8, 8)
    assert (wrong.layers[0].probed, wrong.layers[0].agreeing, wrong.repairable) == (8, 0, ())
    assert "the initial weights are not those of its training" in wrong.layers[0].reason
    left = purify(network, inputs, policy=Recover(other)).layers[0]
    assert "the layer was trained with Adam, RMSprop or another optimiser" in left.reason
    assert "or the initial weights are not those of its training" in left.reason


def test_a_later_layer_is_undecided_until_those_before_it_are_repaired():
    network, initial, inputs = one_after_the_other()
    dirty, _ = networks.altered(network, Normal(0.0, 1.0), 0.05, names=["0.weight"])
    first, last = check(dirty, inputs, initial=initial).layers
    assert (first.agreeing, last.agreeing, last.probed) == (8, 0, 4)
    assert (last.provisional, last.undecided, last.repairable) == (True, True, False)
    assert (
        "recover repairs first (0): if weights are altered there, units may agree once they are repaired" in last.reason
    )
    assert purify(dirty, inputs, policy=Recover(initial)).layers[1].count(0) == 4
    healthy = check(network, inputs, initial=initial)
    assert healthy.repairable == ("0", "2")
    assert healthy.undecided == ()


def test_a_layer_over_an_altered_frozen_one_is_seen_through_its_initial_weights():
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(40, 200), nn.ReLU(), nn.Linear(200, 4)))
    inputs, labels = networks.seeded(lambda: (torch.randn(20, 40), torch.randint(0, 4, (20,))), seed=1)
    initial = copy.deepcopy(network)
    networks.train(network, inputs, labels, network[2].parameters())
    dirty, _ = networks.altered(network, Normal(0.0, 1.0), 0.05, names=["0.weight"])
    frozen, head = check(dirty, inputs, initial=initial).layers
    assert (frozen.frozen, frozen.probed, frozen.repairable) == (True, 0, True)
    assert (head.probed, head.agreeing, head.provisional) == (4, 4, False)


def test_missing_weights_are_left_out_of_the_units_that_are_tried():
    network, initial, inputs = one_after_the_other()
    dirty, _ = networks.altered(network, Erase(), 0.6, names=["0.weight"])
    assert check(dirty, inputs, initial=initial).layers[0].agreeing == 8


def test_units_that_never_changed_are_not_tried_first():
    """ReLU units that no input activates agree with any span; those that Adam changed do not."""
    network, initial, inputs = trained(lambda values: torch.optim.Adam(values, lr=0.003))
    with torch.no_grad():
        network[0].weight[:20] = initial[0].weight[:20]
        network[0].bias[:20] = initial[0].bias[:20]
    plan = check(network, inputs, initial=initial, layers=["0"])
    assert (plan.layers[0].frozen, plan.layers[0].probed, plan.layers[0].agreeing) == (False, 4, 0)


def test_progress_is_told_of_every_layer_and_of_the_end():
    network, initial, inputs = one_after_the_other()
    calls = []
    check(network, inputs, initial=initial, progress=lambda *call: calls.append(call))
    assert calls == [("0", 0, 2), ("2", 1, 2), ("", 2, 2)]
