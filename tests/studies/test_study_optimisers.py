"""The study of optimisers: its rules against torch's own, its trials where the answer is known, its page."""

import copy

import pytest
import torch
from torch import nn

from netpurify.experiments.studies import STUDIES
from netpurify.experiments.studies.optimisers import page, rules, training, trial
from netpurify.experiments.studies.study import RunFacts
from tests.network import made_networks as networks


def steps(make, count=5):
    """The weights of a small layer after some steps."""
    network = networks.seeded(lambda: nn.Linear(6, 3))
    inputs = networks.seeded(lambda: torch.randn(10, 6), seed=1)
    optimiser = make(network.parameters())
    for _ in range(count):
        optimiser.zero_grad()
        network(inputs).square().sum().backward()
        optimiser.step()
    return network.weight.detach()


def test_own_rules_take_the_steps_of_torch_where_torch_has_them():
    plain = steps(lambda values: rules.DirectedSteps(values, rules.gradient, lr=0.01))
    assert torch.allclose(plain, steps(lambda values: torch.optim.SGD(values, lr=0.01)), atol=1e-6)
    # Adam without means divides a gradient by its own size, and AdamW decays before it steps.
    signs = steps(lambda values: rules.DirectedSteps(values, rules.sign, lr=0.01, decay=0.3))
    unscaled = {"lr": 0.01, "betas": (0.0, 0.0), "eps": 1e-12, "weight_decay": 0.3}
    assert torch.allclose(signs, steps(lambda values: torch.optim.AdamW(values, **unscaled)), atol=1e-6)
    first = steps(lambda values: rules.DirectedSteps(values, rules.lion, lr=0.01), count=1)
    assert torch.equal(first, steps(lambda values: rules.DirectedSteps(values, rules.sign, lr=0.01), count=1))


def test_dropout_is_active_in_training_alone_and_is_copied():
    layer = training.Dropout(0.25)
    inputs = torch.ones(100, 100)
    dropped = copy.deepcopy(layer)(inputs)
    assert dropped.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float((dropped == 0.0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert torch.equal(layer.eval()(inputs), inputs)


def rows_of(method, network="head"):
    """The rows of a trial by part and size of the alterations."""
    found = trial.recovery_trial({"network": network, "method": method}, 0)
    return {(row["part"], row["size"]): row for row in found}


def test_a_head_trained_with_momentum_and_decay_is_exact_and_one_with_adam_is_not():
    for row in rows_of("momentum, coupled decay").values():
        assert (row["agreeing"], row["probed"], row["recovered"], row["units"]) == (8, 8, 10, 10)
        assert (row["found"], row["false"]) == (row["altered"], 0)
        assert row["altered"] > 80
    for row in rows_of("Adam").values():
        assert (row["agreeing"], row["probed"], row["recovered"], row["false"]) == (0, 8, 0, 0)
        assert row["unreached_found"] == row["unreached"] < row["altered"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "exact"),
    [
        ("cosine schedule", True),
        ("gradients clipped by norm", True),
        ("exponential mean of weights", True),
        ("batches of 5, gradients of 4 accumulated", True),
        ("gradients clipped by value", False),
        ("dropout of the layer's inputs", False),
        ("autocast to bfloat16", False),
        ("noise added to gradients", False),
    ],
)
def test_what_keeps_the_steps_of_sgd_inside_the_span(variant, exact):
    for row in rows_of(f"SGD, {variant}").values():
        assert row["recovered"] == (row["units"] if exact else 0)
        assert (row["agreeing"] > 0) == exact


def test_the_change_of_sgd_has_the_rank_of_its_inputs_and_that_of_adam_has_not():
    first, *_, last = trial.change_trial({"method": "SGD", "batch": 0}, 0)
    assert (first["steps"], first["rank"], last["rank"], last["directions"]) == (1, 20, 20, 20)
    assert max(first["outside"], last["outside"]) < 1e-5
    assert first["outside_known"] is None
    first, second, *_ = trial.change_trial({"method": "Adam", "batch": 0}, 0)
    assert first["rank"] > 40
    assert first["outside"] > 0.3
    assert first["outside_known"] < 1e-5, "after one step the state says by what each gradient was divided"
    assert second["outside_known"] > 0.05


def made(method, part, recovered, **more):
    row = {"trial": 0, "method": method, "part": part, "units": 10, "recovered": recovered, "probed": 8, "agreeing": 8}
    counts = {"altered": 100, "found": 90, "false": 1, "error": 2e-7, "unreached": 5, "unreached_found": 4}
    return [row | counts | {"size": size} | more for size in ("large", "small")]


def test_the_page_says_exact_only_where_every_unit_is_recovered():
    rows = [*made("SGD", training.HEAD, 10), *made("Adam", training.HEAD, 0), *made("AdamW", training.HEAD, 9)]
    change = {"method": "Adam", "batch": 0, "steps": 1, "directions": 20, "rank": 63, "rank_99": 56, "outside": 0.58}
    tables = {"optimisers": rows, "optimisers-change": [change | {"outside_known": None}]}
    text = page.optimisers_page(tables, RunFacts("command", 60.0))
    assert "| SGD | exact | - | - | - |" in text
    assert "| Adam | no | - | - | - |" in text
    assert "| AdamW | 90% of units | - | - | - |" in text
    assert "| SGD | 16 of 16 | 20 of 20 | 90 of 100 | 90 of 100 | 4 of 5 | 2 | 2.0e-07 |" in text
    assert "| Adam | all | 1 | 63 | 56 | 5.8e-01 | - |" in text
    assert "one seed" in text


def test_the_grids_name_ways_of_training_that_there_are():
    first, second = STUDIES["optimisers"].experiments(None)
    assert {cell["method"] for cell in first.grid("default")} == set(training.METHODS)
    assert {cell["method"] for cell in second.grid("full")} <= set(training.METHODS)
    assert {"network": "convolution", "method": "Muon"} not in first.grid("default")
