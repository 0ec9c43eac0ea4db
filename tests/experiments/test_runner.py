"""The runner: one table whatever the engine, the order and the accidents; nothing that is done is done again."""

import importlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from netpurify import engine
from netpurify.errors import EngineError, InputError, JournalError
from netpurify.experiments import RunProgress, journal, plan, run
from netpurify.findings import read_table, select
from tests.toys.experiments import FAILING, STEADY, without_seconds
from tests.toys.work import WORKER_PATH, fussy, square

TRIALS = 18


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[list[str]]:
    """The table of a run that nothing happened to."""
    return without_seconds(run(STEADY, folder=tmp_path_factory.mktemp("inline"), engine="inline"))


@pytest.fixture(scope="module")
def dask(tmp_path_factory) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A Dask cluster of one scheduler and two worker processes: its engine, and the workers."""
    distributed = pytest.importorskip("distributed", reason="the extra netpurify[dask] is not installed")
    folder = tmp_path_factory.mktemp("dask")
    contact = ["--scheduler-file", str(folder / "scheduler.json"), "--no-dashboard"]

    def start(*words: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", *words, *contact]
        process = subprocess.Popen(command, cwd=folder, env=WORKER_PATH, stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    with ExitStack() as stack:
        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        workers = [start("worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]
        with distributed.Client(scheduler_file=folder / "scheduler.json", set_as_default=False) as client:
            client.wait_for_workers(2, timeout=300)
            address = client.scheduler.address
        yield address.replace("tcp://", "dask://"), workers


@pytest.mark.slow
def test_table_has_every_trial_in_order_and_reads_back(tmp_path):
    path = run(STEADY, folder=tmp_path, mode="quick", engine="inline")
    rows = read_table(path)
    assert list(rows[0]) == [
        "experiment", "width", "law", "trial", "seed", "revision", "eps", "recovered", "note", "certified", "proven",
        "seconds", "failure",
    ]  # fmt: skip
    assert [(row["width"], row["law"], row["trial"], row["eps"]) for row in rows] == [
        (width, law, trial, eps)
        for width in (8, 16)
        for law in ("sign", "noise")
        for trial in (0, 1)
        for eps in (0.1, 0.2, 0.5)
    ]
    exact = STEADY.trial({"width": 16, "law": "noise"}, 1)[1]["recovered"]
    assert select(rows, width=16, law="noise", seed=1, eps=0.2)[0]["recovered"] == exact
    last = rows[5]
    assert last["recovered"] != last["recovered"]
    assert (last["certified"], last["proven"], last["note"], last["failure"]) == (0.10000000149011612, True, None, None)
    assert rows[0]["note"] == "1"
    assert isinstance(rows[0]["seconds"], float)


@pytest.mark.slow
def test_processes_give_the_same_table(tmp_path, expected):
    assert without_seconds(run(STEADY, folder=tmp_path, engine="processes", jobs=2)) == expected


@pytest.mark.slow
def test_dask_gives_the_same_table_though_a_worker_is_killed(tmp_path, expected, dask):
    address, workers = dask
    assert plan(STEADY, folder=tmp_path, engine=address).workers == 2

    def kill_one(progress: RunProgress) -> None:
        if progress.done == 4:
            workers[0].send_signal(signal.SIGKILL)

    path = run(STEADY, folder=tmp_path, engine=address, progress=kill_one)
    assert workers[0].wait(timeout=300) == -signal.SIGKILL
    assert workers[1].poll() is None
    assert without_seconds(path) == expected


@pytest.mark.slow
def test_dask_hands_on_what_work_raises_and_stops_when_the_caller_does(dask):
    with pytest.raises(LookupError, match="not three"):
        list(engine.run(fussy, range(5), engine=dask[0], jobs=1))
    with closing(engine.run(square, range(10_000), engine=dask[0])) as results:
        position, (value, pid) = next(results)
    assert (value, pid) == (position**2, dask[1][1].pid)


@pytest.mark.slow
def test_work_that_dask_workers_cannot_load_is_an_error_and_no_endless_wait(dask, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def work(task):\n    return task\n")
    monkeypatch.syspath_prepend(tmp_path)
    work = importlib.import_module("only_here").work
    with pytest.raises(EngineError, match=r"No module named 'only_here'.*every worker has netpurify"):
        list(engine.run(work, [1], engine=dask[0]))


RAY = """
from contextlib import closing
from pathlib import Path

import ray
from tests.toys.experiments import STEADY
from tests.toys.work import fatal_once, fussy, square
from netpurify import engine
from netpurify.experiments import run

ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
assert engine.workers("ray") == 2
run(STEADY, folder="ray", mode="quick", engine="ray")
flag = str(Path("flag").absolute())
assert list(engine.run(fatal_once, [flag], engine="ray")) == [(0, flag)]
with closing(engine.run(square, range(10_000), engine="ray", jobs=1)) as results:
    assert [next(results)[0] for _ in range(3)] == [0, 1, 2]
list(engine.run(fussy, range(5), engine="ray"))
"""


@pytest.mark.slow
def test_ray_gives_the_same_table_and_repeats_the_work_of_a_killed_worker(tmp_path):
    pytest.importorskip("ray", reason="the extra netpurify[ray] is not installed")
    # In a process and a home of its own: Ray starts servers, and writes a token into the home folder.
    outcome = subprocess.run(
        [sys.executable, "-c", RAY], cwd=tmp_path, env={**WORKER_PATH, "HOME": str(tmp_path)}, capture_output=True
    )
    assert "LookupError: not three" in outcome.stderr.decode()
    expected = run(STEADY, folder=tmp_path / "inline", mode="quick", engine="inline")
    assert without_seconds(tmp_path / "ray" / "steady.csv") == without_seconds(expected)


KILLED = """
import os, signal, sys
from tests.toys.experiments import STEADY
from netpurify.experiments import run

def die(progress):
    if progress.done == 4:
        os.kill(os.getpid(), signal.SIGKILL)

run(STEADY, folder=sys.argv[1], jobs=2, progress=die)
"""


@pytest.mark.slow
def test_killed_and_started_again_the_table_is_the_same(tmp_path, expected):
    # The pipes close when the last orphaned worker is gone, so this would time out if one stayed.
    outcome = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], env=WORKER_PATH, capture_output=True, timeout=600
    )
    assert outcome.returncode == -signal.SIGKILL
    before = (tmp_path / "steady.jsonl").read_bytes()
    assert before.count(b"\n") == 4
    assert not (tmp_path / "steady.csv").exists()

    seen: list[RunProgress] = []
    path = run(STEADY, folder=tmp_path, engine="inline", progress=seen.append)
    after = path.with_suffix(".jsonl").read_bytes()
    assert (seen[0].done, seen[-1].done, len(seen)) == (4, TRIALS, TRIALS - 3)
    assert after.startswith(before)
    assert after.count(b"\n") == TRIALS
    assert without_seconds(path) == expected


def test_an_interrupt_keeps_what_is_finished_and_the_old_table(tmp_path):
    path = run(STEADY, folder=tmp_path, mode="quick", trials=1, engine="inline")
    old = path.read_bytes()

    def interrupt(progress: RunProgress) -> None:
        if progress.done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(STEADY, folder=tmp_path, mode="quick", engine="inline", progress=interrupt)
    assert path.read_bytes() == old
    assert plan(STEADY, folder=tmp_path, mode="quick").done == 6


@pytest.mark.slow
def test_what_is_done_is_not_done_again(tmp_path):
    path = run(STEADY, folder=tmp_path, mode="quick", engine="inline")
    first = path.read_bytes()
    path.unlink()
    seen: list[RunProgress] = []
    run(replace(STEADY, trial=FAILING.trial), folder=tmp_path, mode="quick", engine="inline", progress=seen.append)
    assert path.read_bytes() == first
    assert [(progress.done, progress.remaining) for progress in seen] == [(8, 0.0)]


@pytest.mark.slow
def test_more_trials_add_and_fewer_leave_out(tmp_path):
    path = run(STEADY, folder=tmp_path, mode="quick", trials=2, engine="inline")
    two = path.read_bytes()
    run(STEADY, folder=tmp_path, mode="quick", trials=1, engine="inline")
    assert {row["trial"] for row in read_table(path)} == {0}
    run(STEADY, folder=tmp_path, mode="quick", trials=2, engine="inline")
    assert path.read_bytes() == two


@pytest.mark.slow
def test_another_revision_is_run_anew(tmp_path):
    run(STEADY, folder=tmp_path, mode="quick", trials=1, engine="inline")
    newer = replace(STEADY, revision=2)
    assert plan(newer, folder=tmp_path, mode="quick", trials=1).done == 0
    run(newer, folder=tmp_path, mode="quick", trials=1, engine="inline")
    assert [record.revision for record in journal.read(tmp_path / "steady.jsonl")] == [1] * 4 + [2] * 4


def test_a_failed_trial_is_a_row_with_its_reason_and_is_tried_again(tmp_path, monkeypatch):
    trouble = tmp_path / "trouble"
    trouble.touch()
    monkeypatch.setenv("TOY_TROUBLE", str(trouble))
    seen: list[RunProgress] = []
    path = run(FAILING, folder=tmp_path, mode="quick", engine="inline", progress=seen.append)
    assert seen[-1].failed == 6
    rows = read_table(path)
    assert len(rows) == 8
    assert [row["failure"] for row in select(rows, law="sign")] == [
        None, "ArithmeticError: no odd seeds,", "OSError: the disk hums", "ArithmeticError: no odd seeds,",
    ]  # fmt: skip
    assert [row["value"] is None for row in select(rows, law="sign")] == [False, True, True, True]

    trouble.unlink()
    assert plan(FAILING, folder=tmp_path, mode="quick").done == 2
    run(FAILING, folder=tmp_path, mode="quick", engine="inline")
    assert [row["trial"] for row in read_table(path) if row["failure"]] == [1, 1, 1, 1]


def test_rows_that_a_table_cannot_hold_are_failures(tmp_path):
    for row, reason in [({"value": [1]}, "value must be a number"), ({"seed": 1}, "'seed'"), ({"width": 1}, "'width'")]:
        experiment = replace(STEADY, name=f"odd-{reason[1]}", trial=lambda *_, row=row: [row])
        path = run(experiment, folder=tmp_path, mode="quick", trials=1, engine="inline")
        assert reason in str(read_table(path)[0]["failure"])


def test_the_cost_is_said_beforehand_and_learns_from_what_is_recorded(tmp_path):
    before = plan(STEADY, folder=tmp_path, mode="full", jobs=2)
    assert (before.total, before.done, before.workers) == (60, 0, 2)
    assert before.seconds == pytest.approx(2 * 10 * (0.8 + 1.6 + 3.2))
    assert before.wall_seconds == pytest.approx(before.seconds / 2)
    assert plan(STEADY, folder=tmp_path, trials=1, jobs=100).wall_seconds == pytest.approx(3.2)
    assert list(tmp_path.iterdir()) == []

    run(STEADY, folder=tmp_path, trials=1, engine="inline")
    spent = sum(record.seconds for record in journal.read(tmp_path / "steady.jsonl"))
    assert plan(STEADY, folder=tmp_path, trials=3, engine="inline").seconds == pytest.approx(2 * spent)


def test_progress_weighs_trials_by_their_cost(tmp_path):
    seen: list[RunProgress] = []
    run(STEADY, folder=tmp_path, mode="quick", trials=1, engine="inline", progress=seen.append)
    assert [round(progress.cost_done, 9) for progress in seen] == [0.0, 1.6, 3.2, 4.0, 4.8]
    assert seen[0].remaining is None
    assert seen[1].remaining == pytest.approx(seen[1].elapsed * 2.0)
    assert seen[-1].remaining == 0.0


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    def again(_: RunProgress) -> None:
        run(STEADY, folder=tmp_path, mode="quick", engine="inline")

    with pytest.raises(JournalError, match=r"one run at a time.*another folder"):
        run(STEADY, folder=tmp_path, mode="quick", engine="inline", progress=again)
    assert plan(STEADY, folder=tmp_path, mode="quick").done == 0


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([{"a": 1}, {"a": 1}], "twice"),
        ([{"a": float("nan")}], "finite"),
        ([{"trial": 1}], "name of its own"),
        ([{"a": (1, 2)}], "must be a number"),
    ],
)
def test_grids_without_meaning_are_refused(cells, message, tmp_path):
    with pytest.raises(InputError, match=message):
        run(replace(STEADY, grid=lambda _: cells), folder=tmp_path, engine="inline")
    assert list(tmp_path.iterdir()) == []


def test_modes_and_numbers_without_meaning_are_refused(tmp_path):
    with pytest.raises(InputError, match="quick, default, full"):
        run(STEADY, folder=tmp_path, mode="fast")
    with pytest.raises(InputError, match="at least 1"):
        run(STEADY, folder=tmp_path, trials=0)


def test_journal_is_plain_json_lines(tmp_path):
    run(STEADY, folder=tmp_path, mode="quick", trials=1, engine="inline")
    lines = (tmp_path / "steady.jsonl").read_text().splitlines()
    assert [sorted(json.loads(line)) for line in lines] == [
        ["failure", "revision", "rows", "seconds", "seed", "settings", "trial"]
    ] * 4
