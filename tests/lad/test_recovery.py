"""What L1 recovers, how much of it, and what rounding does to it."""

import numpy as np
import pytest

from netpurify import lad
from netpurify.lad import Status
from tests.lad.problems import planted

CURVE = {2.5: 0.175, 4: 0.325, 8: 0.50, 12.5: 0.575, 22: 0.675, 50: 0.775, 200: 0.875}
"""Fan-in / rank: the largest share of altered entries with at least 95 % exact repair, as published for rank 50."""


@pytest.mark.slow
@pytest.mark.parametrize("ratio", CURVE)
def test_published_repair_curve(ratio):
    k, p = int(50 * ratio), 400 if ratio <= 25 else 80
    share = {}
    for step in (-0.025, 0.0, 0.1):
        problem = planted(k, 50, p, CURVE[ratio] + step, seed=400)
        solution = lad.solve(problem.A, problem.B)
        exact = np.abs(solution.coefficients - problem.truth).max(axis=0) < 1e-9
        assert np.array_equal(exact, solution.status == Status.RECOVERED), "only the truth is called recovered"
        assert solution.certified.all()
        share[step] = exact.mean()
    error = 3 * np.sqrt(0.95 * 0.05 / p)
    assert share[-0.025] >= 0.95 - error
    assert share[0.0] >= 0.90 - error
    assert share[0.1] < 0.6


@pytest.mark.parametrize("eps", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rounded_data_are_recovered_to_their_rounding(dtype, eps):
    problem = planted(300, 40, 60, eps, seed=401, scale=20.0)
    B = problem.B.astype(dtype).astype(np.float64)
    unit = float(np.finfo(dtype).eps)
    floor = None if dtype is np.float32 else 4 * unit * np.abs(problem.A @ problem.truth).max()
    solution = lad.solve(problem.A, B, noise_floor=floor)
    assert (solution.status == (Status.RECOVERED if eps else Status.CLEAN)).all()
    assert np.abs(solution.coefficients - problem.truth).max() < 2 * unit
    assert (solution.noise_floor < 300 * unit).all()
    altered = np.abs(problem.B - problem.A @ problem.truth) > 1e-9
    found = solution.residual != 0
    missed = altered & ~found
    assert not (found & ~altered).any(), "rounding is not taken for an alteration"
    assert (
        np.abs(problem.B - problem.A @ problem.truth)[missed] <= np.broadcast_to(solution.noise_floor, B.shape)[missed]
    ).all()


def test_rounded_data_need_no_pivots():
    problem = planted(300, 40, 60, 0.1, seed=402)
    solution = lad.solve(problem.A, problem.B.astype(np.float32).astype(np.float64))
    assert solution.statistics.pivots == 0
    assert (solution.status == Status.RECOVERED).all()


def test_a_floor_of_zero_takes_every_digit_as_meant():
    problem = planted(60, 8, 10, 0.1, seed=403)
    B = problem.B.astype(np.float32).astype(np.float64)
    solution = lad.solve(problem.A, B, noise_floor=0.0)
    certificate = lad.verify(problem.A, B, solution.claim)
    assert (solution.status == Status.OPTIMAL).all()
    assert (certificate.relative_gap < 1e-12).all()
    assert (certificate.zeros == 8).all()


def test_gap_of_a_detected_floor_is_reported_and_small():
    problem = planted(300, 40, 60, 0.1, seed=404)
    B = problem.B.astype(np.float32).astype(np.float64)
    solution = lad.solve(problem.A, B)
    certificate = lad.verify(problem.A, B, solution.claim)
    assert (certificate.gap > 0).all()
    assert (certificate.gap <= 2 * 300 * solution.noise_floor).all()


def test_small_alterations_are_not_mistaken_for_rounding():
    for scale in (1e-3, 1e-6, 1e-9):
        problem = planted(200, 30, 40, 0.1, seed=405, scale=scale)
        solution = lad.solve(problem.A, problem.B)
        assert (solution.status == Status.RECOVERED).all()
        assert np.abs(solution.coefficients - problem.truth).max() < 1e-12


@pytest.mark.parametrize("law", ["normal", "far normal", "cauchy", "sign flip", "zeroing", "scaling"])
def test_any_law_of_alteration_is_recovered(law):
    rng = np.random.default_rng(406)
    problem = planted(200, 25, 60, 0.0, seed=406)
    hit = rng.random(problem.B.shape) < 0.3
    altered = {
        "normal": problem.B + rng.normal(0, 1, problem.B.shape),
        "far normal": problem.B + rng.normal(10, 1, problem.B.shape),
        "cauchy": problem.B + rng.standard_cauchy(problem.B.shape),
        "sign flip": -problem.B,
        "zeroing": 0 * problem.B,
        "scaling": 100 * problem.B,
    }[law]
    solution = lad.solve(problem.A, np.where(hit, altered, problem.B))
    assert (solution.status == Status.RECOVERED).mean() > 0.95
    found = solution.status == Status.RECOVERED
    assert np.abs(solution.coefficients - problem.truth)[:, found].max() < 1e-12


def test_flipped_exponent_bits_are_found():
    problem = planted(200, 25, 40, 0.0, seed=407)
    rng = np.random.default_rng(407)
    stored = problem.B.astype(np.float32)
    hit = rng.random(stored.shape) < 0.05
    flipped = (stored.view(np.uint32) ^ np.where(hit, np.uint32(1 << 30), np.uint32(0))).view(np.float32)
    flipped[~np.isfinite(flipped)] = np.nan
    B = flipped.astype(np.float64)
    solution = lad.solve(problem.A, B)
    assert (solution.status == Status.RECOVERED).all()
    assert np.abs(solution.coefficients - problem.truth).max() < 1e-6
    assert np.array_equal((solution.residual != 0) & ~np.isnan(B), hit & ~np.isnan(B))


@pytest.mark.parametrize(("of_design", "of_data"), [(1, 1), (1, 0.1), (0.1, 1), (0.5, 0.5), (1, 1 / 255)])
def test_numbers_on_a_grid_are_not_recovered_by_accident(of_design, of_data):
    rng = np.random.default_rng(408)
    A, B = rng.integers(0, 2, (40, 5)) * of_design, rng.integers(0, 2, (40, 200)) * of_data
    assert not (lad.solve(A, B).status == Status.RECOVERED).any()


def test_dense_noise_is_not_rounding_because_alterations_are_larger_still():
    rng = np.random.default_rng(409)
    problem = planted(200, 20, 40, 0.1, seed=409, scale=1e4)
    solution = lad.solve(problem.A, problem.B + 1e-2 * rng.standard_normal(problem.B.shape))
    assert not (solution.status == Status.RECOVERED).any()


def test_rows_too_small_to_notice_are_no_evidence():
    for seed in range(410, 420):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((60, 8)) * 10.0 ** rng.uniform(-6, 6, (60, 1))
        truth = rng.standard_normal((8, 20))
        B = A @ truth + (rng.random((60, 20)) < 0.3) * rng.normal(1, 1, (60, 20))
        solution = lad.solve(A, B)
        recovered = solution.status == Status.RECOVERED
        error = np.abs(A @ (solution.coefficients - truth)).max(axis=0)
        assert (error[recovered] < 1e-3).all()
