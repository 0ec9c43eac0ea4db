"""What a layer tolerates: what check predicts of the demo's network is what is measured, on a sample too."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from netpurify import Recover, check, lad, purify
from netpurify.contaminate import Normal, contaminate
from netpurify.experiments import demo
from netpurify.network import Grade, build_design, capture, prepare
from netpurify.network.tolerance import LEANING, tolerance_of


@pytest.fixture(scope="module")
def story(once):
    return once("recovery of the demo", demo.recovery)


def exact_filters(story, law, share, seed):
    """How many of the 100 filters come back exactly."""
    truth = story.trained.state_dict()
    dirty = contaminate(truth, law, share=share, generator=torch.Generator().manual_seed(seed))
    network = copy.deepcopy(story.trained)
    network.load_state_dict(dirty.state)
    result = purify(network, story.inputs, policy=Recover(story.initial, proof=False), layers=["0"])
    return int(((result.model.state_dict()["0.weight"] - truth["0.weight"]).abs().flatten(1).amax(1) < 1e-5).sum())


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "positive"), [(0.0, 0.5), (1.0, LEANING)])
@pytest.mark.parametrize("share", [0.3, 0.35])
def test_predicted_on_the_demo_is_what_is_measured(story, mean, positive, share):
    network = prepare(story.contaminated, story.inputs, initial=story.initial)
    design = build_design(capture(network, network.in_order()[0])[0])
    odds = lad.simulate(design, positive=positive, seed=1)
    predicted = odds.recovery(share).value
    seeds = range(20, 23)
    measured = np.mean([exact_filters(story, Normal(mean, 1.0), share, seed) for seed in seeds]) / 100
    error = np.hypot(odds.error(share), np.sqrt(predicted * (1.0 - predicted) / (100 * len(seeds))))
    assert abs(measured - predicted) < 3.0 * error + 0.004
    generic = lad.recovery_probability(design.live.size, design.rank, share)
    if mean:
        assert measured < generic - 0.05, "the formula for a generic random design promises more"


def test_plan_has_both_laws_and_the_generic_formula_apart(story):
    plan = check(story.contaminated, story.inputs, initial=story.initial, layers=["0"])
    (layer,) = plan.layers
    both, leaning = layer.tolerances
    assert (both.positive, leaning.positive) == (0.5, LEANING)
    assert both.columns == leaning.columns == 200
    assert both.law == "both signs equally often"
    assert "N(1, 1)" in leaning.law
    assert leaning.layer.value < leaning.unit.value < leaning.half.value < both.half.value
    assert 0.26 < leaning.unit.low < 0.285 < leaning.unit.high < 0.3, "92 of 100 filters come back at 0.30, 60 at 0.35"
    assert 0.35 < leaning.half.low < leaning.half.value < leaning.half.high < 0.38
    assert both.generic_unit == leaning.generic_unit == lad.largest_share(layer.live, layer.rank)
    assert leaning.unit.high < leaning.generic_unit - 0.1
    assert leaning.layer.extrapolated
    assert not leaning.half.extrapolated


def test_record_uses_the_signs_that_were_found(story):
    law = Normal(4.0, 1.0)
    dirty = contaminate(story.trained.state_dict(), law, share=0.1, generator=torch.Generator().manual_seed(3))
    network = copy.deepcopy(story.trained)
    network.load_state_dict(dirty.state)
    found = purify(network, story.inputs, policy=Recover(story.initial), layers=["0"]).layers[0]
    assert found.tolerance.positive > 0.999
    usual = story.result.layers[0]
    assert usual.tolerance.positive == pytest.approx(0.5, abs=0.03)
    assert usual.count(Grade.RECOVERED) == usual.units
    assert found.tolerance.half.high < usual.tolerance.half.low - 0.05


def test_nothing_is_simulated_where_nothing_is_open():
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    initial = copy.deepcopy(model)
    with torch.no_grad():
        for value in model.parameters():
            value += 0.1 * torch.randn(value.shape, generator=torch.Generator().manual_seed(0))
    inputs = torch.randn(30, 6, generator=torch.Generator().manual_seed(1))
    for layer in check(model, inputs, initial=initial).layers:
        (only,) = layer.tolerances
        assert (only.columns, only.layer.value, only.layer.high) == (0, 0.0, 0.0)
    frozen = check(initial, inputs, initial=initial).layers[0]
    assert [one.unit.value for one in frozen.tolerances] == [0.5]
    result = purify(model, inputs, policy=Recover(initial))
    assert result.layers[0].tolerance.layer.value == 0.0


def test_a_large_layer_is_simulated_on_a_sample_that_stands_for_it():
    rng = np.random.default_rng(5)
    design = lad.Design.prepare(np.maximum(rng.standard_normal((700, 90)), 0.0))
    whole, part = (tolerance_of([design], 50, positive=LEANING, seconds=seconds) for seconds in (4.0, 0.08))
    assert (whole.rows, part.rows, part.columns) == (700, 341, 21)
    for name in ("half", "unit", "layer"):
        assert getattr(part, name).value == pytest.approx(getattr(whole, name).value, abs=0.02)
    assert whole.half.value < whole.generic_unit - 0.07


def test_the_tightest_group_speaks():
    rng = np.random.default_rng(6)
    wide, narrow = (lad.Design.prepare(rng.standard_normal((40, rank))) for rank in (4, 12))
    both = tolerance_of([wide, narrow], 10, positive=0.5, seconds=0.1)
    assert both == tolerance_of([narrow], 10, positive=0.5, seconds=0.1)
    assert tolerance_of([wide, None], 10, positive=0.5, seconds=0.1).layer.value == 0.0
