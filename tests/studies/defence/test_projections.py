"""Projections in L1 and L2 against their definitions."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import netpurify
from netpurify.experiments.studies.defence.baseline import CleanData
from netpurify.experiments.studies.defence.fine_tuning import Finetuning
from netpurify.experiments.studies.defence.projections import LeastSquares, Projection
from tests.toys import victims


def test_least_squares_is_the_orthogonal_projection(clean):
    network, initial = (victims.perceptron(seed, 784, 10) for seed in (0, 1))
    repaired = LeastSquares().repair(network, replace(clean, initial=initial))
    span = np.vstack([clean.images.flatten(1).double().numpy().T, np.ones(len(clean.images))])

    def matrix(given):
        return torch.cat([given[1].weight, given[1].bias[:, None]], 1).detach().double().numpy().T

    change = matrix(network) - matrix(initial)
    expected = matrix(initial) + span @ np.linalg.lstsq(span, change, rcond=None)[0]
    assert np.abs(matrix(repaired) - expected).max() < 1e-6
    assert np.abs(matrix(network) - expected).max() > 1e-2


@pytest.mark.slow
def test_least_squares_changes_weights_in_every_layer_and_no_clean_output(clean):
    network, initial = (victims.perceptron(seed, 784, 200, 10) for seed in (0, 1))
    repaired = LeastSquares().repair(network, replace(clean, initial=initial))
    for place in (1, 3):
        change = (network[place].weight - initial[place].weight).detach().double().numpy()
        kept = (repaired[place].weight - initial[place].weight).detach().double().numpy()
        assert np.linalg.matrix_rank(kept, tol=1e-4) <= len(clean.images)
        assert np.linalg.norm(kept) < 0.8 * np.linalg.norm(change)
    assert torch.allclose(repaired(clean.images), network(clean.images), rtol=0.0, atol=1e-5)
    assert not torch.allclose(repaired(1.0 - clean.images), network(1.0 - clean.images), rtol=0.0, atol=1e-2)


def test_least_squares_on_a_full_span_restores_only_what_clean_inputs_never_touch():
    images = torch.rand(600, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    images[:, 0, 1, 1] = 0.0
    network, initial = (victims.perceptron(seed, 4, 3) for seed in (0, 1))
    labels = torch.zeros(600, dtype=torch.long)
    repaired = LeastSquares().repair(network, CleanData(images, labels, initial, 0))
    assert torch.equal(repaired[1].weight[:, 3], initial[1].weight[:, 3])
    assert torch.allclose(repaired[1].weight[:, :3], network[1].weight[:, :3], rtol=0.0, atol=1e-6)
    assert torch.allclose(repaired[1].bias, network[1].bias, rtol=0.0, atol=1e-6)


def test_algorithm_2_undoes_a_few_altered_weights_exactly_and_least_squares_cannot(clean):
    initial = victims.perceptron(0, 784, 10)
    few = replace(clean, images=clean.images[:20], labels=clean.labels[:20], initial=initial)
    true = Finetuning(epochs=20, decay=0.0).repair(initial, few)
    altered = copy.deepcopy(true)
    with torch.no_grad():
        altered[1].weight[:, 300:320] += 1.0
    repaired = {defence.name: defence.repair(altered, few) for defence in (Projection(), LeastSquares())}
    errors = {name: (network[1].weight - true[1].weight).abs().max().item() for name, network in repaired.items()}
    assert errors["Algorithm 2"] < 1e-5
    assert errors["least squares"] > 1e-2
    same = netpurify.purify(altered, few.images, policy=netpurify.Project(initial)).model
    assert victims.same(victims.state(same), victims.state(repaired["Algorithm 2"]))
