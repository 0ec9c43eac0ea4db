"""Triggers and lines of the benchmark of hunts in other networks."""

import pytest
import torch

import hunt_elsewhere as benchmark


@pytest.mark.parametrize("name", [name for name in benchmark.TRIGGERS if name != "none"])
def test_every_trigger_changes_images_and_leaves_its_argument_alone(name):
    stamp = benchmark.TRIGGERS[name]
    assert stamp is not None
    images = torch.rand(3, 1, 24, 24, generator=torch.Generator().manual_seed(0))
    before = images.clone()
    stamped = stamp(images)
    assert images.equal(before)
    assert stamped.shape == images.shape
    assert (stamped >= 0.0).all()
    assert (stamped <= 1.0).all()
    assert (stamped != images).flatten(1).any(1).all()


def test_a_white_square_has_its_size():
    stamped = benchmark.square(14, 9, 1.0)(torch.zeros(1, 1, 24, 24))
    assert stamped.sum() == 81
    assert stamped[0, 0, 22, 22] == 1.0


def test_a_line_has_a_cell_for_every_title(monkeypatch, capsys):
    chosen = ("none", "negative")
    monkeypatch.setattr(benchmark, "TRIGGERS", {name: benchmark.TRIGGERS[name] for name in chosen})
    monkeypatch.setattr(benchmark, "STEPS", 20)
    monkeypatch.setattr(benchmark, "HEALTHY", range(2))
    monkeypatch.setattr("sys.argv", ["hunt_elsewhere.py", "--seeds", "1"])
    state = torch.get_rng_state()
    benchmark.main()
    assert torch.get_rng_state().equal(state)
    titles, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines] == [f"| {name}" for name in chosen]
    assert {line.count("|") for line in (titles, *lines)} == {9}
    assert "/" not in lines[0]
    assert lines[1].count("/") >= 2


def test_few_images_are_counted(monkeypatch):
    monkeypatch.setattr(benchmark, "FEW", {50: 2})
    monkeypatch.setattr(benchmark, "STEPS", 20)
    monkeypatch.setattr(benchmark, "HEALTHY", range(2))
    ((count, hunts, alarms, networks),) = benchmark.few()
    assert (count, hunts) == ("50", "4")
    assert 0 <= int(networks) <= int(alarms) <= 4
