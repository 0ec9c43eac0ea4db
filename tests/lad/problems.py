"""Problems with known answers, each with the reason why it is here, and HiGHS as the judge of all others."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from netpurify.lad import Status


@dataclass(frozen=True)
class Problem:
    """A design, right-hand sides, and what must come out.

    Attributes:
        why: What a wrong solver would get wrong here.
        A: Design.
        B: Right-hand sides.
        truth: Planted coefficients, where the minimum must find them.
        fitted: Planted fitted values, which a column that is called recovered must have.
        status: Status of every column, where it is the same for all.
    """

    why: str
    A: np.ndarray
    B: np.ndarray
    truth: np.ndarray | None = None
    fitted: np.ndarray | None = None
    status: Status | None = None


def planted(k: int, q: int, p: int, eps: float, *, seed: int, scale: float = 1.0) -> Problem:
    """Gaussian design and coefficients; each entry is hit with probability ``eps`` by scale * N(1, 1)."""
    rng = np.random.default_rng(seed)
    A, U = rng.standard_normal((k, q)), rng.standard_normal((q, p))
    noise = (rng.random((k, p)) < eps) * rng.normal(1.0, 1.0, (k, p)) * scale
    return Problem("the ordinary case", A, A @ U + noise, U)


def highs(A: np.ndarray, b: np.ndarray) -> float:
    """Minimum of |b - A u|_1 by HiGHS, over the rows of b that are not NaN."""
    rows = ~np.isnan(b)
    A, b = A[rows], b[rows]
    k, q = A.shape
    if not k:
        return 0.0
    # Primal form, min sum(r+ + r-) with A u + r+ - r- = b: our own proofs are dual, so the judge should not be.
    costs = np.concatenate([np.zeros(q), np.ones(2 * k)])
    bounds = [(None, None)] * q + [(0, None)] * (2 * k)
    answer = linprog(costs, A_eq=np.hstack([A, np.eye(k), -np.eye(k)]), b_eq=b, bounds=bounds, method="highs")
    assert answer.status == 0, answer.message
    return float(answer.fun)


def _ordinary() -> Problem:
    problem = planted(60, 12, 20, 0.15, seed=1)
    return Problem(
        "most rows fit exactly: L1 must find the truth", problem.A, problem.B, problem.truth, status=Status.RECOVERED
    )


def _all_noise() -> Problem:
    rng = np.random.default_rng(2)
    why = "no row fits: the answer is a bare vertex and must not be called recovered"
    return Problem(why, rng.standard_normal((50, 10)), rng.standard_normal((50, 15)), status=Status.OPTIMAL)


def _beyond_the_limit() -> Problem:
    problem = planted(50, 20, 20, 0.5, seed=3)
    return Problem("half the rows are altered at fan-in / rank 2.5: the minimum is not the truth", problem.A, problem.B)


def _at_the_limit() -> Problem:
    problem = planted(100, 25, 30, 0.38, seed=4)
    return Problem("some columns recover and some do not: every stage is needed", problem.A, problem.B)


def _clean() -> Problem:
    problem = planted(40, 8, 5, 0.0, seed=5)
    return Problem(
        "nothing is altered: the residual is rounding only", problem.A, problem.B, problem.truth, status=Status.CLEAN
    )


def _dead_rows() -> Problem:
    problem = planted(60, 10, 10, 0.1, seed=6)
    A, B = problem.A.copy(), problem.B.copy()
    A[:25] = 0.0
    B[:25] = 0.0
    B[3] = 5.0
    return Problem("border pixels: rows of zeros fit nothing, and are no evidence", A, B, status=Status.RECOVERED)


def _only_dead_rows_are_zero() -> Problem:
    rng = np.random.default_rng(7)
    A, B = rng.standard_normal((40, 10)), rng.standard_normal((40, 10))
    A[:20], B[:20] = 0.0, 0.0
    return Problem("twenty zeros on dead rows must not count as surplus", A, B, status=Status.OPTIMAL)


def _duplicated_rows() -> Problem:
    rng = np.random.default_rng(8)
    A, B = rng.standard_normal((15, 5)), rng.standard_normal((15, 10))
    A, B = np.tile(A, (3, 1)), np.tile(B, (3, 1))
    A[15:30] *= -2.0
    B[15:30] *= -2.0
    return Problem("each row thrice, once negated and doubled: copies are no evidence", A, B, status=Status.OPTIMAL)


def _rank_deficient() -> Problem:
    rng = np.random.default_rng(9)
    A = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 10))
    B = A @ rng.standard_normal((10, 8)) + (rng.random((60, 8)) < 0.2) * rng.normal(1, 1, (60, 8))
    return Problem("ten columns of rank four: singular for textbook codes", A, B, status=Status.RECOVERED)


def _wide() -> Problem:
    rng = np.random.default_rng(10)
    A = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 80))
    B = A @ rng.standard_normal((80, 8)) + (rng.random((30, 8)) < 0.1) * rng.normal(1, 1, (30, 8))
    return Problem("more columns than rows, but of rank six", A, B, status=Status.RECOVERED)


def _full() -> Problem:
    rng = np.random.default_rng(11)
    why = "the design spans everything: the fit is B itself and says nothing"
    return Problem(why, rng.standard_normal((12, 12)), rng.standard_normal((12, 6)), status=Status.RANK_FULL)


def _wider_than_full() -> Problem:
    rng = np.random.default_rng(12)
    why = "more columns than rows and full rank"
    return Problem(why, rng.standard_normal((12, 30)), rng.standard_normal((12, 6)), status=Status.RANK_FULL)


def _no_columns() -> Problem:
    rng = np.random.default_rng(13)
    return Problem("q = 0: the residual is B", np.zeros((9, 0)), rng.standard_normal((9, 4)), status=Status.OPTIMAL)


def _zero_design() -> Problem:
    rng = np.random.default_rng(14)
    return Problem("all rows dead", np.zeros((9, 3)), rng.standard_normal((9, 4)))


def _no_right_hand_sides() -> Problem:
    return Problem("p = 0", np.random.default_rng(15).standard_normal((9, 3)), np.zeros((9, 0)))


def _one_row() -> Problem:
    return Problem("k = 1", np.array([[2.0]]), np.array([[3.0, 0.0, -1.0]]), status=Status.RANK_FULL)


def _median() -> Problem:
    B = np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 3.0], [8.0, 7.0], [9.0, 7.0]])
    why = "a column of ones: the minimiser is the median, by hand 4 and 3, and any zero is free"
    return Problem(why, np.ones((5, 1)), B, np.array([[4.0, 3.0]]), status=Status.OPTIMAL)


def _integer_ties() -> Problem:
    rng = np.random.default_rng(16)
    A, B = rng.integers(-2, 3, (60, 6)).astype(float), rng.integers(-3, 4, (60, 20)).astype(float)
    return Problem("small integers: residuals tie everywhere, a simplex without care cycles", A, B)


def _indicators() -> Problem:
    rng = np.random.default_rng(17)
    A = np.eye(5)[rng.integers(0, 5, 50)]
    return Problem("group indicators: five medians, all rows copies of five", A, rng.standard_normal((50, 10)))


def _row_scales() -> Problem:
    problem = planted(80, 12, 10, 0.1, seed=18)
    scales = 10.0 ** np.random.default_rng(18).uniform(-3, 3, (80, 1))
    return Problem("rows of size 1e-3 to 1e3", problem.A * scales, problem.B * scales)


def _column_scales() -> Problem:
    problem = planted(80, 12, 10, 0.1, seed=19)
    scales = 10.0 ** np.random.default_rng(19).uniform(-4, 4, 12)
    truth = None if problem.truth is None else problem.truth / scales[:, None]
    return Problem("columns of size 1e-4 to 1e4", problem.A * scales, problem.B, truth, status=Status.RECOVERED)


def _ill_conditioned() -> Problem:
    A = np.vander(np.linspace(0.0, 1.0, 60), 9, increasing=True)
    rng = np.random.default_rng(20)
    B = A @ rng.standard_normal((9, 6)) + (rng.random((60, 6)) < 0.1) * rng.normal(1, 1, (60, 6))
    return Problem("powers of x, condition 1e7", A, B, status=Status.RECOVERED)


def _erasures() -> Problem:
    problem = planted(80, 10, 12, 0.1, seed=21)
    B = problem.B.copy()
    B[np.random.default_rng(21).random(B.shape) < 0.2] = np.nan
    return Problem("a fifth of the entries known to be missing", problem.A, B, problem.truth, status=Status.RECOVERED)


def _wild() -> Problem:
    problem = planted(80, 10, 12, 0.05, seed=22)
    B = problem.B.copy()
    B[7] = 3e38
    why = "an exponent bit flip: the entry is 3e38, and must not cost the others their digits"
    return Problem(why, problem.A, B, problem.truth, status=Status.RECOVERED)


def _constant() -> Problem:
    problem = planted(80, 10, 12, 0.0, seed=23)
    B = problem.B + (np.random.default_rng(23).random(problem.B.shape) < 0.1)
    why = "every alteration is +1: the residuals tie, but zeros still outnumber them"
    return Problem(why, problem.A, B, problem.truth, status=Status.RECOVERED)


def _cauchy() -> Problem:
    problem = planted(80, 10, 12, 0.0, seed=24)
    rng = np.random.default_rng(24)
    B = problem.B + (rng.random(problem.B.shape) < 0.2) * rng.standard_cauchy(problem.B.shape)
    return Problem("alterations without a mean", problem.A, B, problem.truth, status=Status.RECOVERED)


def _zeros() -> Problem:
    problem = planted(40, 6, 3, 0.0, seed=25)
    return Problem("b = 0", problem.A, np.zeros((40, 3)), np.zeros((6, 3)), status=Status.CLEAN)


def _tiny_noise() -> Problem:
    problem = planted(80, 10, 12, 0.1, seed=26, scale=1e-10)
    return Problem("alterations of 1e-10, a million roundings", problem.A, problem.B, status=Status.RECOVERED)


def _large_noise() -> Problem:
    problem = planted(80, 10, 12, 0.1, seed=27, scale=1e3)
    return Problem("alterations of 1e3", problem.A, problem.B, problem.truth, status=Status.RECOVERED)


def _two_way() -> Problem:
    rng = np.random.default_rng(28)
    A = np.array([[*(np.arange(6) == i), *(np.arange(6) == j)] for i in range(6) for j in range(6)] * 2, dtype=float)
    U = rng.standard_normal((12, 60))
    B = A @ U + (rng.random((72, 60)) < 0.3) * rng.normal(1, 1, (72, 60))
    return Problem("a well-determined part must not vouch for a badly determined one", A, B, fitted=A @ U)


def _three_rows() -> Problem:
    rng = np.random.default_rng(29)
    A, U = rng.standard_normal((60, 5)), rng.standard_normal((5, 40))
    A[3:, 4] = 0.0
    B = A @ U
    B[:2] += rng.normal(1, 1, (2, 40))
    return Problem("one coefficient lives on three rows, two of them altered", A, B, fitted=A @ U)


def _sparse() -> Problem:
    rng = np.random.default_rng(30)
    A = rng.standard_normal((100, 10)) * (rng.random((100, 10)) < 0.1)
    U = rng.standard_normal((10, 60))
    B = A @ U + (rng.random((100, 60)) < 0.3) * rng.normal(1, 1, (100, 60))
    return Problem("nine tenths of the design are zero", A, B, fitted=A @ U)


def _whole_noise() -> Problem:
    rng = np.random.default_rng(31)
    A, B = rng.integers(0, 2, (100, 10)).astype(float), rng.integers(0, 2, (100, 60)).astype(float)
    return Problem("zeros and ones without any truth: many residuals vanish by accident", A, B, status=Status.OPTIMAL)


def _heavy_rows() -> Problem:
    rng = np.random.default_rng(32)
    x = np.concatenate([rng.standard_normal(95), 1e3 * rng.standard_normal(5)])
    A = np.column_stack([np.ones(100), x])
    B = np.column_stack([x, x + (rng.random(100) < 0.1)])
    return Problem("data as wild as the design: large but right entries must not be pulled in", A, B)


def _large_and_full() -> Problem:
    rng = np.random.default_rng(33)
    B = rng.standard_normal((10, 4))
    B[0] = 1e4
    return Problem(
        "one large entry that a square design fits", rng.standard_normal((10, 10)), B, status=Status.RANK_FULL
    )


def _erased_support() -> Problem:
    problem = _three_rows()
    B = problem.B.copy()
    B[:3] = np.nan
    return Problem("all rows of a coefficient are missing: the rest is fine, but nobody knows it", problem.A, B)


BUILDERS: list[Callable[[], Problem]] = [
    _ordinary, _all_noise, _beyond_the_limit, _at_the_limit, _clean, _dead_rows, _only_dead_rows_are_zero,
    _duplicated_rows, _rank_deficient, _wide, _full, _wider_than_full, _no_columns, _zero_design, _no_right_hand_sides,
    _one_row, _median, _integer_ties, _indicators, _row_scales, _column_scales, _ill_conditioned, _erasures, _wild,
    _constant, _cauchy, _zeros, _tiny_noise, _large_noise, _two_way, _three_rows, _sparse, _whole_noise, _heavy_rows,
    _large_and_full, _erased_support,
]  # fmt: skip
PROBLEMS = {build.__name__.strip("_"): build() for build in BUILDERS}
