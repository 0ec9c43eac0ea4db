"""The odds of recovery on a generic design, against closed forms, published curves and simulation."""

from itertools import pairwise

import numpy as np
import pytest

from netpurify import InputError, lad
from netpurify.lad.odds.descent_cone import log_failure, log_success, log_volumes
from netpurify.lad.odds.limits import largest_share, recovery_probability, tolerance

pytestmark = pytest.mark.slow  # simulations


def failure(k, r, s):
    return float(np.exp(log_failure(k, r, np.array([s])))[0])


@pytest.mark.parametrize(
    ("ratio", "share"), [(2.46, 0.25), (4.1, 0.40), (8, 0.55), (22, 0.725), (50, 0.825), (200, 0.90)]
)
def test_tolerance_is_the_published_curve_of_half_the_repairs(ratio, share):
    assert abs(tolerance(round(1000 * ratio), 1000) - share) < 0.02


def test_tolerance_at_the_ends():
    assert tolerance(10, 10) == tolerance(10, 12) == 0.0
    assert tolerance(10, 0) == 1.0


@pytest.mark.parametrize(
    ("ratio", "share"), [(2.5, 0.175), (4, 0.325), (8, 0.50), (12.5, 0.575), (22, 0.675), (50, 0.775), (200, 0.875)]
)
def test_largest_share_is_the_published_curve_of_95_percent(ratio, share):
    assert share - 0.003 < largest_share(int(50 * ratio), 50) < share + 0.025, "published on a grid of .025, from below"


@pytest.mark.parametrize(
    ("k", "r", "s", "expected"),
    [
        (2, 1, 1, 0.5),
        (3, 1, 1, 2 * np.arcsin(1 / 3) / np.pi),  # solid angle at a vertex of the octahedron, twice
        (3, 1, 2, np.arccos(-1 / 3) / np.pi),  # its dihedral angle
        (3, 1, 3, 1.0),
        (7, 6, 1, 6 / 7),  # one direction is left: the altered row must have its largest component
        (40, 39, 1, 39 / 40),
        (40, 39, 2, 1.0),
    ],
)
def test_closed_forms(k, r, s, expected):
    assert failure(k, r, s) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("k", "s"), [(5, 1), (50, 1), (50, 25), (50, 49), (50, 50), (392, 100), (1000, 900)])
def test_volumes_are_a_distribution_whose_even_and_odd_halves_balance(k, s):
    volumes = np.exp(log_volumes(k, np.array([s]), np.arange(k + 1)))[0]
    assert volumes[::2].sum() == pytest.approx(0.5, abs=1e-10)
    assert volumes[1::2].sum() == pytest.approx(0.5, abs=1e-10)


@pytest.mark.parametrize(("k", "r"), [(50, 6), (200, 100), (784, 98)])
def test_failure_and_success_make_one(k, r):
    altered = np.arange(1, k - r + 1)
    middle = altered[np.abs(altered - k * tolerance(k, r)) < 0.5 * np.sqrt(k)]
    total = np.exp(log_failure(k, r, middle)) + np.exp(log_success(k, r, middle))
    assert np.abs(total - 1.0).max() < 1e-10


@pytest.mark.parametrize(("k", "r"), [(300, 1), (392, 42), (392, 196), (784, 300)])
def test_wide_windows_are_interpolated_without_harm(k, r):
    share = largest_share(k, r, probability=0.7)
    altered = np.arange(1, k - r + 1)
    few = altered <= k * tolerance(k, r)
    failures = np.r_[0.0, np.exp(log_failure(k, r, altered[few])), -np.expm1(log_success(k, r, altered[~few]))]
    failures = np.r_[failures, np.ones(k + 1 - failures.size)]
    ways = np.cumsum(np.r_[0.0, np.log(np.arange(k, 0, -1) / np.arange(1, k + 1))])
    s = np.arange(k + 1)
    weights = np.exp(ways + s * np.log(share) + (k - s) * np.log1p(-share))
    assert 1.0 - weights @ failures == pytest.approx(0.7, abs=1e-5)


def recovered(rng, k, r, p, share, mean):
    A, U = rng.standard_normal((k, r)), rng.standard_normal((r, p))
    B = A @ U + (rng.random((k, p)) < share) * rng.normal(mean, 1.0, (k, p))
    return np.abs(lad.solve(A, B, threads=1).coefficients - U).max(axis=0) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(("k", "r"), [(50, 25), (50, 2), (100, 25), (200, 10)])
@pytest.mark.parametrize("probability", [0.9, 0.5])
def test_units_are_recovered_as_often_as_predicted(k, r, probability):
    rng = np.random.default_rng([500, k, r])
    share = largest_share(k, r, probability=probability)
    right = np.concatenate([recovered(rng, k, r, 20, share, 0.0) for _ in range(60)])
    assert abs(right.mean() - probability) < 3.3 * np.sqrt(probability * (1 - probability) / right.size)


@pytest.mark.slow
def test_layers_are_recovered_as_often_as_predicted():
    rng = np.random.default_rng(501)
    share = largest_share(50, 12, units=100, probability=0.5)
    whole = [recovered(rng, 50, 12, 100, share, 0.0).all() for _ in range(150)]
    assert abs(np.mean(whole) - 0.5) < 3.3 * np.sqrt(0.25 / 150)


@pytest.mark.slow
def test_alterations_of_one_sign_make_units_fail_together():
    rng = np.random.default_rng(502)
    share = largest_share(50, 6, units=100, probability=0.5)
    whole = [recovered(rng, 50, 6, 100, share, 10.0).all() for _ in range(150)]
    assert np.mean(whole) > 0.55, "the power of units is a floor for the mean over designs"


@pytest.mark.parametrize(("k", "r"), [(20, 1), (50, 20), (392, 42), (392, 391)])
def test_monotone_in_share_units_and_rank(k, r):
    by_share = [recovery_probability(k, r, share) for share in np.linspace(0, 1, 201)]
    by_units = [recovery_probability(k, r, 0.3, units=units) for units in (0, 1, 2, 10, 1000, 10**6)]
    by_rank = [recovery_probability(k, rank, 0.3) for rank in range(0, k + 1, max(1, k // 10))]
    for values in (by_share, by_units, by_rank):
        assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))
    assert by_share[0] == 1.0
    assert by_share[-1] == 0.0


@pytest.mark.parametrize("units", [1, 300, 10**6])
@pytest.mark.parametrize(("k", "r"), [(2, 1), (50, 6), (392, 42), (5000, 1000)])
def test_largest_share_inverts(k, r, units):
    share = largest_share(k, r, units=units, probability=0.9)
    assert recovery_probability(k, r, share, units=units) == pytest.approx(0.9, abs=1e-6)
    assert recovery_probability(k, r, share, units=units) >= 0.9


def test_a_million_units_keep_their_digits():
    probability = recovery_probability(392, 42, 0.38, units=10**6)
    log_unit = np.log(recovery_probability(392, 42, 0.38, units=1000)) / 1000
    assert 0.5 < probability < 0.999
    assert probability == pytest.approx(np.exp(1e6 * log_unit), rel=1e-9)


def test_ends():
    assert recovery_probability(30, 0, 1.0, units=10**6) == largest_share(30, 0) == 1.0
    assert recovery_probability(30, 30, 0.1) == pytest.approx(0.9**30)
    assert recovery_probability(1, 1, 0.25) == pytest.approx(0.75)
    assert recovery_probability(30, 10, 0.0, units=10**6) == 1.0
    assert recovery_probability(30, 10, 1.0) == 0.0
    assert recovery_probability(30, 10, 1.0, units=0) == largest_share(30, 10, units=0) == 1.0
    assert recovery_probability(30, 10, 0.9, units=10**6) == 0.0


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 0, 0.1), {}, "fan_in must be a whole number"),
        ((10.5, 2, 0.1), {}, "fan_in must be a whole number"),
        ((10, 11, 0.1), {}, "rank must be a whole number from 0 to the fan-in, 10; got 11"),
        ((10, -1, 0.1), {}, "rank must be"),
        ((10, 2, 1.5), {}, r"share must lie in \[0, 1\]"),
        ((10, 2, float("nan")), {}, "share must lie"),
        ((10, 2, 0.1), {"units": -1}, "units must be"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        recovery_probability(*arguments, **options)


@pytest.mark.parametrize("probability", [0.0, 1.0, float("nan")])
def test_a_probability_to_reach_lies_between_0_and_1(probability):
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        largest_share(10, 2, probability=probability)
