"""What the demo shows is so."""

import pytest
import torch

from netpurify.experiments import demo
from netpurify.network import Grade, Seeded


@pytest.fixture(scope="module")
def story(once):
    return once("recovery of the demo", demo.recovery)


@pytest.mark.slow
def test_every_altered_weight_is_found_and_no_other(story):
    assert sum(int(mask.sum()) for mask in story.hit.values()) == len(story.result.altered) > 7000
    assert story.right
    assert story.largest_error < 1e-6
    assert story.result.count(Grade.RECOVERED) == 105
    assert story.result.verify().sound


def test_a_weight_that_was_missed_would_be_seen(story):
    name = next(iter(story.hit))
    story.hit[name].view(-1)[0] ^= True
    assert not story.right
    story.hit[name].view(-1)[0] ^= True


def test_seed_makes_the_initial_weights_anew(story):
    again = Seeded(demo.network, demo.SEED).build().state_dict()
    assert all(torch.equal(again[name], value) for name, value in story.initial.state_dict().items())


def test_healthy_network_comes_back_bit_for_bit(story):
    assert demo.healthy(story.trained, story.inputs, story.initial)


@pytest.mark.slow
def test_backdoor_goes_and_accuracy_stays():
    before, after = demo.backdoor().rates
    assert before.asr > 0.95
    assert after.asr < 0.1
    assert after.ra > 0.8
    assert after.accuracy > before.accuracy - 0.02
