"""Figure 18: small noise on every weight."""

import pytest

from netpurify.experiments.figures import figure18
from tests.experiments.own_figures import check_figure, table


@pytest.fixture(scope="module")
def rows():
    return table(figure18, p=20)


def error(rows, method, **wanted):
    (row,) = [row for row in rows if row["method"] == method and all(row.get(k) == v for k, v in wanted.items())]
    return row["W_error"]


@pytest.mark.parametrize(("kind", "size"), [("noise", -2.0), ("quantised", 4), ("truncated", 4)])
def test_a_share_of_dense_noise_stays(rows, kind, size):
    before, after, squares = (
        error(rows, name, kind=kind, size=size) for name in ("contaminated", "l1", "l2")
    )  # fmt: skip
    assert 0.4 * before < after < 0.8 * before
    assert squares == pytest.approx(0.5 * before, rel=0.1)


def test_large_alterations_are_found_among_rounded_weights(rows):
    (row,) = [row for row in rows if row["method"] == "l1, noise floor" and row["eps"] == 0.1]
    assert row["found"] > 0.98
    assert row["false"] < 0.2
    assert row["W_error"] < row["dense"] < 0.01 * error(rows, "contaminated", kind="mixed", eps=0.1)


def test_averaging_with_another_client_moves_half_way(rows):
    near, far = (error(rows, "contaminated", kind="averaged", size=size) for size in (0.1, 0.5))
    assert far == pytest.approx(5.0 * near)


def test_figure_reads_its_own_table(rows):
    check_figure(figure18, rows)
