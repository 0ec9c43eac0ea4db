"""Every way through the solver keeps the same contract on every problem of the catalogue."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest

from netpurify import lad
from netpurify.lad import Status, design
from netpurify.lad.experimental import torch_stages
from netpurify.lad.stages import identify
from tests.lad.problems import PROBLEMS, Problem, highs

pytestmark = pytest.mark.slow  # 600 problems and paths

PATHS: dict[str, Callable[..., lad.Solution]] = {
    "auto": lad.solve,
    "simplex": partial(lad.solve, method="simplex"),
    "torch": partial(lad.solve, backend="torch"),
    "without projector": lad.solve,
    "late": lad.solve,
}
"""As shipped; pivoting only; through torch; without the k x k projector; with identification cut short at first."""
BEYOND_HIGHS = {"wild", "tiny_noise"}
"""HiGHS takes 1e20 for infinity and lets constraints miss by 1e-7; the planted truth judges these."""


@cache
def minima(name: str) -> list[float]:
    """What HiGHS finds for each column of a problem, which is the same whatever path is compared with it."""
    problem = PROBLEMS[name]
    return [highs(problem.A, column) for column in problem.B.T]


@pytest.fixture(params=PATHS)
def solve(request, monkeypatch) -> Callable[..., lad.Solution]:
    if request.param == "without projector":
        monkeypatch.setattr(design, "_COMPLEMENT_BYTES", -1)
    if request.param == "late":
        for module in (identify, torch_stages):
            monkeypatch.setattr(module, "schedule", lambda _rows, _rank: (1, 2, 90))
    return PATHS[request.param]


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in BEYOND_HIGHS])
def test_minimum_is_no_worse_than_that_of_highs(solve, name):
    problem = PROBLEMS[name]
    solution = solve(problem.A, problem.B, noise_floor=0.0)
    residual = problem.B - problem.A @ solution.coefficients
    for j, theirs in enumerate(minima(name)):
        ours = np.nansum(np.abs(residual[:, j]))
        size = np.nansum(np.abs(problem.B[:, j]))
        assert ours <= theirs * (1 + 1e-9) + 1e-12 * size, f"column {j}: {ours} > {theirs}"


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_column_is_certified_with_the_expected_status(solve, name):
    problem = PROBLEMS[name]
    solution = solve(problem.A, problem.B)
    certificate = lad.verify(problem.A, problem.B, solution.claim)
    assert np.array_equal(certificate.status, solution.status)
    assert (certificate.certified | (certificate.status == Status.RANK_FULL)).all(), certificate.status
    if problem.status is not None:
        assert (solution.status == problem.status).all(), solution.status


@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if problem.truth is not None])
def test_recovered_columns_are_the_planted_ones(solve, name):
    problem: Problem = PROBLEMS[name]
    solution = solve(problem.A, problem.B)
    found = np.isin(solution.status, (Status.RECOVERED, Status.CLEAN))
    if problem.status is not None:
        assert (found == (problem.status is not Status.OPTIMAL)).all()
        found[:] = True  # a unique minimum is the planted one whether or not there is evidence for it
    error = np.abs(solution.coefficients - problem.truth) / np.abs(problem.truth).max(initial=1e-300)
    assert error[:, found].max(initial=0.0) < 1e-12


@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if problem.fitted is not None])
def test_nothing_but_the_truth_is_called_recovered(solve, name):
    problem = PROBLEMS[name]
    solution = solve(problem.A, problem.B)
    error = np.abs(problem.A @ solution.coefficients - problem.fitted).max(axis=0)
    recovered = solution.status == Status.RECOVERED
    assert (error[recovered] < 1e-9).all()
    assert (error[~recovered] > 1e-9).any(), "the problem is hard enough for a wrong claim"


def test_coefficients_without_rows_are_not_called_recovered(solve):
    problem = PROBLEMS["erased_support"]
    assert (solve(problem.A, problem.B).status != Status.RECOVERED).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_answer_is_consistent(solve, name):
    problem = PROBLEMS[name]
    solution = solve(problem.A, problem.B)
    k, q, p = *problem.A.shape, problem.B.shape[1]
    assert solution.coefficients.shape == (q, p)
    assert solution.residual.shape == solution.dual.shape == (k, p)
    assert np.isfinite(solution.coefficients).all()
    erased = np.isnan(problem.B)
    assert np.array_equal(np.isnan(solution.residual), erased)
    assert np.array_equal(solution.missing, erased.sum(axis=0))
    residual = np.where(erased, 0.0, problem.B - problem.A @ solution.coefficients)
    off_zero = np.where(erased, 0.0, solution.residual) != 0.0
    assert (
        np.abs(residual[~off_zero]) <= np.broadcast_to(2 * solution.noise_floor + 1e-13, residual.shape)[~off_zero]
    ).all()
    np.testing.assert_allclose(
        solution.residual[off_zero],
        residual[off_zero],
        rtol=1e-9,
        atol=1e-14 * np.abs(problem.A @ solution.coefficients).max(initial=1.0),
    )
    assert sum(solution.statistics.finished.values()) == p


def test_paths_are_really_taken():
    problem = PROBLEMS["ordinary"]
    auto = lad.solve(problem.A, problem.B).statistics
    walked = lad.solve(problem.A, problem.B, method="simplex").statistics
    through_torch = lad.solve(problem.A, problem.B, backend="torch").statistics
    assert auto.finished["identify"] == through_torch.finished["identify"] == walked.finished["simplex"] == 20
    assert auto.pivots == through_torch.pivots == 0 < walked.pivots
