"""Trials of the studies on problems whose answer is known."""

import numpy as np
import pytest
import torch
from torch import nn

import netpurify
from netpurify.experiments.studies import evidence, half, limits, recovery, third_party
from netpurify.experiments.studies.healthy import networks
from netpurify.experiments.studies.healthy import trial as healthy
from netpurify.network import Seeded


def test_evidence_draws_exactly_the_share_and_counts_claims_against_the_truth():
    cell = {"family": "Gaussian", "alteration": "generic", "share": 0.2, "columns_each": 9}
    problem = evidence.draw(cell, np.random.default_rng(0))
    assert (problem.altered.sum(axis=0) == 16).all()
    expected = {"columns": 9, "claimed": 9, "false": 0, "solved": 9, "kept": 9, "differing": 0}
    assert evidence.counts(problem) == expected
    hidden = evidence.AlteredColumns(problem.design, problem.columns, np.roll(problem.altered, 1, axis=0))
    assert evidence.counts(hidden) == expected | {"false": 9, "solved": 0, "kept": 0}


def test_evidence_draws_afresh_for_every_trial():
    cell = {"family": "0/1", "alteration": "signs", "share": 0.3, "columns_each": 31}
    assert evidence.trial(cell, 0) == evidence.trial(cell, 0)
    assert evidence.trial(cell, 0) != evidence.trial(cell, 1)


@pytest.mark.parametrize(("share", "right"), [(0.0, True), (0.9, False)])
def test_limits_count_columns_that_come_out_right(share, right):
    columns = limits.recovered((50, 20, 6), np.random.default_rng(0), share=share, mean=0.0)
    assert columns.tolist() == [right] * 6


def test_limits_predict_what_is_simulated():
    cell = {"fan_in": 50, "rank": 12, "units": 1, "probability": 0.5, "mean": 0.0, "simulations": 200}
    (row,) = limits.trial(cell, 0)
    assert abs(row["deviation"]) < 4.0
    assert row["simulated"] == pytest.approx(0.5 + row["deviation"] * np.sqrt(0.25 / 200))


@pytest.mark.slow
def test_recovery_of_a_head_whose_weights_were_altered_or_erased():
    (untouched,) = recovery.trial({"network": "depthwise CNN, head", "share": 0.0}, 0)
    assert untouched["altered"] == "healthy"
    assert (untouched["named"], untouched["exact"], untouched["units"]) == (0, 106, 106)
    rows = recovery.trial({"network": "depthwise CNN, head", "share": 0.2}, 0)
    assert [row["altered"] for row in rows] == ["noise", "bit flip", "erasure"]
    for row in rows:
        assert row["hits"] == row["named"] > 500
        assert row["largest_error"] < recovery.EXACT
    assert recovery.cells(rows[0] | {"network": "N", "share": 0.2, "purify_seconds": 1.25})[:6] == [
        "N", "noise", "20%", "1.000", "1.000", "106 of 106",
    ]  # fmt: skip


def test_a_healthy_case_is_the_same_whatever_else_is_run():
    case = networks.HealthyCase("MLP", "Adam", 1, "float32", 2)
    first, again = networks.make(case), networks.make(case)
    for name, value in first.network.state_dict().items():
        assert torch.equal(value, again.network.state_dict()[name])
    assert list(first.clean) == list(networks.CLEAN)
    assert len({case.name for case in networks.cases([0, 2])}) == 1080


def test_one_healthy_network_in_six_is_altered_too():
    wanted = [healthy.purifications(case) for case in networks.cases([0, 2])]
    altered = [jobs for jobs in wanted if len(jobs) == 4 + len(healthy.LAWS)]
    assert {len(jobs) for jobs in wanted} == {4, 4 + len(healthy.LAWS)}
    assert 0.1 < len(altered) / len(wanted) < 0.25


def test_a_healthy_network_is_left_alone_and_an_altered_one_is_counted_against_the_truth():
    case = networks.HealthyCase("MLP", "SGD", 1, "float64", 0)
    trained = networks.make(case)
    row = healthy.purified(case, trained, networks.CLEAN[0], None)
    assert (row["altered"], row["healthy_replaced"], row["healthy_recovered"]) == (0, 0, 0)
    assert row["weights"] == sum(
        layer.weight.numel() + layer.bias.numel() for layer in trained.network if isinstance(layer, nn.Linear)
    )
    row = healthy.purified(case, trained, networks.CLEAN[0], "highest exponent bit flipped, 1 %")
    assert row["altered"] > 20
    assert row["replaced"] > 0.9 * row["altered"]
    assert row["healthy_recovered"] == 0


def test_flips_are_of_the_highest_exponent_bit_and_errors_are_in_units_of_the_spread():
    network = Seeded(lambda: nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 4)), 0).build()
    dirty, flips = third_party.flipped(network, ["0", "1"], 0)
    assert len(flips) == 2 * third_party.FLIPS
    for name, value in network.state_dict().items():
        bits = value.view(torch.int32) ^ dirty.state_dict()[name].view(torch.int32)
        changed = bits.reshape(-1).nonzero().reshape(-1).tolist()
        assert {(name, index) for index in changed} == {flip for flip in flips if flip[0] == name}
        assert set(bits.reshape(-1)[changed].tolist()) <= {1 << 30}
    inputs = torch.randn(5, 30, generator=torch.Generator().manual_seed(0))
    result = netpurify.purify(dirty, inputs, policy=netpurify.Recover(network, proof=False))
    row = third_party.judged(result, network, flips)
    assert (row["flips"], row["found"], row["false"]) == (6, 6, 0)
    assert row["largest_error"] < 1e-6


@pytest.mark.slow
def test_half_counts_against_the_bits_that_training_left():
    cell = {"layer": "head", "dtype": "bfloat16", "base": "float32", "ratio": 30.0}
    rows = {row["alteration"]: row for row in half.trial(cell, 0)}
    assert rows["none"] == {
        "alteration": "none", "units": 32, "recovered": 32, "altered": 0, "found": 0, "false": 0, "exact": 0,
    }  # fmt: skip
    assert rows["tampered"]["found"] == rows["tampered"]["altered"] > 200
    assert [row["false"] for row in rows.values()] == [0, 0, 0, 0]


def test_half_scales_the_change_to_so_many_roundings():
    trained = half.HalfTrained("convolution", 0)
    stored = trained.stored(100.0, torch.bfloat16)
    before, after = (model.state_dict()["0.weight"].float() for model in (trained.initial, stored))
    step = 2.0 ** torch.floor(torch.log2(before.abs())) / 128.0
    assert float((after - before).abs().median() / (0.5 * step.median())) == pytest.approx(100.0, rel=0.02)
