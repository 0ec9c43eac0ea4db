"""Comparisons trial by trial: against the initial weights, from step to step, and beyond the noise between trials."""

from netpurify.experiments.figures.claims.trends import above, below, change, limits, relative, trend
from netpurify.findings import TrialSummary


def row(trial, eps, method, error, **settings):
    return {"trial": trial, "eps": eps, **settings, "method": method, "W_error": error, "beta_error": 2.0 * error}


def test_errors_are_shares_of_the_initial_weights_of_the_same_trial():
    rows = [
        row(0, 0.1, "initial weights", 0.4),
        row(0, 0.1, "contaminated", 0.8),
        row(0, 0.1, "l1", 0.1),
        row(1, 0.1, "initial weights", 0.1),
        row(1, 0.1, "l1", 0.1),
        row(1, 0.2, "l1", 0.1),
    ]
    found = [(one["W_ratio"], one["beta_ratio"]) for one in relative(rows) if one["method"] == "l1"]
    assert found == [(0.25, 0.25), (1.0, 1.0), (None, None)]
    assert [one["W_left"] for one in relative(rows) if one["method"] == "l1"] == [0.125, None, None]


def test_every_trial_has_a_limit_and_what_comes_back_later_does_not_count():
    shares = {0: (1.0, 1.0, 0.9, 1.0), 1: (1.0, 0.5, 0.0, 0.0), 2: (0.0, 0.0, 0.0, 0.0)}
    rows = [
        {"trial": trial, "eps": eps, "share": share}
        for trial, own in shares.items()
        for eps, share in zip((0.3, 0.2, 0.1, 0.0), reversed(own), strict=True)
    ]
    found = {one["trial"]: one["limit"] for one in limits(rows, "share", least=0.95)}
    assert found == {0: 0.1, 1: 0.0, 2: 0.0}
    assert [one["limit"] for one in limits(rows, "share", most=0.5, trial=2)] == [0.3]
    assert limits(rows, "other", least=0.95) == []


def test_cells_have_limits_of_their_own():
    rows = [{"trial": 0, "k": k, "eps": eps, "share": float(eps < k)} for k in (0.15, 0.35) for eps in (0.1, 0.2, 0.3)]
    assert [one["limit"] for one in limits(rows, "share", least=1.0, each=["k"])] == [0.1, 0.3]
    assert [one["limit"] for one in limits(rows, "share", least=1.0)] == [0.1]


def numbers(*values, first=0):
    return [{"trial": first + trial, "value": value} for trial, value in enumerate(values)]


def test_changes_are_those_of_the_same_trials():
    found = change(numbers(1.0, 5.0, 9.0), numbers(5.5, 9.5, 7.0, first=1), "value")
    assert (found.count, found.mean) == (2, 0.5)


def test_trials_that_differ_much_may_still_all_rise():
    found = trend(
        [("a", numbers(1.0, 50.0, 9.0)), ("b", numbers(0.0, 0.0, 0.0)), ("c", numbers(1.2, 50.1, 9.2))], "value"
    )
    assert found.rises
    assert not found.falls
    assert not trend([("a", numbers(1.0, 1.0, 1.0)), ("b", numbers(1.0, 3.0, 0.0))], "value").rises
    assert trend([("a", numbers(1.0, 1.1)), ("b", numbers(0.5, 0.6))], "value").falls
    assert not trend([("a", numbers(1.0, 1.1)), ("b", numbers(0.5, 0.6))], "value", least=0.6).falls
    assert str(found).startswith("a: 20.000 ± ")


def test_one_step_or_one_trial_shows_no_change():
    assert trend([("a", numbers(1.0, 2.0))], "value").needed[-1].count == 0
    assert not trend([("a", numbers(1.0)), ("b", numbers(2.0))], "value").rises


def test_twice_the_standard_error():
    found = TrialSummary(4, 1.1, 1.0, 0.0, 0.0, 0.0)
    assert above(found)
    assert not above(found, 0.2)
    assert below(found, 2.2)
    assert not below(found, 2.0)
