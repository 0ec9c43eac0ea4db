"""The verifier believes nothing: every kind of wrong answer must be seen."""

from dataclasses import fields, replace

import numpy as np
import pytest

from netpurify import InputError, lad
from netpurify.lad import Status
from tests.lad.problems import PROBLEMS, highs, planted


@pytest.fixture
def solved():
    problem = planted(80, 12, 6, 0.15, seed=100)
    solution = lad.solve(problem.A, problem.B)
    assert (lad.verify(problem.A, problem.B, solution.claim).status == Status.RECOVERED).all()
    return problem, solution


def test_lower_bound_is_the_minimum_that_highs_finds(solved):
    problem, solution = solved
    certificate = lad.verify(problem.A, problem.B, solution.claim)
    theirs = [highs(problem.A, b) for b in problem.B.T]
    np.testing.assert_allclose(certificate.lower_bound, theirs, rtol=1e-9)
    np.testing.assert_allclose(certificate.objective, theirs, rtol=1e-9)


def test_wrong_coefficient_opens_the_gap(solved):
    problem, solution = solved
    coefficients = solution.coefficients.copy()
    coefficients[4, 2] += 1e-6
    certificate = lad.verify(problem.A, problem.B, replace(solution.claim, coefficients=coefficients))
    assert certificate.status[2] not in (Status.RECOVERED, Status.OPTIMAL, Status.CLEAN)
    assert certificate.gap[2] > 1e-7
    assert (np.delete(certificate.status, 2) == Status.RECOVERED).all()


def test_wrong_sign_in_the_dual_is_seen(solved):
    problem, solution = solved
    dual = solution.dual.copy()
    row = np.flatnonzero(solution.residual[:, 3])[0]
    dual[row, 3] *= -1
    certificate = lad.verify(problem.A, problem.B, replace(solution.claim, dual=dual))
    assert certificate.status[3] == Status.WITHIN_GAP
    assert certificate.infeasibility[3] > 1e-3
    assert certificate.relative_gap[3] > 1e-3


def test_dual_beyond_the_box_is_shrunk_into_it(solved):
    problem, solution = solved
    certificate = lad.verify(problem.A, problem.B, replace(solution.claim, dual=1.5 * solution.dual))
    np.testing.assert_allclose(certificate.infeasibility, 0.5)
    np.testing.assert_allclose(certificate.lower_bound, lad.verify(problem.A, problem.B, solution.claim).lower_bound)


def test_shrunken_dual_proves_less(solved):
    problem, solution = solved
    certificate = lad.verify(problem.A, problem.B, replace(solution.claim, dual=0.5 * solution.dual))
    assert (certificate.status == Status.WITHIN_GAP).all()
    np.testing.assert_allclose(certificate.relative_gap, 0.5, rtol=1e-6)


@pytest.mark.parametrize("names", [("coefficients", "dual"), ("coefficients",), ("dual",)])
def test_swapped_columns_are_seen(solved, names):
    problem, solution = solved
    order = [1, 0, 2, 3, 4, 5]
    swapped = replace(solution.claim, **{name: getattr(solution, name)[:, order] for name in names})
    certificate = lad.verify(problem.A, problem.B, swapped)
    assert not certificate.certified[:2].any()
    assert certificate.certified[2:].all()


def test_a_claim_has_nothing_that_could_be_believed(solved):
    problem, solution = solved
    assert [field.name for field in fields(lad.Claim)] == ["coefficients", "dual", "noise_floor"]
    claim = lad.Claim(solution.coefficients, solution.dual)
    assert lad.verify(problem.A, problem.B, claim).noise_floor.tolist() == [0.0] * 6
    one = replace(solution.claim, noise_floor=1e-12)
    assert (lad.verify(problem.A, problem.B, one).status == Status.RECOVERED).all(), "one floor for all columns"


def test_the_noise_floor_that_was_claimed_is_shown(solved):
    problem, solution = solved
    wide = replace(solution.claim, noise_floor=np.full(6, 100.0))
    certificate = lad.verify(problem.A, problem.B, wide)
    assert (certificate.noise_floor == 100.0).all()
    assert (certificate.status == Status.CLEAN).all(), "at a floor of 100 everything is zero, and the floor says so"
    assert (certificate.zeros == 80).all()


def test_lower_bound_holds_for_any_dual():
    rng = np.random.default_rng(101)
    problem = PROBLEMS["all_noise"]
    solution = lad.solve(problem.A, problem.B)
    basis = np.linalg.qr(problem.A)[0]
    for _ in range(20):
        dual = rng.standard_normal(problem.B.shape)
        dual -= basis @ (basis.T @ dual)
        dual /= np.abs(dual).max(axis=0) * rng.uniform(1.0, 3.0)
        bound = lad.verify(problem.A, problem.B, replace(solution.claim, dual=dual)).lower_bound
        assert (bound <= lad.verify(problem.A, problem.B, solution.claim).objective * (1 + 1e-12)).all()


def test_two_minimisers_are_not_called_unique():
    A, B = np.ones((4, 1)), np.array([[0.0], [1.0], [2.0], [5.0]])
    certificate = lad.verify(A, B, lad.solve(A, B).claim)
    assert certificate.objective[0] == pytest.approx(6.0)  # any value between the middle two
    assert not certificate.unique[0]
    assert np.isinf(certificate.stability[0])


def test_stability_bounds_what_a_change_of_the_data_does():
    problem = planted(60, 8, 5, 0.1, seed=102)
    certificate = lad.verify(problem.A, problem.B, lad.solve(problem.A, problem.B).claim)
    assert certificate.unique.all()
    rng = np.random.default_rng(102)
    before = problem.A @ lad.solve(problem.A, problem.B).coefficients
    for size in (1e-6, 1e-2, 1.0):
        change = size * rng.standard_normal(problem.B.shape)
        after = problem.A @ lad.solve(problem.A, problem.B + change, noise_floor=0.0).coefficients
        moved = np.linalg.norm(after - before, axis=0)
        assert (moved <= certificate.stability * np.abs(change).sum(axis=0)).all()
        assert (moved > 0).all()


def test_surplus_counts_zeros_beyond_the_rank():
    problem = planted(80, 12, 6, 0.15, seed=100)
    certificate = lad.verify(problem.A, problem.B, lad.solve(problem.A, problem.B).claim)
    residual = problem.B - problem.A @ problem.truth
    assert np.array_equal(certificate.zeros, (np.abs(residual) < 1e-12).sum(axis=0))
    assert np.array_equal(certificate.surplus, certificate.zeros - 12)


def test_shapes_must_fit(solved):
    problem, solution = solved
    with pytest.raises(InputError, match=r"expected B and dual \[80, 5\]"):
        lad.verify(problem.A, problem.B[:, :5], solution.claim)
    with pytest.raises(InputError, match="got"):
        lad.verify(problem.A[:, :5], problem.B, solution.claim)


def test_nearly_dependent_columns_hide_nothing():
    rng = np.random.default_rng(103)
    a, d = rng.standard_normal((2, 50))
    A, b = np.column_stack([a, a + 1e-10 * d]), 2 * a + 3 * d
    b[:10] += rng.standard_normal(10)
    best, one = lad.solve(A, b), lad.solve(a[:, None], b)
    poor = replace(
        best.claim, coefficients=np.append(one.coefficients, 0.0), dual=one.dual, noise_floor=one.noise_floor
    )
    assert lad.verify(A, b, best.claim).certified
    assert not lad.verify(A, b, poor).certified


def test_cancelling_coefficients_hide_nothing():
    rng = np.random.default_rng(104)
    a, b = rng.standard_normal((2, 40))
    A = np.column_stack([a, a])
    best = lad.solve(A, b)
    poor = replace(best.claim, coefficients=np.array([2.0**50 + 3, -(2.0**50)]))
    assert not lad.verify(A, b, poor).certified


def test_wild_entries_hide_nothing():
    rng = np.random.default_rng(105)
    A = rng.standard_normal((100, 5))
    first, second = rng.standard_normal((2, 5))
    b = A @ first
    b[:30] = A[:30] @ second
    b[60:] = np.where(rng.random(40) < 0.5, 1e30, -1e30)
    best = lad.solve(A, b)
    assert lad.verify(A, b, best.claim).certified
    assert not lad.verify(A, b, replace(best.claim, coefficients=second + 1.0)).certified


@pytest.mark.parametrize("field", ["coefficients", "dual"])
def test_what_is_not_a_number_fails(solved, field):
    problem, solution = solved
    broken = getattr(solution, field).copy()
    broken[0, 1] = np.nan
    certificate = lad.verify(problem.A, problem.B, replace(solution.claim, **{field: broken}))
    assert certificate.status[1] == Status.FAILED
    assert certificate.certified[[0, 2, 3, 4, 5]].all()


@pytest.mark.parametrize("floor", [np.nan, np.inf, -1.0])
def test_noise_floor_must_make_sense(solved, floor):
    problem, solution = solved
    with pytest.raises(InputError, match="finite number >= 0"):
        lad.verify(problem.A, problem.B, replace(solution.claim, noise_floor=np.full(6, floor)))


def test_one_large_row_does_not_pay_for_the_others():
    rng = np.random.default_rng(106)
    A = rng.standard_normal((60, 3))
    A[0] *= 1e14
    b = A @ rng.standard_normal(3)
    b[1:15] += rng.normal(1, 1, 14)
    best = lad.solve(A, b, noise_floor=0.0)
    across = np.linalg.svd(A[:1])[2][1]
    assert not lad.verify(A, b, replace(best.claim, coefficients=best.coefficients + 0.01 * across)).certified


@pytest.mark.parametrize(
    ("rows", "rank", "left_out"), [(60, 30, 10), (60, 30, 0), (60, 30, 28), (400, 9, 60), (90, 20, 60)]
)
def test_a_design_knows_the_leverages_among_chosen_rows(rows, rank, left_out):
    rng = np.random.default_rng(rows + left_out)
    A = rng.standard_normal((rows, rank))
    A[:, 3] = 0.0
    A[[5, 7], 3] = 1e-6, 1.0  # without row 7, row 5 alone knows this column; with it, row 7 nearly does
    design = lad.Design.prepare(A)
    for kept in ([5], [5, 7]):
        chosen = np.ones(rows, bool)
        chosen[rng.choice(np.setdiff1d(np.arange(rows), [5, 7]), left_out, replace=False)] = False
        chosen[[5, 7]] = np.isin([5, 7], kept)
        plain = 1.0 - np.square(np.linalg.qr(A[chosen])[0]).sum(axis=1)
        np.testing.assert_allclose(design.freedom(chosen), plain, atol=1e-9)
