"""What must not matter: order, scale, coordinates, grouping, threads."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netpurify import lad
from tests.lad.problems import PROBLEMS, planted

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@st.composite
def draws(draw):
    k, eps, seed = draw(st.integers(12, 60)), draw(st.sampled_from([0.0, 0.1, 0.3, 0.7])), draw(SEEDS)
    q = draw(st.integers(1, k // 3))
    return planted(k, q, 5, eps, seed=seed), np.random.default_rng(seed)


def objective(A, B, **options):
    solution = lad.solve(A, B, noise_floor=0.0, **options)
    assert solution.certified.all()
    return np.abs(B - A @ solution.coefficients).sum(axis=0)


@FEW
@given(draws())
def test_rows_may_come_in_any_order(draw):
    problem, rng = draw
    order = rng.permutation(problem.A.shape[0])
    base = objective(problem.A, problem.B)
    np.testing.assert_allclose(objective(problem.A[order], problem.B[order]), base, rtol=1e-9, atol=1e-12)


@FEW
@given(draws())
def test_columns_scale(draw):
    problem, rng = draw
    scales = 10.0 ** rng.uniform(-6, 6, 5)
    base = objective(problem.A, problem.B)
    np.testing.assert_allclose(
        objective(problem.A, problem.B * scales), base * scales, rtol=1e-9, atol=1e-12 * scales.max()
    )


@FEW
@given(draws())
def test_other_coordinates_give_the_same_fit(draw):
    problem, rng = draw
    q = problem.A.shape[1]
    turn = rng.standard_normal((q, q)) + 3 * np.eye(q)
    base = objective(problem.A, problem.B)
    np.testing.assert_allclose(objective(problem.A @ turn, problem.B), base, rtol=1e-7, atol=1e-10)


@FEW
@given(draws())
def test_adding_a_fit_adds_its_coefficients(draw):
    problem, rng = draw
    shift = 10.0 * rng.standard_normal((problem.A.shape[1], 5))
    base = objective(problem.A, problem.B)
    np.testing.assert_allclose(objective(problem.A, problem.B + problem.A @ shift), base, rtol=1e-8, atol=1e-10)


def bits(solution: lad.Solution) -> list[bytes]:
    names = ("coefficients", "residual", "dual", "status", "noise_floor", "stage")
    return [np.ascontiguousarray(getattr(solution, name)).tobytes() for name in names]


@pytest.fixture(scope="module")
def mixed():
    """Easy, hard, clean, erased and rounded columns together, more than two panels of them."""
    parts = [planted(120, 40, 100, eps, seed=200).B for eps in (0.05, 0.2, 0.5, 0.0)]
    A = planted(120, 40, 1, 0.0, seed=200).A
    B = np.hstack(parts)
    B[5, ::7] = np.nan
    B[:, ::5] = B[:, ::5].astype(np.float32)
    return A, B


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bits_do_not_depend_on_threads(mixed, threads):
    A, B = mixed
    assert bits(lad.solve(A, B, threads=threads)) == bits(lad.solve(A, B, threads=2))


def test_bits_do_not_depend_on_the_order_of_columns(mixed):
    A, B = mixed
    order = np.random.default_rng(201).permutation(B.shape[1])
    whole, shuffled = lad.solve(A, B), lad.solve(A, B[:, order])
    for name in ("coefficients", "residual", "dual"):
        assert getattr(whole, name)[:, order].tobytes() == np.ascontiguousarray(getattr(shuffled, name)).tobytes()
    assert np.array_equal(whole.status[order], shuffled.status)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 64, 150])
def test_bits_do_not_depend_on_blocks(mixed, size):
    A, B = mixed
    design = lad.Design.prepare(A)
    whole = lad.solve(design, B)
    blocks = list(lad.stream(design, (B[:, i : i + size] for i in range(0, B.shape[1], size))))
    for name in ("coefficients", "residual", "dual"):
        joined = np.hstack([getattr(block, name) for block in blocks])
        assert joined.tobytes() == np.ascontiguousarray(getattr(whole, name)).tobytes()


@pytest.mark.parametrize("shape", [(37, 11), (60, 35), (100, 25), (150, 30), (200, 12), (392, 198), (500, 60)])
def test_bits_hold_for_ragged_sizes(shape):
    problem = planted(*shape, 140, 0.1, seed=202)
    order = np.random.default_rng(203).permutation(140)
    whole, shuffled = lad.solve(problem.A, problem.B), lad.solve(problem.A, problem.B[:, order])
    assert whole.coefficients[:, order].tobytes() == np.ascontiguousarray(shuffled.coefficients).tobytes()
    alone = lad.solve(problem.A, problem.B[:, 3])
    assert alone.coefficients.tobytes() == np.ascontiguousarray(whole.coefficients[:, 3]).tobytes()


@pytest.mark.parametrize("seed", range(12))
def test_bits_hold_where_rows_differ_in_size_by_orders_of_magnitude(seed):
    """There the verifier refuses some columns that were called proven, which are then walked."""
    rng = np.random.default_rng([205, seed])
    k, p = int(rng.integers(12, 70)), 40
    A = rng.standard_normal((k, int(rng.integers(2, max(3, k // 2)))))
    A *= 10.0 ** rng.integers(-3, 4, (k, 1)) if seed % 2 else np.where(np.arange(k) < 3, 1e6, 1.0)[:, None]
    B = A @ rng.standard_normal((A.shape[1], p))
    B += (
        (rng.random((k, p)) < rng.choice([0.05, 0.3, 0.9], p))
        * rng.normal(1, 1, (k, p))
        * 10.0 ** rng.integers(-6, 7, p)
    )
    design = lad.Design.prepare(A)
    whole = lad.solve(design, B)
    for chosen in (rng.permutation(p), *rng.integers(0, p, (8, 1)), np.sort(rng.choice(p, 10, replace=False))):
        part = lad.solve(design, B[:, chosen])
        for name in ("coefficients", "residual", "dual", "status", "noise_floor", "stage"):
            expected = np.ascontiguousarray(getattr(whole, name)[..., chosen])
            assert np.ascontiguousarray(getattr(part, name)).tobytes() == expected.tobytes(), name


def test_a_column_of_zeros_beside_a_noisy_one_is_no_division_by_zero():
    rng = np.random.default_rng(206)
    A = rng.standard_normal((30, 4))
    B = np.stack([np.zeros(30), rng.standard_normal(30)], axis=1)
    for method in ("auto", "simplex"):
        assert lad.solve(A, B, noise_floor=0.0, method=method).certified.all()


def test_a_prepared_design_changes_nothing():
    problem = PROBLEMS["at_the_limit"]
    assert bits(lad.solve(lad.Design.prepare(problem.A), problem.B)) == bits(lad.solve(problem.A, problem.B))


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("scale", [1e-14, 1e-8, 1e5, 1e10])
def test_ties_are_broken_at_any_scale(scale, backend):
    rng = np.random.default_rng(204)
    A = np.eye(20)[rng.integers(0, 20, 100)]
    B = A @ rng.standard_normal((20, 60)) + (rng.random((100, 60)) < 0.5) * rng.normal(1, 1, (100, 60))
    plain, scaled = lad.solve(A, B, backend=backend), lad.solve(A, scale * B, backend=backend)
    assert plain.certified.all()
    assert scaled.certified.all()
    assert scaled.statistics.pivots < 3 * plain.statistics.pivots + 60
