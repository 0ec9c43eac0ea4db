"""Quantiles and weights: against HiGHS, with the same certificate, and the median as it always was."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linprog

from netpurify import lad
from netpurify.errors import InputError
from netpurify.lad.loss import Loss

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def dense(rows, columns, count=3, seed=0):
    """Regressions with dense noise, and as many with some altered entries."""
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((rows, columns))
    design[:, 0] = 1.0
    noisy = design @ rng.standard_normal((columns, count)) + rng.standard_t(3, (rows, count))
    hit = rng.random((rows, count)) < 0.15
    altered = design @ rng.standard_normal((columns, count)) + hit * rng.normal(3, 1, (rows, count))
    return design, np.hstack([noisy, altered])


def least(design, column, quantile, weights):
    """The smallest loss by HiGHS: residuals as differences of two parts >= 0."""
    rows, columns = design.shape
    cost = np.concatenate([np.zeros(columns), 2 * quantile * weights, 2 * (1 - quantile) * weights])
    bounds = [(None, None)] * columns + [(0, None)] * (2 * rows)
    parts = np.hstack([design, np.eye(rows), -np.eye(rows)])
    return linprog(cost, A_eq=parts, b_eq=column, bounds=bounds, method="highs").fun


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("shape", [(30, 3), (60, 10), (25, 20)], ids=str)
def test_the_loss_is_the_smallest_and_certified(shape, quantile, weighted):
    design, right = dense(*shape)
    weights = np.random.default_rng(1).random(shape[0]) * 3 if weighted else None
    solution = lad.solve(design, right, quantile=quantile, weights=weights)
    ones = np.ones(shape[0]) if weights is None else weights
    smallest = [least(design, column, quantile, ones) for column in right.T]
    assert solution.objective == pytest.approx(smallest, rel=1e-8)
    assert solution.certified.all()
    certificate = lad.verify(design, right, solution.claim, quantile=quantile, weights=weights)
    assert certificate.certified.all()
    assert certificate.objective == pytest.approx(smallest, rel=1e-8)
    assert certificate.relative_gap.max() < 1e-9
    assert np.asarray(solution.residual) == pytest.approx(right - design @ np.asarray(solution.coefficients), abs=1e-9)


@pytest.mark.parametrize("quantile", QUANTILES)
def test_the_dual_lies_in_its_box_and_is_at_its_ends_off_zero(quantile):
    design, right = dense(60, 8)
    solution = lad.solve(design, right, quantile=quantile)
    dual, residual = np.asarray(solution.dual), np.asarray(solution.residual)
    assert np.abs(design.T @ dual).max() < 1e-9
    assert dual.min() >= -2 * (1 - quantile) - 1e-12
    assert dual.max() <= 2 * quantile + 1e-12
    assert dual[residual > 0] == pytest.approx(2 * quantile)
    assert dual[residual < 0] == pytest.approx(-2 * (1 - quantile))
    # The share below the fit is the quantile, up to the rows through which the fit passes.
    below = (residual < -1e-9).mean(axis=0)
    assert (below <= quantile + 1e-9).all()
    assert (below >= quantile - 8 / 60 - 1e-9)[:3].all()


def test_a_claim_about_another_quantile_is_not_believed():
    design, right = dense(60, 8)
    solution = lad.solve(design, right[:, :3], quantile=0.9)
    assert not lad.verify(design, right[:, :3], solution.claim).certified.any()
    assert not lad.verify(design, right[:, :3], solution.claim, quantile=0.8).certified.any()
    assert lad.verify(design, right[:, :3], solution.claim, quantile=0.9).certified.all()


def test_a_whole_weight_is_as_many_rows_and_a_weight_of_zero_none():
    design, right = dense(40, 5)
    counts = np.random.default_rng(2).integers(0, 4, 40)
    weighed = lad.solve(design, right, quantile=0.7, weights=counts)
    repeated = lad.solve(design.repeat(counts, axis=0), right.repeat(counts, axis=0), quantile=0.7)
    assert np.asarray(weighed.coefficients) == pytest.approx(np.asarray(repeated.coefficients), abs=1e-8)
    assert weighed.objective == pytest.approx(repeated.objective)
    expected = right - design @ np.asarray(weighed.coefficients)
    assert np.asarray(weighed.residual)[counts == 0] == pytest.approx(expected[counts == 0])


def test_turning_the_signs_turns_the_quantile():
    design, right = dense(80, 6)
    upper, lower = lad.solve(design, right, quantile=0.8), lad.solve(design, -right, quantile=0.2)
    assert np.asarray(upper.coefficients) == pytest.approx(-np.asarray(lower.coefficients), abs=1e-9)
    assert upper.objective == pytest.approx(lower.objective)


def test_missing_entries_and_rows_of_zeros_are_left_out():
    design, right = dense(50, 4)
    design[7] = 0.0
    gappy = right.copy()
    gappy[[3, 11], :2] = np.nan
    solution = lad.solve(design, gappy, quantile=0.3)
    kept = ~np.isnan(gappy[:, 0])
    alone = lad.solve(design[kept], right[kept], quantile=0.3)
    assert np.asarray(solution.coefficients)[:, :2] == pytest.approx(np.asarray(alone.coefficients)[:, :2], abs=1e-9)
    assert solution.certified.all()
    assert lad.verify(design, gappy, solution.claim, quantile=0.3).certified.all()


def test_altered_entries_are_recovered_at_other_quantiles_too():
    rng = np.random.default_rng(3)
    design, truth = rng.standard_normal((200, 20)), rng.standard_normal((20, 40))
    hit = rng.random((200, 40)) < 0.1
    solution = lad.solve(design, design @ truth + hit * rng.normal(0, 2, hit.shape), quantile=0.6)
    assert solution.count(lad.Status.RECOVERED) == 40
    assert np.asarray(solution.coefficients) == pytest.approx(truth, abs=1e-9)
    assert (solution.outcomes == "RECOVERED").all()


def test_ties_and_whole_numbers_are_solved():
    rng = np.random.default_rng(4)
    design = rng.integers(-2, 3, (60, 5)).astype(float)
    right = rng.integers(0, 4, (60, 10)).astype(float)
    solution = lad.solve(design, right, quantile=0.25)
    assert solution.certified.all()
    assert solution.objective == pytest.approx([least(design, column, 0.25, np.ones(60)) for column in right.T])


def test_the_loss_is_what_it_says():
    residual = np.array([[2.0, np.nan], [-1.0, 4.0]])
    assert Loss(0.9).of(residual).tolist() == pytest.approx([2 * 0.9 * 2 + 2 * 0.1 * 1, 2 * 0.9 * 4])
    assert Loss(0.5, np.array([3.0, 1.0])).of(residual).tolist() == [7.0, 4.0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"quantile": 0.0}, "quantile must lie strictly between 0 and 1"),
        ({"quantile": 1.5}, "quantile must lie strictly between 0 and 1"),
        ({"quantile": [0.1, 0.9]}, "for several quantiles, solve once for each"),
        ({"quantile": float("nan")}, "quantile must lie"),
        ({"weights": np.ones(3)}, r"weights must be 30 finite numbers >= 0, one for each row of the design; got \[3\]"),
        ({"weights": -np.ones(30)}, "from -1 to -1"),
        ({"weights": np.zeros(30)}, "all weights are zero"),
        ({"weights": np.full(30, np.inf)}, "finite numbers"),
        ({"quantile": 0.9, "backend": "torch"}, 'backend must be "auto" or "compiled" for quantiles'),
    ],
)
def test_what_has_no_meaning_is_refused(more, message):
    design, right = dense(30, 3)
    with pytest.raises(InputError, match=message):
        lad.solve(design, right, **more)


def test_weights_of_a_prepared_design_are_refused():
    design, right = dense(30, 3)
    with pytest.raises(InputError, match="weights must be known when a design is prepared"):
        lad.solve(lad.Design.prepare(design), right, weights=np.ones(30))


@pytest.mark.slow
def test_the_solver_needs_no_torch():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np; from netpurify import lad\n"
        "print(lad.solve(np.ones((5, 1)), np.arange(5.0)).coefficients[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert float(done.stdout) == pytest.approx(2.0), done.stderr
