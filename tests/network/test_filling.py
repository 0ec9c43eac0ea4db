"""Weights put into networks that have no values yet, or that a wrapper hides."""

import pytest
import torch
from torch import nn

from netpurify.errors import InputError
from netpurify.network import Defend, fill, names_in, purify
from tests.network import made_networks as networks


def build():
    network = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6, bias=False), nn.BatchNorm1d(6), nn.Linear(6, 3))
    network[2].weight = network[0].weight
    return network.eval()


def bits(network, state):
    own = network.state_dict()
    assert own.keys() >= state.keys()
    assert all(torch.equal(own[name], value) and own[name].dtype == value.dtype for name, value in state.items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_network_without_values_takes_the_tensors_themselves(dtype):
    state = networks.seeded(build).to(dtype).state_dict()
    with torch.device("meta"):
        network = build()
    once = {name: value for name, value in state.items() if name != "2.weight"}
    fill(network, once, file="file")
    bits(network, state)
    assert network[2].weight is network[0].weight
    assert network[0].weight.data_ptr() == state["0.weight"].data_ptr()
    assert not any(value.is_meta for value in (*network.parameters(), *network.buffers()))


def test_network_without_values_gets_the_guards_of_a_defended_one():
    defended = purify(networks.seeded(build), networks.seeded(lambda: torch.randn(30, 6)), policy=Defend(0.1)).model
    state = defended.state_dict()
    assert any("guard" in name for name in state)
    with torch.device("meta"):
        network = build()
    fill(network, state, file="file")
    bits(network, state)
    inputs = torch.randn(4, 6)
    assert torch.equal(network.eval()(inputs), defended.eval()(inputs))


def test_wrapped_network_is_filled_within():
    state = networks.seeded(build).state_dict()
    network = nn.DataParallel(networks.seeded(build, seed=1))
    fill(network, state, file="file")
    bits(network.module, state)


BAD = {
    "missing": (lambda state: state.pop("4.bias"), "missing: 4.bias"),
    "unexpected": (lambda state: state.update(more=torch.ones(2)), "unexpected: more"),
    "mis-shaped": (lambda state: state.update({"4.bias": torch.ones(2)}), r"mis-shaped: 4.bias \[2\] instead of \[3\]"),
    "whole numbers": (
        lambda state: state.update({"4.bias": torch.ones(3, dtype=torch.int8)}), "4.bias of torch.int8"
    ),
    "ties that differ": (lambda state: state.update({"2.weight": torch.ones(6, 6)}), "differ in the file"),
    "packed": (
        lambda state: state.update({"4.qweight": torch.ones(3, 3, dtype=torch.int32)}), "4.qweight is of a quantised"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_weights_that_do_not_fit_are_refused(case):
    change, words = BAD[case]
    state = {name: value.clone() for name, value in networks.seeded(build).state_dict().items()}
    change(state)
    with torch.device("meta"):
        network = build()
    with pytest.raises(InputError, match=words):
        fill(network, state, file="file")


def test_names_of_a_plain_network_stay_as_they_are():
    network = build()
    names = [*network.state_dict(), "bert.0.weight", "module.0.weight"]
    assert names_in(network, names) == {name: name for name in names}
    assert names_in(network, ["module._orig_mod.0.weight"]) == {"module._orig_mod.0.weight": "0.weight"}
