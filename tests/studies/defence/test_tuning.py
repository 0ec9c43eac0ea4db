"""Fine-tuning and fine-pruning, step by step."""

import copy
import math

import pytest
import torch
from torch import nn

from netpurify.errors import InputError
from netpurify.experiments.studies.defence.fine_tuning import FinePruning, Finetuning
from tests.toys import victims


def test_fine_tuning_takes_the_stated_steps(clean):
    network = victims.perceptron(0, 784, 10)
    weight = torch.cat([network[1].weight, network[1].bias[:, None]], 1).detach().requires_grad_()
    inputs = torch.cat([clean.images.flatten(1), torch.ones(len(clean.images), 1)], 1)
    speed = torch.zeros_like(weight)
    for rate in (0.01, 0.01 * (1 + math.cos(math.pi / 2)) / 2):
        loss = nn.functional.cross_entropy(inputs @ weight.T, clean.labels)
        (slope,) = torch.autograd.grad(loss, weight)
        speed = 0.9 * speed + slope + 0.5 * weight.detach()
        weight = (weight.detach() - rate * speed).requires_grad_()
    repaired = Finetuning(epochs=2, decay=0.5).repair(network, clean)
    assert torch.allclose(repaired[1].weight, weight[:, :-1], rtol=0.0, atol=1e-6)
    assert torch.allclose(repaired[1].bias, weight[:, -1], rtol=0.0, atol=1e-6)


def test_fine_tuning_sees_every_image_once_an_epoch(clean):
    seen = []
    network = victims.perceptron(0, 784, 10)
    network.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    Finetuning(epochs=1, batch=16).descend(network, clean)
    assert [len(images) for images in seen] == [16, 16, 8]
    assert torch.equal(torch.cat(seen).flatten(1).sum(1).sort()[0], clean.images.flatten(1).sum(1).sort()[0])


def _dormant(trained):
    """The network with a channel that no clean image excites, though the head leans on it."""
    network = copy.deepcopy(trained)
    with torch.no_grad():
        part = network[1] if isinstance(network[1], nn.BatchNorm2d) else network[0]
        part.bias[victims.PLANTED] = -1e3
        network[-1].weight.unflatten(1, (victims.WIDTH, -1))[:, victims.PLANTED] = 3.0
    return network


def test_fine_pruning_takes_the_dormant_first_and_stops_at_the_tolerance(trained, clean):
    network = _dormant(trained)
    pruned = FinePruning(tolerance=0.1).pruned(network, clean)
    assert pruned[victims.PLANTED]
    with torch.no_grad():
        activity = network[:-1](clean.images).unflatten(1, (victims.WIDTH, -1)).mean((0, 2))
        order = activity.argsort().tolist()
        count = int(pruned.sum())
        assert sorted(order[:count]) == pruned.nonzero().reshape(-1).tolist()
        assert count < victims.WIDTH
        before = victims.hits(network, clean)
        head = network[-1].weight.unflatten(1, (victims.WIDTH, -1))
        head[:, order[:count]] = 0.0
        assert before - victims.hits(network, clean) <= 0.1 * len(clean.images)
        head[:, order[count]] = 0.0
        assert before - victims.hits(network, clean) > 0.1 * len(clean.images)


def test_fine_pruning_tunes_what_is_left_and_nothing_else(trained, clean):
    network = _dormant(trained)
    baseline = FinePruning(tuning=Finetuning(epochs=2, batch=16))
    pruned = baseline.pruned(network, clean)
    weight = victims.repair(baseline, network, clean)[-1].weight.detach().unflatten(1, (victims.WIDTH, -1))
    assert (weight[:, pruned] == 0.0).all()
    assert (weight[:, ~pruned] != network[-1].weight.unflatten(1, (victims.WIDTH, -1))[:, ~pruned]).any()


def test_fine_pruning_refuses_a_network_without_convolutions(clean):
    network = victims.perceptron(0, 784, 10)
    with pytest.raises(InputError, match="channels of the last convolution; got Sequential of"):
        FinePruning().repair(network, clean)
