"""What goes in and comes out: kinds, dtypes, shapes, options, and errors that say what to do."""

import numpy as np
import pytest
import torch

from netpurify import InputError, NetpurifyError, lad
from netpurify.lad import Status
from tests.lad.problems import planted


@pytest.fixture
def problem():
    return planted(40, 6, 4, 0.1, seed=300)


def test_numpy_in_numpy_out(problem):
    solution = lad.solve(problem.A, problem.B)
    assert all(isinstance(part, np.ndarray) for part in (solution.coefficients, solution.residual, solution.dual))


def test_torch_in_torch_out(problem):
    solution = lad.solve(torch.from_numpy(problem.A), torch.from_numpy(problem.B))
    assert isinstance(solution.coefficients, torch.Tensor)
    assert solution.coefficients.dtype == torch.float64
    np.testing.assert_allclose(solution.coefficients.numpy(), problem.truth, atol=1e-12)
    certificate = lad.verify(torch.from_numpy(problem.A), torch.from_numpy(problem.B), solution.claim)
    assert (certificate.status == Status.RECOVERED).all()


def test_one_right_hand_side_is_one_answer(problem):
    one, many = lad.solve(problem.A, problem.B[:, 2]), lad.solve(problem.A, problem.B)
    assert one.coefficients.shape == (6,)
    assert one.residual.shape == one.dual.shape == (40,)
    assert Status(int(one.status)) is Status.RECOVERED
    assert np.array_equal(one.coefficients, many.coefficients[:, 2])
    assert lad.verify(problem.A, problem.B[:, 2], one.claim).gap.shape == ()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_float_dtype_is_solved_for_the_values_it_holds(problem, dtype):
    A, B = torch.from_numpy(problem.A).to(dtype), torch.from_numpy(problem.B).to(dtype)
    solution = lad.solve(A, B, noise_floor=0.0)
    exact = lad.solve(A.double().numpy(), B.double().numpy(), noise_floor=0.0)
    assert solution.certified.all()
    ours = (B.double() - A.double() @ solution.coefficients).abs().sum(dim=0).numpy()
    theirs = np.abs(B.double().numpy() - A.double().numpy() @ exact.coefficients).sum(axis=0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_integers_and_views_are_fine(problem):
    A = np.asfortranarray(np.round(3 * problem.A).astype(np.int64))
    B = np.round(problem.B[:, ::-1]).astype(np.int32)
    assert lad.solve(A, B).certified.all()


def test_inputs_are_left_alone(problem):
    A, B = problem.A.copy(), problem.B.copy()
    B[3, 1] = np.nan
    kept = B.copy()
    lad.solve(A, B)
    assert A.tobytes() == problem.A.tobytes()
    assert B.tobytes() == kept.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.zeros((40, 2, 2))}, r"matrix \[k, q\]; got shape \[40, 2, 2\]"),
        ({"A": np.full((40, 6), np.nan)}, r"must be finite; entry \[0, 0\] is nan"),
        ({"A": np.where(np.eye(40, 6) > 0, np.inf, 1.0)}, r"must be finite; entry \[0, 0\] is inf"),
        ({"A": np.zeros((40, 6), dtype=complex)}, "real numbers; got dtype complex128"),
        ({"A": np.array([["a"] * 6] * 40)}, "real numbers"),
        ({"B": np.zeros((39, 4))}, r"must be \[40\] or \[40, p\].*got \[39, 4\]"),
        ({"B": np.zeros((40, 4, 1))}, r"got \[40, 4, 1\]"),
        ({"B": np.full((40, 4), np.inf)}, "must not be infinite.*missing"),
        ({"accuracy": -1.0}, "accuracy must lie in"),
        ({"accuracy": float("nan")}, "accuracy must lie in"),
        ({"noise_floor": -1.0}, "noise_floor must be"),
        ({"noise_floor": np.zeros(3)}, "one per column"),
        ({"noise_floor": float("nan")}, "noise_floor must be"),
        ({"method": "magic"}, '"auto" or "simplex"'),
        ({"backend": "cuda"}, "backend must be"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_bad_input_is_refused_with_a_reason(problem, change, message):
    arguments = {"A": problem.A, "B": problem.B, **change}
    with pytest.raises(InputError, match=message) as caught:
        lad.solve(arguments.pop("A"), arguments.pop("B"), **arguments)
    assert isinstance(caught.value, NetpurifyError)
    assert isinstance(caught.value, ValueError)


def test_progress_counts_up_to_the_end(problem):
    calls: list[tuple[int, int]] = []
    lad.solve(problem.A, np.tile(problem.B, (1, 100)), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (400, 400)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_an_error_in_progress_stops_the_work(problem):
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lad.solve(problem.A, np.tile(problem.B, (1, 100)), threads=2, progress=stop)


def test_a_memory_map_is_solved_like_an_array(problem, tmp_path):
    B = np.tile(problem.B, (1, 60))
    np.save(tmp_path / "b.npy", B)
    mapped = np.load(tmp_path / "b.npy", mmap_mode="r")
    assert lad.solve(problem.A, mapped).coefficients.tobytes() == lad.solve(problem.A, B).coefficients.tobytes()


def test_stream_draws_blocks_only_as_they_are_needed(problem):
    drawn = []

    def blocks():
        for number in range(3):
            drawn.append(number)
            yield problem.B

    answers = lad.stream(problem.A, blocks())
    assert drawn == []
    assert (next(answers).status == Status.RECOVERED).all()
    assert drawn == [0]


def test_every_status_says_what_it_means_and_what_to_do():
    for texts in ([status.meaning for status in Status], [status.remedy for status in Status]):
        assert len(set(texts)) == len(Status), "each status has words of its own"
        assert all(len(text.split()) >= 3 for text in texts)
    assert "the fit is the truth" in Status.RECOVERED.meaning
    assert "lower the rank" in Status.OPTIMAL.remedy
    for text in (text for status in Status for text in (status.meaning, status.remedy)):
        assert (text[0].islower(), text[-1] not in ".;:") == (True, True), "callers put it into sentences of their own"
    assert "set a rank" in Status.RANK_FULL.remedy
    assert [status for status in Status if status.certified] == [Status.CLEAN, Status.RECOVERED, Status.OPTIMAL]


def test_design_reports_rank_and_leverage():
    rng = np.random.default_rng(301)
    A = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 9))
    A[7] = 0.0
    design = lad.Design.prepare(A)
    assert (design.rank, design.fan_in, design.columns, design.full) == (4, 30, 9, False)
    hat = A @ np.linalg.pinv(A)
    np.testing.assert_allclose(design.leverages, np.diag(hat), atol=1e-12)
    np.testing.assert_allclose(design.basis.T @ design.basis, np.diag([1.0] * 4 + [0.0] * 4), atol=1e-14)
    assert lad.Design.prepare(np.eye(5)).full


def test_rank_tolerance_decides_what_counts_as_dependent():
    rng = np.random.default_rng(302)
    A = rng.standard_normal((30, 3))
    A = np.hstack([A, A[:, :1] + 1e-6 * rng.standard_normal((30, 1))])
    assert lad.Design.prepare(A).rank == 4
    assert lad.Design.prepare(A, rank_tolerance=1e-4).rank == 3
    assert lad.Design.prepare(A.astype(np.float32)).rank == 3, "float32 cannot tell them apart"


def test_erasures_that_leave_too_little_say_so():
    problem = planted(20, 6, 3, 0.0, seed=303)
    B = problem.B.copy()
    B[5:, 0] = np.nan
    B[:, 1] = np.nan
    solution = lad.solve(problem.A, B)
    assert solution.status[0] == Status.RANK_FULL
    assert solution.missing.tolist() == [15, 20, 0]
    assert solution.status[2] == Status.CLEAN
    np.testing.assert_allclose((problem.A @ solution.coefficients)[:5, 0], B[:5, 0], atol=1e-12)
