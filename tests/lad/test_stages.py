"""The list of stages is the only place that names and orders them."""

from dataclasses import replace

import numpy as np
import pytest

from netpurify import lad
from netpurify.lad.kernels.clock import Clock
from netpurify.lad.stages.columns import SOLVED
from netpurify.lad.stages.pipeline import STAGES, STEPS, solve_panel
from tests.lad.problems import PROBLEMS, planted


@pytest.fixture
def solve():
    """Solves a planted problem with given stages."""
    problem = planted(60, 8, 12, 0.1, seed=700)
    design = lad.Design.prepare(problem.A)
    design.warm()

    def solve(stages):
        floor = np.full(12, np.nan)
        answer = solve_panel(design, problem.B.T.copy(), floor=floor, accuracy=1e-9, stages=stages)
        np.testing.assert_allclose(answer.coefficients.T, problem.truth, atol=1e-12)
        return answer

    return solve


def test_statistics_and_stage_follow_the_list():
    solution = lad.solve(PROBLEMS["ordinary"].A, PROBLEMS["ordinary"].B)
    assert list(solution.statistics.finished) == [stage.name for stage in STAGES]
    assert list(solution.statistics.seconds) == list(STEPS)
    counts = np.bincount(solution.stage, minlength=len(STAGES))
    assert list(solution.statistics.finished.values()) == counts.tolist()


def test_a_stage_gets_what_is_unsolved_and_the_next_one_what_it_leaves(solve):
    seen = []

    def every_other(panel, unsolved):
        seen.append(unsolved.tolist())
        kept = unsolved[::2]
        finished = STAGES[1].run(panel, kept)
        assert (panel.columns.state[kept] == SOLVED).all()
        return finished

    least_squares, identify, simplex = STAGES
    answer = solve((least_squares, replace(identify, run=every_other), simplex))
    assert seen == [list(range(12))]
    assert answer.stage.tolist() == [1, 2] * 6
    assert answer.pivots > 0


def test_a_stage_that_is_wrong_is_refused_by_the_check(solve):
    def pretend(panel, unsolved):
        panel.columns.state[unsolved] = SOLVED
        return unsolved

    answer = solve((STAGES[0], replace(STAGES[1], run=pretend), STAGES[2]))
    assert (answer.stage == 2).all(), "what the verifier refuses goes to the simplex walk"
    assert (answer.status == lad.Status.RECOVERED).all()


def test_time_is_counted_for_the_innermost_step(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 7.0, 15.0])
    monkeypatch.setattr("netpurify.lad.kernels.clock.thread_time", lambda: next(now))
    clock = Clock(("outer", "inner", "unused"))
    with clock.step("outer"), clock.step("inner"):
        pass
    assert clock.seconds == {"outer": 2.0 + 8.0, "inner": 4.0, "unused": 0.0}
