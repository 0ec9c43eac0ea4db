"""Compiled factorisations and exchanges, beside numpy's."""

import numpy as np
import pytest

from netpurify.lad.kernels.cholesky import SIDES, cholesky, cholesky_inverse_trace, cholesky_solve, gram
from netpurify.lad.kernels.compiled import kernel
from netpurify.lad.kernels.exchange import choose_vertex


@kernel
def factor_and_solve(rows, count, rank, complement, matrix, right):
    gram(rows, count, rank, complement, matrix)
    good = cholesky(matrix)
    trace = 0.0
    if good:
        cholesky_solve(matrix, right)
        trace = cholesky_inverse_trace(matrix, rank)
    return good, trace


@kernel
def exchange_all(table, rank, weight, place, vertex):
    return choose_vertex(table, rank, weight, place, vertex)


def padded(matrix, rows, columns, dtype=np.float64):
    wide = np.zeros((rows, columns), dtype)
    wide[: matrix.shape[0], : matrix.shape[1]] = matrix
    return wide


@pytest.mark.parametrize(("count", "rank", "width"), [(50, 8, 8), (90, 21, 24), (200, 67, 72), (70, 1, 8)])
@pytest.mark.parametrize("complement", [False, True])
def test_solutions_and_traces_are_those_of_numpy(count, rank, width, complement):
    rng = np.random.default_rng(count)
    rows = rng.standard_normal((count, rank)) / np.sqrt(4 * count)
    exact = np.eye(rank) - rows.T @ rows if complement else rows.T @ rows
    sides = rng.standard_normal((rank, SIDES))
    matrix, right = np.full((width, width), np.nan), padded(sides, width, SIDES)
    good, trace = factor_and_solve(padded(rows, count, width), count, rank, complement, matrix, right)
    assert good
    np.testing.assert_allclose(right[:rank], np.linalg.solve(exact, sides), rtol=1e-9, atol=1e-12)
    assert not right[rank:].any()
    assert trace == pytest.approx(np.trace(np.linalg.inv(exact)), rel=1e-10)


def test_what_is_singular_is_refused():
    rows = np.random.default_rng(0).standard_normal((40, 16)) / 20
    rows[:, 9] = rows[:, 3] - rows[:, 12]
    assert not factor_and_solve(rows, 40, 16, False, np.zeros((16, 16)), np.zeros((16, SIDES)))[0]


@pytest.mark.parametrize(("rows", "rank"), [(40, 5), (100, 25), (120, 70), (64, 17)])
def test_all_edges_of_a_vertex_and_its_inverse(rows, rank):
    rng = np.random.default_rng(rows)
    basis = np.linalg.qr(rng.standard_normal((rows, rank)))[0]
    table = padded(basis, -(-rows // 8) * 8, -(-rank // 8) * 8, np.float32)
    weight = np.zeros(table.shape[0], np.float32)
    weight[:rows] = np.where(np.arange(rows) < rank + 3, 1.0, 1e-3)
    place, vertex = np.zeros(table.shape[0], np.int64), np.zeros(rank, np.int64)
    assert exchange_all(table, rank, weight, place, vertex)
    assert (vertex < rank + 3).sum() >= rank - 3, "rows of large weight come first"
    inverse = np.linalg.inv(basis[vertex])
    edges, size = basis @ inverse, np.abs(inverse).max()
    for row, variable in enumerate(place[:rows]):
        expected = edges[row] if variable >= 0 else inverse[-1 - variable]
        np.testing.assert_allclose(table[row, :rank], expected, atol=3e-5 * size)
    assert sorted(-1 - place[place < 0]) == list(range(rank))
    assert not weight[vertex].any()


def test_dependent_rows_give_no_vertex():
    rng = np.random.default_rng(3)
    table = padded(rng.standard_normal((24, 3)) @ rng.standard_normal((3, 4)), 24, 8, np.float32)
    assert not exchange_all(table, 4, np.ones(24, np.float32), np.zeros(24, np.int64), np.zeros(4, np.int64))
