"""``RECOVERED`` is for fits that are the truth: alterations that agree with one another must not pass for it."""

from math import comb

import numpy as np
import pytest
from scipy.stats import poisson

from netpurify import lad
from netpurify.lad import Design, Status
from netpurify.lad.verifier.column_space import on_a_grid
from netpurify.lad.verifier.evidence import discounted
from netpurify.lad.verifier.residuals import SortedSizes
from netpurify.lad.verifier.rivals import odds_of_rivals
from netpurify.lad.verifier.sparse import sparse_vectors
from tests.lad.problems import planted


def layout(first: int, second: int) -> np.ndarray:
    """Indicators of the rows and of the columns of a table."""
    return np.hstack([np.repeat(np.eye(first), second, axis=0), np.tile(np.eye(second), (first, 1))])


def incidence(rng: np.random.Generator) -> np.ndarray:
    """Differences of two of 15 vertices, for 70 random edges."""
    pairs = np.array([(i, j) for i in range(15) for j in range(i)])
    ends = pairs[rng.choice(len(pairs), 70, replace=False)]
    return np.eye(15)[ends[:, 0]] - np.eye(15)[ends[:, 1]]


DESIGNS = {
    "two-way": lambda _: layout(9, 10),
    "two-way, other columns": lambda rng: layout(9, 10) @ rng.standard_normal((19, 19)),
    "incidence": incidence,
    "0/1": lambda rng: (rng.random((80, 10)) < 0.2).astype(float),
}
TIED = {
    "constant": lambda _, shape: np.full(shape, 1.7),
    "three values": lambda rng, shape: rng.choice([0.7, -1.3, 2.9], shape),
    "whole numbers": lambda rng, shape: rng.integers(1, 4, shape) * rng.choice([-1.0, 1.0], shape),
    "signs": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
}
GENERIC = {
    "Gaussian": lambda rng: rng.standard_normal((80, 12)),
    "integer": lambda rng: rng.integers(-5, 6, (80, 10)).astype(float),
    "powers": lambda rng: np.vander(np.sort(rng.uniform(-1, 1, 80)), 6),
    "collinear": lambda rng: (
        rng.standard_normal((80, 7)) @ rng.standard_normal((7, 10)) + 1e-4 * rng.standard_normal((80, 10))
    ),
    "sparse": lambda rng: rng.standard_normal((90, 6)) * np.kron(np.eye(2), np.ones((45, 3))),
}


def altered_columns(A, alterations, share, count, rng):
    """Columns in the span of A, and which of their entries are altered: the same number in each column."""
    rows = A.shape[0]
    altered = rng.permuted(np.arange(rows)[:, None] < np.full(count, round(share * rows)), axis=0)
    return A @ rng.standard_normal((A.shape[1], count)) + altered * alterations(rng, altered.shape), altered


def statuses(A, B):
    """The answer, after the verifier has agreed with it."""
    design = Design.prepare(A)
    solution = lad.solve(design, B)
    for form in (design, A):
        assert np.array_equal(lad.verify(form, B, solution.claim).status, solution.status)
    return solution


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("alterations", TIED)
@pytest.mark.parametrize("name", DESIGNS)
def test_no_altered_entry_of_a_recovered_column_is_called_unaltered(name, alterations, share):
    rng = np.random.default_rng([600, *name.encode(), *alterations.encode()])
    A = DESIGNS[name](rng)
    B, altered = altered_columns(A, TIED[alterations], share, 200, rng)
    solution = statuses(A, B)
    taken_for_truth = altered & (solution.residual == 0)
    assert not taken_for_truth[:, solution.status == Status.RECOVERED].any()
    assert solution.certified.all(), "the minimum itself is right"


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_weights_of_rows_do_not_hide_that_alterations_are_alike(share):
    rng = np.random.default_rng([17, round(100 * share)])
    weight = rng.uniform(0.5, 2.0, (90, 1))
    B, altered = altered_columns(layout(9, 10), TIED["constant"], share, 100, rng)
    solution = statuses(weight * layout(9, 10), weight * B)
    claimed = solution.status == lad.Status.RECOVERED
    assert not (claimed & (altered & (np.asarray(solution.residual) == 0.0)).any(axis=0)).any()


def test_level_that_is_altered_as_a_whole_does_not_pass_for_its_effect():
    A = layout(9, 10)
    rng = np.random.default_rng(601)
    B = A @ rng.standard_normal((19, 30))
    B[rng.choice(np.arange(10, 90), 20, replace=False)] += 1.7
    B[:10] += 1.7
    solution = statuses(A, B)
    assert not (solution.status == Status.RECOVERED).any()


@pytest.mark.parametrize("alterations", TIED)
@pytest.mark.parametrize("name", GENERIC)
def test_ties_cost_a_generic_design_nothing(name, alterations):
    rng = np.random.default_rng([602, *name.encode(), *alterations.encode()])
    A = GENERIC[name](rng)
    B, altered = altered_columns(A, TIED[alterations], 0.1, 60, rng)
    solution = statuses(A, B)
    assert np.array_equal(solution.residual != 0, altered)
    assert (solution.status == Status.RECOVERED).all()


def test_layouts_are_recovered_where_the_evidence_is_there():
    rng = np.random.default_rng(603)
    B, altered = altered_columns(layout(20, 20), TIED["constant"], 0.1, 60, rng)
    solution = statuses(layout(20, 20), B)
    assert np.array_equal(solution.residual != 0, altered)
    assert (solution.status == Status.RECOVERED).all(), "levels of twenty rows say enough"
    B, altered = altered_columns(layout(9, 10), lambda rng, shape: rng.normal(1, 1, shape), 0.1, 60, rng)
    solution = statuses(layout(9, 10), B)
    solved = (altered == (solution.residual != 0)).all(axis=0)
    assert solved.mean() > 0.9
    assert np.array_equal(solved, solution.status == Status.RECOVERED), "alterations that do not tie cannot agree"


def test_altered_row_that_draws_the_fit_to_itself_is_not_called_unaltered():
    rng = np.random.default_rng(604)
    A = rng.standard_normal((80, 8))
    A[:10] *= 1e6
    B = A @ rng.standard_normal((8, 120))
    exact = B.copy()
    for j in range(120):
        B[rng.choice(np.arange(10, 80), 8, replace=False), j] += rng.normal(1, 1, 8)
    B[rng.integers(0, 10, 120), np.arange(120)] += 10.0 ** rng.uniform(-4, -1, 120)
    solution = lad.solve(A, B)
    recovered = solution.status == Status.RECOVERED
    alteration = np.abs(B - exact)
    unnoticed = (alteration > 20.0 * solution.noise_floor) & (solution.residual == 0)
    assert not unnoticed[:, recovered].any()


def test_every_level_of_a_layout_is_found_whichever_columns_are_given():
    rng = np.random.default_rng(605)
    A = layout(5, 7)
    scales = 10.0 ** rng.uniform(-2, 2, (35, 1))
    turned = np.linalg.svd(A)[0][:, :11] @ rng.standard_normal((11, 11))
    for columns in (turned, scales * turned):
        vectors = sparse_vectors(columns, np.arange(11))
        lines = vectors.single.toarray()
        np.add.at(lines, vectors.owner, (vectors.positive + vectors.negative).toarray())
        found = {np.flatnonzero(line).tobytes() for line in lines}
        assert {np.flatnonzero(level).tobytes() for level in A.T} <= found


def test_generic_design_has_no_sparse_vectors():
    rng = np.random.default_rng(606)
    for columns in (rng.standard_normal((60, 10)), np.ones((5, 0)), np.eye(4), rng.standard_normal((40, 1))):
        assert sparse_vectors(columns, np.arange(columns.shape[1])).count == 0


def test_odds_are_ratios_of_numbers_of_sets():
    A = np.kron(np.eye(2), np.ones((8, 1)))
    design = Design.prepare(A)
    residual = np.zeros(16)
    residual[[0, 1]] = -2.0  # beside six zeros in the first group
    residual[[8]] = 2.0  # beside seven zeros in the second
    residual[[9]] = np.nan

    def odds(zeros: int, minus: int, plus: int) -> float:
        """Of all rivals on a group; one more row is altered by 2 and two more by -2 than the numbers given say."""
        rows, total = 15, 0.0
        up, down = 1, 2
        total += comb(rows, up) / comb(rows, min(up + zeros, 7)) * comb(rows, down) / comb(rows, down - minus)
        total += comb(rows, up) / comb(rows, up - plus) * comb(rows, down) / comb(rows, min(down + zeros, 7))
        return total + 2 / comb(rows, zeros)

    expected = min(1.0, odds(6, 2, 0)) + min(1.0, odds(6, 0, 1))
    np.testing.assert_allclose(odds_of_rivals(design.sparse, residual[None], np.array([1e-12])), [expected])


def test_design_of_the_ordinary_case_is_not_searched_unless_residuals_tie():
    problem = planted(60, 8, 20, 0.1, seed=607)
    design = Design.prepare(problem.A)
    lad.solve(design, problem.B)
    assert "sparse" not in vars(design)


def test_a_small_alteration_of_a_large_row_does_not_pass_for_the_noise_of_the_others():
    """As found by ``study evidence``: 0.0007 on a row that is 576 times the median one, under a detected floor."""
    rng = np.random.default_rng([0, 7, 4, 10, 3])
    A = rng.standard_normal((80, 10)) * 10.0 ** rng.uniform(-3, 3, (80, 1))
    U = rng.standard_normal((10, 304))
    altered = rng.permuted(np.arange(80)[:, None] < np.full(304, 8), axis=0)
    B = A @ U + altered * rng.normal(1.0, 1.0, (80, 304))
    solution = lad.solve(Design.prepare(A), B)
    unseen = (altered & (np.asarray(solution.residual) == 0.0)).any(axis=0)
    assert unseen[70], "the floor that is detected hides the alteration"
    assert not (unseen & (solution.status == Status.RECOVERED)).any()


def test_a_grid_is_seen_in_every_column_and_missing_entries_are_left_out():
    rng = np.random.default_rng(5)
    whole, late = rng.integers(-9, 10, 80) / 255.0, rng.integers(1, 10, 80) * 0.1
    late[70] = 0.123  # beyond the entries that are looked at first
    some = np.where(rng.random(80) < 0.4, np.nan, whole)
    huge = np.full(80, 1.0)
    huge[3] = 1e7
    values = np.array([whole, late, some, huge, rng.standard_normal(80), np.zeros(80), np.full(80, np.nan)])
    np.testing.assert_array_equal(on_a_grid(values), [True, False, True, False, False, True, True])


def test_discounted_zeros_are_those_of_the_poisson_law():
    expected = np.array([0.0, 1e-6, 0.99e-5, 1.01e-5, 0.001, 3.0, 200.0])
    likely = [next(n for n in range(400) if poisson.sf(n, mean) <= 1e-5) for mean in expected[:6]]
    np.testing.assert_array_equal(discounted(expected), [*np.maximum(likely, 3 * expected[:6] // 1), 600])


@pytest.mark.parametrize("seed", range(20))
def test_the_most_frequent_size_is_counted(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0.5, 0.5 + 1e-14, 0.7, 0.7 + 0.9e-3, 0.7 + 1.8e-3, 2.0, *rng.random(9)], (12, 40))
    sizes[0], sizes[1] = rng.random(40), 3.0
    chosen = rng.random((12, 40)) < rng.choice([0.0, 0.1, 0.5, 1.0], (12, 1))
    floor = rng.choice([0.0, 1e-3], 12)
    expected = []
    for own, used, least in zip(sizes, chosen, floor, strict=True):
        longest, length, ordered = 0, 0, np.sort(own[used])
        for j, size in enumerate(ordered):
            near = j > 0 and size - ordered[j - 1] <= max(least, 1e-12 * size)
            length = length + 1 if near else 1
            longest = max(longest, length)
        expected.append(longest)
    np.testing.assert_array_equal(SortedSizes.of(sizes, chosen).most_frequent(floor), expected)
