"""Weights that no input reaches are exact after every optimiser that leaves a weight without a gradient alone."""

import copy

import pytest
import torch
from torch import nn

from netpurify.contaminate import Erase, Normal
from netpurify.network import Grade, Recover, purify
from tests.network import made_networks as networks

BLANK = 60
"""Coordinates of the inputs that are always zero."""


def adam(values):
    return torch.optim.Adam(values, lr=0.003)


def adamw(values):
    return torch.optim.AdamW(values, lr=0.003, weight_decay=0.1)


def trained(make, inputs=None):
    """A wide layer with a head: (network, initial, inputs); half of the inputs' coordinates are blank."""
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(2 * BLANK, 24), nn.Tanh(), nn.Linear(24, 4)))
    lit, labels = networks.seeded(lambda: (torch.randn(20, 2 * BLANK), torch.randint(0, 4, (20,))), seed=1)
    inputs = torch.cat([torch.zeros(20, BLANK), lit[:, BLANK:]], dim=1) if inputs is None else inputs
    initial = copy.deepcopy(network)
    optimiser = make(network.parameters())
    for _ in range(50):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        optimiser.step()
    return network, initial, inputs


def altered(network, law, share=0.05):
    """An altered copy, and the mask of what is altered in the blank coordinates."""
    dirty, masks = networks.altered(network, law, share, names=["0.weight"])
    mask = masks["0.weight"].clone()
    mask[:, BLANK:] = False
    with torch.no_grad():
        dirty[0].weight[:, BLANK:] = network[0].weight[:, BLANK:]
    return dirty, mask


def recovered(dirty, initial, inputs):
    return purify(dirty, inputs, policy=Recover(initial), layers=["0"])


@pytest.mark.parametrize("make", [adam, adamw])
@pytest.mark.parametrize("law", [Normal(0.0, 0.01), Erase()])
def test_alterations_that_no_input_reaches_are_found_and_undone(make, law):
    network, initial, inputs = trained(make)
    dirty, mask = altered(network, law)
    result = recovered(dirty, initial, inputs)
    assert networks.positions(result.altered) == networks.truth({"0.weight": mask})
    assert mask.sum() > 40
    error = (result.model[0].weight - network[0].weight).abs().max()
    assert error == 0.0 if make is adam else error < 5e-7
    assert set(result.altered.grade) == {Grade.APPROXIMATE}
    assert f"where nothing was trained, were set back: {int(mask.sum())}" in result.layers[0].reason


def test_decay_that_adam_rescales_leaves_nothing_to_compare_with():
    network, initial, inputs = trained(lambda values: torch.optim.Adam(values, lr=0.003, weight_decay=0.1))
    dirty, _ = altered(network, Normal(0.0, 0.01))
    assert networks.same_bits(recovered(dirty, initial, inputs).model, dirty)


def test_fewer_than_four_alterations_are_only_suspicious():
    network, initial, inputs = trained(adam)
    with torch.no_grad():
        for place in range(3):
            network[0].weight[place, 5 * place] += 0.01
    result = recovered(network, initial, inputs)
    assert networks.same_bits(result.model, network)
    assert networks.positions(result.suspicious) == {("0.weight", place * 2 * BLANK + 5 * place) for place in range(3)}
    with torch.no_grad():
        network[0].weight[3, 15] += 0.02
    assert len(recovered(network, initial, inputs).altered) == 4


@pytest.mark.parametrize("make", [adam, adamw])
def test_what_training_reached_and_the_clean_inputs_do_not_is_kept(make):
    """Some training inputs light coordinates that are blank in all clean ones."""
    lit = networks.seeded(lambda: torch.randn(20, 2 * BLANK), seed=1)
    inputs = torch.cat([torch.zeros(20, BLANK), lit[:, BLANK:]], dim=1)
    inputs[15:, :10] = lit[15:, :10]
    network, initial, _ = trained(make, inputs)
    result = recovered(network, initial, inputs[:15])
    assert networks.same_bits(result.model, network)
    dirty, mask = altered(network, Normal(0.0, 0.01))
    found = networks.positions(recovered(dirty, initial, inputs[:15]).altered)
    mask[:, :10] = False
    assert found == networks.truth({"0.weight": mask}), "rows that training reached are not judged, the others are"
