"""Columns beyond the limit of recovery: the walk in float32 finds their minimum, and float64 proves it."""

import numpy as np
import pytest

from netpurify import lad
from netpurify.lad.stages import simplex

from .problems import highs


def dense(k, q, p, *, seed, missing=0.0):
    """Columns of which no more than ``rank`` rows fit."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((k, q))
    B = A @ rng.standard_normal((q, p)) + rng.standard_t(3, (k, p))
    B[rng.random(B.shape) < missing] = np.nan
    return A, B


@pytest.fixture
def left(monkeypatch):
    """How many columns are left to the walk in float64, solve by solve."""
    counts = []

    def walk(design, columns, estimate, remaining):
        counts.append(remaining.size)
        return original(design, columns, estimate, remaining)

    original = simplex._walk
    monkeypatch.setattr(simplex, "_walk", walk)
    return counts


@pytest.mark.parametrize(
    ("k", "q"), [(60, 20), (60, 40), (300, 12), (43, 40), (90, 1), (200, 104)], ids=lambda size: str(size)
)
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_all_columns_are_proven_without_the_walk_in_float64(k, q, quantile, left):
    A, B = dense(k, q, 40, seed=k + q)
    solution = lad.solve(A, B, quantile=quantile, threads=1)
    assert (solution.status == lad.Status.OPTIMAL).all()
    assert sum(left) == 0
    assert ((solution.residual == 0).sum(axis=0) == q).all(), "a vertex fits as many rows as the rank"
    assert (lad.verify(A, B, solution.claim, quantile=quantile).status == lad.Status.OPTIMAL).all()
    if quantile == 0.5:
        assert solution.objective[:3] == pytest.approx([highs(A, B[:, i]) for i in range(3)], rel=1e-9)


@pytest.mark.parametrize(("k", "q"), [(80, 20), (60, 40)])
def test_missing_entries_take_no_part(k, q, left):
    A, B = dense(k, q, 30, seed=5, missing=0.1)
    solution = lad.solve(A, B, threads=1)
    assert (solution.status == lad.Status.OPTIMAL).all()
    assert sum(left) == 0
    assert solution.objective[:3] == pytest.approx([highs(A, B[:, i]) for i in range(3)], rel=1e-9)


@pytest.mark.parametrize(("k", "q"), [(80, 20), (60, 40)])
def test_bits_do_not_depend_on_whether_neighbours_have_missing_entries(k, q):
    A, B = dense(k, q, 12, seed=8)
    B[3, ::2] = np.nan
    together = lad.solve(A, B, threads=1)
    for i in range(4):
        alone = lad.solve(A, B[:, i], threads=1)
        assert alone.coefficients.tobytes() == together.coefficients[:, i].tobytes()
        assert alone.dual.tobytes() == together.dual[:, i].tobytes()


@pytest.mark.parametrize(("k", "q"), [(200, 40), (200, 120)])
def test_rounded_data_of_which_every_digit_is_meant_take_few_pivots(k, q, left):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((k, q)).astype(np.float32).astype(np.float64)
    B = A @ rng.standard_normal((q, 40)) + (rng.random((k, 40)) < 0.05) * rng.normal(1.0, 1.0, (k, 40))
    B = B.astype(np.float32).astype(np.float64)
    solution = lad.solve(A, B, noise_floor=0.0, threads=1)
    assert (solution.status == lad.Status.OPTIMAL).all()
    assert sum(left) == 0
    # From any of the vertices that look alike in float32 it would take hundreds.
    assert solution.statistics.pivots / 40 < q / 2
    assert solution.objective[:2] == pytest.approx([highs(A, B[:, i]) for i in range(2)], rel=1e-7)


def test_a_walk_that_finds_nothing_leaves_the_columns_to_float64(monkeypatch, left):
    monkeypatch.setattr(simplex, "solve_near", lambda _panel, unsolved: unsolved[:0])
    A, B = dense(60, 20, 16, seed=1)
    solution = lad.solve(A, B, threads=1)
    assert left == [16]
    assert (solution.status == lad.Status.OPTIMAL).all()
