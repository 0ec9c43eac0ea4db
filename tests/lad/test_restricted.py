"""Fits and duals on the rows kept, beside numpy's, whichever way they are computed."""

import numpy as np
import pytest

from netpurify import lad
from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.rows import add_rows
from netpurify.lad.stages import restricted
from netpurify.lad.stages.columns import ACTIVE, OPEN, Columns
from netpurify.lad.stages.restricted import solve_restricted

SHAPES = [(60, 20), (150, 12), (96, 40)]
"""Rows and rank: both kinds of factorisation; without I - QQ', which would be too large; whole tiles."""


def panel(k, rank, tilt, *, with_guess, seed=0):
    """A design and columns of which 0 to k - rank - 4 rows are left out, so that each way is taken by some."""
    rng = np.random.default_rng(seed)
    design = lad.Design.prepare(rng.standard_normal((k, rank)))
    design.warm()
    columns = Columns.load(design, rng.standard_normal((24, k)), tilt)
    columns.data -= design.fitted(design.coordinates(columns.data))
    for i in range(24):
        out = rng.permutation(k)[: i * (k - rank - 4) // 23]
        columns.left_out[i, out] = True
        columns.dual_target[i, out] = np.sign(rng.standard_normal(out.size))
        if with_guess:
            kept = ~columns.left_out[i, :k]
            columns.dual_target[i, :k][kept] = rng.uniform(-0.5, 0.5, np.count_nonzero(kept))
    columns.state[:] = ACTIVE
    return design, columns


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("with_guess", [False, True])
@pytest.mark.parametrize("tilt", [0.0, 0.4])
@pytest.mark.parametrize(("k", "rank"), SHAPES)
def test_solutions_are_those_of_numpy(monkeypatch, k, rank, tilt, with_guess, cached):
    if not cached:
        monkeypatch.setattr(restricted, "_IN_CACHE", 0)
    design, columns = panel(k, rank, tilt, with_guess=with_guess)
    found = solve_restricted(design, columns, with_guess=with_guess, with_dual=True)
    basis = design.compact
    assert (columns.state == ACTIVE).all()
    for i in range(24):
        kept, data = ~columns.left_out[i, :k], columns.data[i, :k]
        fit = np.linalg.lstsq(basis[kept], data[kept])[0]
        np.testing.assert_allclose(found.coordinates[i, :rank], fit, atol=1e-10)
        np.testing.assert_allclose(found.fitted[i, :k], basis @ fit, atol=1e-10)
        dual = columns.dual_target[i, :k].copy()
        dual[kept] -= found.correction[i, :k][kept]
        np.testing.assert_allclose((dual + tilt) @ basis, 0.0, atol=1e-10)
        # The smallest change on F lies in the span of the rows of F.
        change = found.correction[i, :k][kept]
        np.testing.assert_allclose(basis[kept] @ np.linalg.lstsq(basis[kept], change)[0], change, atol=1e-9)
        witness = found.witness[i, :k][kept]
        np.testing.assert_allclose(witness @ basis[kept], 0.0, atol=1e-9)
        assert np.abs(witness).max() > 1e-3


@pytest.mark.parametrize("with_guess", [False, True])
@pytest.mark.parametrize(("k", "rank"), SHAPES)
def test_bits_of_a_column_do_not_depend_on_the_way_of_its_neighbours(k, rank, with_guess):
    design, columns = panel(k, rank, 0.0, with_guess=with_guess)
    together = solve_restricted(design, columns, with_guess=with_guess, with_dual=True)
    for i in (0, 3, 11, 23):
        alone = columns.take(np.array([i]), 8)
        apart = solve_restricted(design, alone, with_guess=with_guess, with_dual=True)
        kept = ~columns.left_out[i]
        assert (alone.state[1:] == OPEN).all()
        for name in ("coordinates", "fitted"):
            np.testing.assert_array_equal(getattr(apart, name)[0], getattr(together, name)[i])
        for name in ("correction", "witness"):
            np.testing.assert_array_equal(getattr(apart, name)[0][kept], getattr(together, name)[i][kept])


@kernel
def add(total, factors, rows, index, count):
    add_rows(total, factors, 1, rows, index, count, -2.0)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_named_rows_are_added(count):
    rng = np.random.default_rng(count)
    rows, factors, total = rng.standard_normal((20, 13)), rng.standard_normal((9, 2)), rng.standard_normal(13)
    index = rng.permutation(20)[:9]
    expected = total - 2.0 * factors[:count, 1] @ rows[index[:count]]
    add(total, factors, rows, index, count)
    np.testing.assert_allclose(total, expected, rtol=1e-13, atol=1e-13)
