"""Figure 14: the trial measures and predicts on its own random numbers; the rules fail where they should."""

import pytest

from netpurify import lad
from netpurify.experiments.figures import figure14
from netpurify.experiments.figures.figure14 import FIGURE, LAWS, SHARES, compared, findings, grid, panels, trial
from netpurify.findings import MODES, Verdict, select


@pytest.fixture(scope="module")
def rows(once):
    """A quick trial on Gaussian inputs and on bundled digits."""
    return once(
        "quick table of Figure 14",
        lambda: [cell | {"trial": 0, **row} for cell in grid("quick") for row in trial(cell, 0)],
    )


def made(shift=0.0, generic=None):
    """A table in which everything comes as predicted, up to ``shift``."""
    return [
        {
            "data": data, "layer": layer, "law": law, "eps": eps, "predicted": max(0.0, 1.0 - eps), "error": 0.02,
            "low": 0.0, "high": 1.0, "measured": max(0.0, 1.0 - eps + shift), "units": 300, "columns": 200,
            "generic": 1.0 - eps if generic is None or (layer, data) == ("W", "gaussian") else generic, "trial": seed,
        }
        for seed in range(10) for data in ("gaussian", "mnist", "cifar10") for layer in ("W", "beta") for law in LAWS
        for eps in SHARES
    ]  # fmt: skip


@pytest.mark.slow
def test_quick_trials_are_as_predicted(rows):
    first, second = findings(rows)
    assert first.by_measure == Verdict.HOLDS, first.measured
    assert first.against_nothing is None
    assert second.by_measure in (Verdict.HOLDS, Verdict.LIMITS, Verdict.FAILS)
    for row in rows:
        assert row["generic"] == lad.recovery_probability(row["rows"], row["rank"], row["eps"])
        assert row["low"] <= row["predicted"] <= row["high"]
        assert row["units"] == (60 if row["layer"] == "W" else 30)
    leaning = select(rows, data="mnist-sample", layer="W", law="N(1, 1)", eps=0.45)
    assert all(row["measured"] < 0.3 < 0.6 < row["generic"] for row in leaning)
    flipped = select(rows, data="gaussian", layer="beta", law="sign flip", eps=0.6)
    assert all(row["measured"] < 0.1 and row["predicted"] < 0.1 and row["generic"] > 0.7 for row in flipped)


@pytest.mark.slow
def test_panels_show_measured_predicted_and_generic(rows):
    drawn = panels(rows)
    assert [panel.title for panel in drawn] == ["W, Gaussian", "W, MNIST", "beta, Gaussian", "beta, MNIST"]
    for panel in drawn:
        things = [line.thing or line.label for line in panel.lines]
        assert things == [*LAWS, "predicted", "predicted", "predicted", "generic"]


def test_a_prediction_that_is_off_fails():
    assert findings(made())[0].by_measure == Verdict.HOLDS
    assert max(abs(cell.z) for cell in compared(made()).values()) < 1e-9
    assert findings(made(shift=0.05))[0].by_measure == Verdict.FAILS
    z = compared(made(shift=0.05))["mnist", "W", "N(1, 1)", 0.5].z
    assert z == pytest.approx(0.05 / ((0.02**2 + 0.53 * 0.47 / 300) / 10) ** 0.5, rel=0.01)


def test_the_formula_must_fail_where_it_is_said_to():
    assert findings(made(generic=1.0))[1].by_measure == Verdict.HOLDS
    assert findings(made())[1].by_measure == Verdict.FAILS
    assert findings(made(shift=0.2, generic=1.0))[1].by_measure == Verdict.FAILS, "off on Gaussian inputs too"


def test_settings():
    full = grid("full")
    assert [cell["data"] for cell in full] == ["gaussian", "mnist", "cifar10"]
    assert {cell["p"] for cell in full} == {300}
    assert all(cell["m"] * cell["k"] in (500, 784, 1024) for cell in full)
    assert FIGURE.ours
    assert FIGURE.number == 14
    assert FIGURE.experiment.trials["full"] == 10
    for mode in MODES:
        assert all(figure14.cost(cell) > 0.0 for cell in grid(mode))
