"""The sample of the full reproduction, on a made experiment."""

import math

import pytest

import reproduction
from netpurify.findings import Experiment


def trial(settings, seed):
    return [{"value": settings["size"] * seed, "kind": "made"}]


MADE = Experiment(
    name="made", title="made", grid=lambda _mode: [{"size": 1.0}, {"size": 2.0}], trial=trial, cost=lambda _cell: 1.0,
    trials={"quick": 1, "default": 1, "full": 10},
)  # fmt: skip


def table(wrong=None):
    rows = []
    for size in (1.0, 2.0):
        for seed in range(10):
            value = size * seed + (0.5 if (size, seed) == wrong else 0.0)
            rows.append({"size": size, "trial": seed, "seed": seed, "value": value, "kind": "made", "seconds": 1.0})
    return rows


@pytest.mark.parametrize(("budget", "count"), [(0.0, 2), (5.0, 5), (100.0, 20)])
def test_a_sample_is_as_large_as_its_budget_and_agrees_with_its_table(budget, count):
    sample = reproduction.again(MADE, table(), budget)
    assert (sample.trials, sample.sampled, sample.rows, sample.changed) == (20, count, count, 0)
    assert sample.before == 20.0
    assert 0.0 <= sample.estimate < 1.0, "the made trial takes no time"


def test_rows_that_changed_are_counted():
    sample = reproduction.again(MADE, table(wrong=(2.0, 1)), 100.0)
    assert sample.changed == 1
    assert sample.largest == pytest.approx(0.5 / 2.5)


def test_differences_are_of_numbers_and_texts():
    assert reproduction.difference({"a": 1.0, "b": "x"}, {"a": 1.0, "b": "x", "seconds": 3.0}) == 0.0
    assert reproduction.difference({"a": math.nan}, {"a": math.nan}) == 0.0
    assert reproduction.difference({"a": 10.0}, {"a": 8.0}) == pytest.approx(0.25)
    assert reproduction.difference({"a": "x"}, {"a": "y"}) == math.inf


def test_positions_are_spread_evenly():
    assert reproduction.spread([1.0] * 10, 5.0) == [1, 3, 5, 7, 9]
    assert reproduction.spread([1.0], 100.0) == [0]
