"""The odds on a given design: against an LP solver that nobody here wrote, the exact formula, and what it promises."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, norm

from netpurify import InputError, data, lad
from netpurify.lad.odds.simulation import _critical, recovered

LEANING = float(norm.cdf(1.0))  # probability that N(1, 1) is positive


def smallest(A, z):
    """Min |z - A u|_1 by HiGHS, as a linear program in u and the two parts of the residual."""
    k, r = A.shape
    found = linprog(
        np.r_[np.zeros(r), np.ones(2 * k)],
        A_eq=np.hstack([A, np.eye(k), -np.eye(k)]),
        b_eq=z,
        bounds=[(None, None)] * r + [(0, None)] * (2 * k),
    )
    assert found.status == 0
    return found.fun


def alterations(rng, shape, share, positive):
    signs = np.where(rng.random(shape) < positive, 1.0, -1.0)
    return np.where(rng.random(shape) < share, signs * rng.exponential(size=shape), 0.0)


def patches():
    """Halves of 9 images of digits, as columns: non-negative, with rows of zeros."""
    images = data.classes(data.load("mnist-sample", split="train"), (0, 1, 2))
    return data.to_inputs(data.take(images, range(9))).reshape(18, 392).numpy().T


def features(k=60, n=5, p=120):
    """A_beta of a random network: non-negative features of n Gaussian inputs."""
    rng = np.random.default_rng(4)
    return np.maximum(rng.standard_normal((p, k)) @ rng.standard_normal((k, n)) / np.sqrt(k), 0.0)


DESIGNS = {"digits": patches, "features": features}


@pytest.mark.slow
@pytest.mark.parametrize("positive", [0.5, LEANING, 1.0])
@pytest.mark.parametrize("name", DESIGNS)
def test_critical_counts_are_those_of_linear_programs(name, positive):
    A = DESIGNS[name]()
    design = lad.Design.prepare(A)
    live = design.live
    rng = np.random.default_rng(1)
    order = np.argsort(rng.random((6, live.size)), axis=1)
    z = np.where(rng.random(order.shape) < positive, 1.0, -1.0) * rng.uniform(0.5, 3.0, order.shape)
    counts = _critical(design, order, z, 1)
    for column, count in enumerate(counts):
        for altered, right in ((count, True), (count + 1, False)):
            hit = np.zeros(live.size)
            hit[order[column, :altered]] = z[column, order[column, :altered]]
            below = np.abs(hit).sum() - smallest(design.compact, hit)
            assert (below < 1e-9) == right, f"column {column}: {altered} of {live.size} altered, better by {below}"


@pytest.mark.slow
@pytest.mark.parametrize("positive", [0.5, LEANING])
@pytest.mark.parametrize("name", DESIGNS)
def test_odds_are_those_of_linear_programs_and_not_the_generic_ones(name, positive):
    design = lad.Design.prepare(DESIGNS[name]())
    odds = lad.simulate(design, positive=positive, threads=1)
    share = odds.largest_share(probability=0.5).value
    rng = np.random.default_rng(2)
    hit = alterations(rng, (60, design.live.size), share, positive)
    exact = np.mean([np.abs(z).sum() - smallest(design.compact, z) < 1e-9 for z in hit])
    assert abs(exact - 0.5) < 3.0 * np.sqrt(0.25 / 60 + odds.error(share) ** 2)
    if positive > 0.5:
        assert lad.recovery_probability(design.live.size, design.rank, share) > 0.99


def test_sizes_of_alterations_do_not_matter():
    rng = np.random.default_rng(3)
    design = lad.Design.prepare(np.maximum(rng.standard_normal((80, 12)), 0.0))
    hit = rng.random((300, design.live.size)) < 0.38
    normal = 1.0 + rng.standard_normal(hit.shape)
    sizes = [normal, np.sign(normal), np.sign(normal) * rng.pareto(0.7, hit.shape)]
    found = [recovered(design, np.where(hit, size, 0.0), 1)[0] for size in sizes]
    assert 0.2 < found[0].mean() < 0.8
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_more_alterations_are_never_better():
    rng = np.random.default_rng(5)
    design = lad.Design.prepare(np.maximum(rng.standard_normal((40, 6)), 0.0))
    order = np.argsort(rng.random((20, design.live.size)), axis=1)
    z = np.where(rng.random(order.shape) < 0.8, 1.0, -1.0) * (1.0 + rng.random(order.shape))
    place = np.argsort(order, axis=1)
    right = np.array(
        [recovered(design, np.where(place < count, z, 0.0), 1)[0] for count in range(design.live.size + 1)]
    )
    assert (right[:-1] | ~right[1:]).all()
    assert (right.sum(axis=0) - 1 == _critical(design, order, z, 1)).all(), "the critical counts of a full scan"


def test_a_gaussian_design_has_the_generic_odds():
    odds = lad.simulate(np.random.default_rng(6).standard_normal((100, 25)), columns=400, threads=1)
    for share in (0.3, 0.35, 0.4, 0.45):
        found = odds.recovery(share)
        generic = lad.recovery_probability(100, 25, share)
        assert abs(found.value - generic) < 4.0 * odds.error(share)
        assert found.low < generic < found.high
    for units in (1, 300):
        limit = odds.largest_share(units=units)
        assert limit.low < lad.largest_share(100, 25, units=units) < limit.high
        assert limit.extrapolated == (units == 300)
        assert odds.recovery(limit.value, units=units).value == pytest.approx(0.95, abs=1e-6)


@pytest.mark.slow
def test_a_layer_of_many_units_survives_as_extrapolated():
    rng = np.random.default_rng(7)
    design = lad.Design.prepare(np.maximum(rng.standard_normal((60, 8)), 0.0))
    odds = lad.simulate(design, positive=LEANING, threads=1)
    limit = odds.largest_share(units=100, probability=0.5)
    assert limit.extrapolated
    survived = [
        recovered(design, alterations(rng, (100, design.live.size), limit.value, LEANING), 1)[0].all()
        for _ in range(100)
    ]
    low, high = (odds.recovery(limit.value, units=100).low, odds.recovery(limit.value, units=100).high)
    assert low - 0.1 < np.mean(survived) < high + 0.1
    assert 0.2 < np.mean(survived) < 0.8


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    A = np.maximum(np.random.default_rng(8).standard_normal((40, 5)), 0.0)
    truth = lad.simulate(A, positive=LEANING, columns=2000, seed=99, threads=1)
    share, layer = truth.largest_share(probability=0.8).value, truth.largest_share(units=20).value
    inside = [
        (
            found.recovery(share).low <= 0.8 <= found.recovery(share).high,
            found.largest_share(units=20).low <= layer <= found.largest_share(units=20).high,
        )
        for found in (lad.simulate(A, positive=LEANING, columns=40, seed=seed, threads=1) for seed in range(60))
    ]
    assert np.mean(inside, axis=0).min() > 0.9


def test_the_mean_over_orders_is_that_over_alterations():
    odds = lad.simulate(np.random.default_rng(9).standard_normal((30, 4)), columns=50, threads=1)
    assert odds.recovery(0.3).value == pytest.approx(binom.cdf(odds.counts, 30, 0.3).mean())


def test_a_law_may_know_the_row():
    """Signs that are those of a point of the span are the worst: half of all weight is enough for it."""
    rng = np.random.default_rng(12)
    A = rng.standard_normal((200, 3))
    own = np.where(A @ rng.standard_normal(3) > 0.0, 1.0, 0.0)
    aligned, random = lad.simulate(A, positive=own, columns=40), lad.simulate(A, columns=40)
    assert aligned.largest_share(probability=0.5).high < 0.52
    assert random.largest_share(probability=0.5).low > 0.7
    whole = lad.simulate(A, positive=np.full(200, 0.7), columns=40)
    assert (whole.counts == lad.simulate(A, positive=0.7, columns=40).counts).all()


def test_same_seed_same_bits_whatever_the_threads():
    A = np.random.default_rng(10).standard_normal((60, 10))
    found = [
        lad.simulate(A, columns=20, seed=seed, threads=threads).counts for seed, threads in ((1, 1), (1, 2), (2, 1))
    ]
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_ends():
    rng = np.random.default_rng(11)
    nothing = lad.simulate(np.zeros((7, 2)))
    assert nothing.recovery(1.0, units=1000) == nothing.largest_share() == lad.OddsEstimate(1.0, 1.0, 1.0)
    full = lad.simulate(rng.standard_normal((5, 9)))
    assert (full.counts == 0).all()
    assert full.recovery(0.1).value == pytest.approx(0.9**5)
    dead = np.vstack([rng.standard_normal((30, 3)), np.zeros((70, 3))])
    assert lad.simulate(dead, columns=30).live == 30
    assert (lad.simulate(dead, columns=30).counts == lad.simulate(dead[:30], columns=30).counts).all()
    half = lad.simulate(np.ones((41, 1)), positive=1.0, columns=10)
    assert (half.counts == 20).all(), "the median of 41"
    assert half.recovery(0.0, units=10**6) == half.recovery(0.5, units=0) == lad.OddsEstimate(1.0, 1.0, 1.0)
    assert half.recovery(1.0).value == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lad.simulate(np.ones((3, 1)), positive=1.5), r"positive must lie in \[0, 1\]"),
        (lambda: lad.simulate(np.ones((3, 1)), positive=[0.1, 0.2]), r"one number or one per row \[3\]; got \[2\]"),
        (lambda: lad.simulate(np.ones((3, 1)), columns=5), "columns must be a whole number, at least 6; got 5"),
        (lambda: lad.simulate(np.ones(3)), "two-dimensional|matrix"),
        (lambda: lad.simulate(np.ones((3, 1))).recovery(-0.1), r"share must lie in \[0, 1\]"),
        (lambda: lad.simulate(np.ones((3, 1))).recovery(0.1, units=-1), "units must be a number >= 0"),
        (lambda: lad.simulate(np.ones((3, 1))).largest_share(probability=1.0), "strictly between 0 and 1"),
        (lambda: lad.simulate(np.ones((3, 1))).largest_share(units=float("nan")), "units must be a number >= 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_interval_of_what_was_not_seen_trusts_no_law():
    # With 12 rows of rank 11 one alteration breaks a column, most of the time: no normal law describes the counts.
    design = np.random.default_rng(3).standard_normal((12, 11))
    odds = lad.simulate(design, threads=1)
    found = odds.largest_share(units=50)
    assert found.extrapolated
    untouched = (1.0 - found.value) ** 600
    told = odds.recovery(found.value, units=50)
    assert told.low <= untouched <= told.high
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize(("name", "value"), [("columns", 6.5), ("columns", "7"), ("seed", -1), ("seed", 1.5)])
def test_numbers_of_columns_and_seeds_are_whole(name, value):
    with pytest.raises(InputError, match=f"{name} must be a whole number"):
        lad.simulate(np.ones((4, 1)), **{name: value})
