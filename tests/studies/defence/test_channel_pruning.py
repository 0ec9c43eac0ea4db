"""CLP and ANP find the channel that was planted."""

import copy

import pytest
import torch
from torch import nn

from netpurify.errors import InputError
from netpurify.experiments.studies.defence.adversarial_pruning import AdversarialPruning
from netpurify.experiments.studies.defence.channel_lipschitz import ChannelLipschitz, bounds
from tests.toys import victims


def test_the_bound_of_a_channel_by_hand():
    convolution, norm = nn.Conv2d(2, 1, (1, 2)), nn.BatchNorm2d(1, eps=0.05)
    with torch.no_grad():
        convolution.weight.copy_(torch.tensor([[[[3.0, 0.0]], [[4.0, 0.0]]]]))
        norm.weight.fill_(-2.0)
        norm.running_var.fill_(0.2)
    assert bounds(convolution, None).item() == pytest.approx(5.0)
    assert bounds(convolution, norm).item() == pytest.approx(5.0 * 2.0 / 0.5)
    with torch.no_grad():
        convolution.weight.copy_(torch.tensor([[[[3.0, 0.0]], [[0.0, 4.0]]]]))
    assert bounds(convolution, None).item() == pytest.approx(4.0)  # not 5, which is the norm of all its entries


def test_clp_prunes_the_channel_that_was_blown_up_and_no_other(trained, clean):
    network = copy.deepcopy(trained)
    part = network[1] if isinstance(network[1], nn.BatchNorm2d) else network[0]
    with torch.no_grad():
        part.weight[victims.PLANTED] *= 100.0
        part.bias[victims.PLANTED] = 1.0
    repaired, before = victims.state(victims.repair(ChannelLipschitz(), network, clean)), victims.state(network)
    name = "1" if part is network[1] else "0"
    for tensor in (f"{name}.weight", f"{name}.bias"):
        assert (repaired[tensor][victims.PLANTED] == 0.0).all()
        before[tensor][victims.PLANTED] = 0.0
    assert victims.same(repaired, before)
    lenient = victims.state(victims.repair(ChannelLipschitz(u=3.2), network, clean))
    assert victims.same(lenient, victims.state(network))  # one of twelve is at most 11 / sqrt(12) = 3.18 deviations off


def test_clp_refuses_batchnorm_that_no_convolution_precedes(clean):
    network = nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 4, 3))
    with pytest.raises(InputError, match="right after the convolution it normalises; 0 is not"):
        ChannelLipschitz().repair(network, clean)


def _backdoored(trained, clean):
    """A channel that clean images just fail to excite, and that pulls to class 0 as soon as something does."""
    network = copy.deepcopy(trained)
    norm = isinstance(network[1], nn.BatchNorm2d)
    part = network[1] if norm else network[0]
    with torch.no_grad():
        part.bias[victims.PLANTED] = 0.0
        part.weight[victims.PLANTED] = part.weight[victims.PLANTED].abs() + 0.3
        reach = network[: 1 + norm].train()(clean.images)[:, victims.PLANTED].max()
        network.load_state_dict({**trained.state_dict(), **dict(network.named_parameters())})
        part.bias[victims.PLANTED] = -1.05 * reach
        head = network[-1].weight.unflatten(1, (victims.WIDTH, -1))
        head[:, victims.PLANTED] = 0.0
        head[0, victims.PLANTED] = 3.0
    return network.eval(), "1" if norm else "0"


@pytest.mark.slow
def test_anp_lowers_the_mask_of_the_planted_channel_and_prunes_it(trained, clean):
    network, name = _backdoored(trained, clean)
    baseline = AdversarialPruning(iterations=40)
    mask = baseline.masks(network, clean)[name]
    assert mask[victims.PLANTED] <= 0.2
    assert mask.argmin() == victims.PLANTED
    assert mask.median() > 0.5
    assert mask.min() >= 0.0
    assert mask.max() <= 1.0
    repaired, before = victims.state(victims.repair(baseline, network, clean)), victims.state(network)
    before[f"{name}.weight"][mask <= 0.2] = 0.0
    assert victims.same(repaired, before)  # biases and statistics are as they were


def test_anp_without_perturbations_minimises_the_clean_loss_alone(trained, clean):
    network, name = _backdoored(trained, clean)
    mask = AdversarialPruning(iterations=40, eps=0.0).masks(network, clean)[name]
    assert mask[victims.PLANTED] > 0.9
