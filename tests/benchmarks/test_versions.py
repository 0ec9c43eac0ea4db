"""Versions are timed in turns, each with the package that is meant."""

import os
from pathlib import Path

import numpy as np
import pytest

import lad_versions
import netpurify
from lad_versions import Timing, in_turns, typical, versions
from netpurify import lad

CORES = {0, 1}


class Fake:
    """Notes when it is called, and takes as many seconds as it is told."""

    def __init__(self, name, calls, seconds):
        self.name, self.calls, self.seconds = name, calls, iter(seconds)

    def time(self, cores, **options):
        self.calls.append((self.name, cores, options))
        return Timing(next(self.seconds), 9.0, {"polish": 1.0}, 3, 2)


def test_versions_take_turns():
    calls = []
    fakes = [Fake("now", calls, [99.0, 3.0, 1.0, 2.0]), Fake("before", calls, [0.1, 5.0, 6.0, 7.0])]
    timings = in_turns(fakes, CORES, repeats=3, threads=1)
    assert [name for name, *_ in calls] == ["now", "before"] * 4  # the first calls compile, and do not count
    assert all(rest == [CORES, {"threads": 1}] for _, *rest in calls)
    assert typical(timings["now"]).cpu == 2.0
    assert typical(timings["now"], fastest=True).cpu == 1.0
    assert typical(timings["before"]).steps == {"polish": 1.0}


def test_nothing_is_repeated_that_takes_long(monkeypatch):
    monkeypatch.setattr(lad_versions, "LONG", -1.0)
    timings = in_turns([Fake("now", [], [99.0, 3.0])], CORES, repeats=3)
    assert [timing.cpu for timing in timings["now"]] == [3.0]


@pytest.mark.slow
def test_a_version_solves_in_a_process_of_its_own():
    generator = np.random.default_rng(0)
    A, B = generator.standard_normal((30, 4)), generator.standard_normal((30, 20))
    here = lad.solve(A, B, quantile=0.25)
    with versions() as (version,):
        version.load(A, B)
        timing = version.time({min(os.sched_getaffinity(0))}, quantile=0.25, threads=1)
        answer = version.answer()
    np.testing.assert_array_equal(answer.coefficients, np.asarray(here.coefficients))
    np.testing.assert_array_equal(answer.status, here.status)
    assert timing.steps.keys() == here.statistics.seconds.keys()
    assert timing.pivots == here.statistics.pivots
    assert timing.by_simplex == here.statistics.finished["simplex"]
    assert timing.cpu > 0.0


@pytest.mark.slow
def test_a_folder_with_another_package_is_refused(tmp_path, capfd):
    source = Path(netpurify.__file__).parents[1]
    version = lad_versions._start("elsewhere", "no commit", tmp_path)
    with pytest.raises(RuntimeError, match="the process of 'elsewhere' ended"):
        version.load(np.eye(9, 2), np.eye(9, 2))
    version.close()
    assert f"expected netpurify from {tmp_path}; got {source}" in capfd.readouterr().err


def test_a_commit_that_does_not_exist_is_refused():
    with pytest.raises(SystemExit, match="no commit 'no-such-commit'"), versions(before="no-such-commit"):
        pass
