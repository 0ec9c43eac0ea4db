"""What a design survives for certain: bounds against an LP solver, promises against every alteration there is."""

from itertools import combinations, product

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from netpurify import InputError, lad

pytestmark = pytest.mark.slow  # linear programs

RNG = np.random.default_rng(600)
DESIGNS = {
    "gaussian": RNG.standard_normal((30, 5)),
    "heavy tails": RNG.standard_cauchy((40, 6)),
    "zeros and ones": RNG.integers(0, 2, (30, 4)).astype(float),
    "sparse, with dead rows": RNG.standard_normal((40, 5)) * (RNG.random((40, 5)) < 0.2),
    "polynomials": np.vander(np.linspace(0, 1, 40), 7),
    "dependent columns": RNG.standard_normal((30, 3)) @ RNG.standard_normal((3, 6)),
    "row scales": RNG.standard_normal((30, 4)) * 10.0 ** RNG.uniform(-3, 3, (30, 1)),
}


def exact(A, i):
    """Min |y|_inf subject to A'y = a_i, by HiGHS, on an orthonormal basis for its sake."""
    left, sizes, _ = np.linalg.svd(A, full_matrices=False)
    Q = left[:, sizes > 1e-10 * sizes[0]]
    k, r = Q.shape
    box = np.block([[np.eye(k), -np.ones((k, 1))], [-np.eye(k), -np.ones((k, 1))]])
    equal = np.hstack([Q.T, np.zeros((r, 1))])
    cost = np.r_[np.zeros(k), 1.0]
    return linprog(cost, box, np.zeros(2 * k), equal, Q[i], bounds=[(None, None)] * (k + 1)).fun


@pytest.mark.parametrize("name", DESIGNS)
def test_bounds_enclose_the_linear_programs(name):
    A = DESIGNS[name]
    rho = np.array([exact(A, i) for i in range(A.shape[0])])
    result = lad.worst_case(A, iterations=400)
    lower, upper = result.row_bounds.T
    assert (lower <= rho + 1e-9).all()
    assert (rho <= upper + 1e-9).all()
    assert result.rho == (lower.max(), upper.max())
    assert (upper - lower).max() < 0.05
    assert result.alterations <= int((np.cumsum(np.sort(rho)[::-1]) < 0.5 + 1e-9).sum())


def test_bounds_are_tight_and_give_the_same_count_on_a_gaussian_design():
    A = DESIGNS["gaussian"]
    rho = np.array([exact(A, i) for i in range(A.shape[0])])
    result = lad.worst_case(A)
    assert (result.row_bounds[:, 1] / rho).max() < 1.005
    assert (result.row_bounds[:, 0] / rho).min() > 0.995
    assert result.alterations == int((np.cumsum(np.sort(rho)[::-1]) < 0.5).sum()) == 3


def test_bounds_hold_after_one_iteration():
    A = DESIGNS["gaussian"]
    early, late = lad.worst_case(A, iterations=1), lad.worst_case(A)
    assert (early.row_bounds[:, 0] <= late.row_bounds[:, 1]).all()
    assert (early.row_bounds[:, 1] >= late.row_bounds[:, 0]).all()
    assert early.alterations <= late.alterations


def every_alteration(k, s, rng):
    """All supports of size s and all signs, [k, n]; whether L1 recovers depends on nothing else."""
    columns = []
    for rows in combinations(range(k), s):
        for signs in product((-1.0, 1.0), repeat=s):
            column = np.zeros(k)
            column[list(rows)] = np.array(signs) * 10.0 ** rng.uniform(-2, 2, s)
            columns.append(column)
    return np.stack(columns, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [610, 611, 612])
def test_no_alteration_whatever_breaks_the_promise_and_some_alteration_breaks_beyond_it(seed):
    rng = np.random.default_rng(seed)
    k, r = 16, 2
    A, u = rng.standard_normal((k, r)), rng.standard_normal(r)
    result = lad.worst_case(A)
    assert result.alterations >= 2

    def broken(s):
        B = (A @ u)[:, None] + every_alteration(k, s, rng)
        return (np.abs(lad.solve(A, B, noise_floor=0.0, threads=1).coefficients - u[:, None]).max(axis=0) > 1e-6).any()

    fewest = next(s for s in range(1, k) if broken(s))
    assert result.alterations < fewest <= result.breaking


@pytest.mark.parametrize(("k", "r"), [(40, 4), (100, 25), (120, 10)])
def test_alterations_aimed_at_the_weakest_direction_break_only_beyond_the_promise(k, r):
    rng = np.random.default_rng([620, k])
    A, u = rng.standard_normal((k, r)), rng.standard_normal(r)
    result = lad.worst_case(A)
    counterexample = result.counterexample
    assert np.count_nonzero(counterexample) == result.breaking > result.alterations > 0
    order = np.argsort(-np.abs(counterexample))
    kept = np.zeros_like(counterexample)
    kept[order[: result.alterations]] = counterexample[order[: result.alterations]]
    B = (A @ u)[:, None] + np.stack([counterexample, kept, 1e3 * kept, 1e-3 * kept], axis=1)
    wrong = np.abs(lad.solve(A, B, noise_floor=0.0, threads=1).coefficients - u[:, None]).max(axis=0) > 1e-9
    assert wrong.tolist() == [True, False, False, False]


def test_the_median_survives_less_than_half():
    assert lad.worst_case(np.ones((9, 1))).alterations == 4
    assert lad.worst_case(np.ones((8, 1))).alterations == 3, "four of eight would tie"
    assert lad.worst_case(np.ones((9, 1))).breaking == 5


def test_bounds_do_not_depend_on_the_basis():
    A = DESIGNS["gaussian"]
    mixed = A @ RNG.standard_normal((5, 5)) * 1e4
    one, other = lad.worst_case(A), lad.worst_case(mixed)
    assert np.allclose(one.row_bounds, other.row_bounds, rtol=3e-3)
    assert one.alterations == other.alterations


def test_dead_rows_are_free():
    A = DESIGNS["gaussian"]
    padded = np.vstack([A[:10], np.zeros((5, 5)), A[10:]])
    plain, result = lad.worst_case(A), lad.worst_case(padded)
    assert (result.row_bounds[10:15] == 0.0).all()
    assert (result.alterations, result.breaking) == (plain.alterations, plain.breaking)
    B = np.zeros(35)
    B[10:15] = 7.0  # every dead row, and as many others as are promised
    B[[0, 20, 34]] = [1.0, -5.0, 1e3]
    assert result.alterations == 3
    assert np.abs(lad.solve(padded, B, threads=1).coefficients).max() < 1e-9


def test_ends():
    full = lad.worst_case(np.random.default_rng(630).standard_normal((6, 6)))
    assert (full.alterations, full.breaking, full.rho[1]) == (0, 1, 1.0)
    nothing = lad.worst_case(np.zeros((6, 2)))
    assert (nothing.alterations, nothing.breaking, nothing.rho) == (6, None, (0.0, 0.0))


def test_nothing_is_promised_beyond_rounding():
    A = np.vander(np.linspace(0.0, 1.0, 60), 12)
    A[:, 0] = A[:, 1] * (1.0 + 1e-13 * np.arange(60))
    design = lad.Design.prepare(A, rank_tolerance=1e-30)
    assert design.condition > 1e13
    assert lad.worst_case(design).alterations == 0


def test_takes_tensors_and_prepared_designs():
    A = DESIGNS["gaussian"]
    expected = lad.worst_case(A).row_bounds
    assert np.array_equal(lad.worst_case(torch.from_numpy(A)).row_bounds, expected)
    assert np.array_equal(lad.worst_case(lad.Design.prepare(A)).row_bounds, expected)


def test_refuses_no_iterations():
    with pytest.raises(InputError, match="iterations must be at least 1; got 0"):
        lad.worst_case(np.ones((3, 1)), iterations=0)
