"""What every baseline promises: a copy, the modes, the seed, refusals."""

import copy
from dataclasses import replace

import pytest
import torch

from netpurify.errors import InputError
from netpurify.experiments.studies.defence.adversarial_pruning import AdversarialPruning
from netpurify.experiments.studies.defence.channel_lipschitz import ChannelLipschitz
from netpurify.experiments.studies.defence.defences import BASELINES, NoDefence
from netpurify.experiments.studies.defence.fine_tuning import FinePruning, Finetuning
from netpurify.experiments.studies.defence.projections import LeastSquares, Projection
from tests.toys import victims

TUNING = Finetuning(epochs=2, batch=16)
QUICK = [
    NoDefence(), TUNING, FinePruning(tuning=TUNING), ChannelLipschitz(), AdversarialPruning(iterations=3), Projection(),
    LeastSquares(),
]  # fmt: skip


def test_the_table_has_every_baseline_once_and_says_what_each_uses():
    assert {it.name: (it.labels, it.data, it.initial) for it in BASELINES} == {
        "nothing": (False, False, False),
        "fine-tuning": (True, True, False),
        "fine-pruning": (True, True, False),
        "CLP": (False, False, False),
        "ANP": (True, True, False),
        "Algorithm 2": (False, True, True),
        "least squares": (False, True, True),
    }


@pytest.mark.parametrize("baseline", QUICK, ids=lambda it: it.name)
def test_the_network_is_untouched_its_modes_are_kept_and_nothing_global_is_drawn(baseline, trained, clean):
    trained = copy.deepcopy(trained)
    trained[1].train()
    before, modes = victims.state(trained), [module.training for module in trained.modules()]
    drawn = torch.random.get_rng_state()
    repaired = victims.repair(baseline, trained, clean)
    assert victims.same(victims.state(trained), before)
    assert [module.training for module in trained.modules()] == modes
    assert [module.training for module in repaired.modules()] == modes
    assert all(value.grad is None and value.requires_grad for value in repaired.parameters())
    assert torch.equal(torch.random.get_rng_state(), drawn)
    own = {value.data_ptr() for value in trained.parameters()}
    assert own.isdisjoint(value.data_ptr() for value in repaired.parameters())


@pytest.mark.parametrize("baseline", QUICK, ids=lambda it: it.name)
def test_the_same_seed_gives_the_same_bits(baseline, trained, clean):
    first, again = (victims.state(victims.repair(baseline, trained, clean, seed=5)) for _ in range(2))
    assert victims.same(first, again)


@pytest.mark.parametrize("baseline", [TUNING, FinePruning(tuning=TUNING)], ids=lambda it: it.name)
def test_another_seed_gives_another_draw(baseline, trained, clean):
    first, other = (victims.state(victims.repair(baseline, trained, clean, seed=seed)) for seed in (5, 6))
    assert not victims.same(first, other)


def test_another_seed_gives_other_masks(trained, clean):
    baseline = AdversarialPruning(iterations=3)
    first, other = (baseline.masks(trained, replace(clean, seed=seed)) for seed in (5, 6))
    assert not victims.same(first, other)


def test_nothing_changes_nothing(trained, clean):
    assert victims.same(victims.state(victims.repair(NoDefence(), trained, clean)), victims.state(trained))


@pytest.mark.parametrize("baseline", [Projection(), LeastSquares()], ids=lambda it: it.name)
def test_the_initial_weights_are_asked_for_by_name(baseline, trained, clean):
    with pytest.raises(InputError, match=f"{baseline.name} needs the network before training; give initial="):
        baseline.repair(trained, clean)


def test_images_without_a_label_each_are_refused(trained, clean):
    with pytest.raises(InputError, match=r"got \[40, 1, 28, 28\] and \[39\]"):
        NoDefence().repair(trained, replace(clean, labels=clean.labels[1:]))
