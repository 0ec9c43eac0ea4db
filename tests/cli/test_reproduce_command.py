import gzip
import hashlib
import os
import re
import subprocess
import sys

import pytest

from netpurify.cli import options


@pytest.mark.slow
def test_figure_2_by_one_command_twice(run, tmp_path):
    options = ["reproduce", "2", "--quick", "--trials", "1", "--folder", str(tmp_path)]
    page, text = tmp_path / "page.html", tmp_path / "docs" / "page.md"
    command = [sys.executable, "-m", "netpurify", *options, "--report", str(page), "--markdown", str(text)]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stderr
    said = " ".join(first.stdout.split())
    assert "When k increases, the limit of eps" in said
    assert "4 claims of the paper in 1 figure were judged" in said
    assert "what we add" in said
    for content in (page.read_text(), text.read_text()):
        assert re.search(r"[0-9a-f]{40}|unknown", content)
        assert "torch " in content
        assert hashlib.sha256((tmp_path / "quick" / "synthetic-p-k.csv").read_bytes()).hexdigest() in content
    table = tmp_path / "quick" / "synthetic-p-k.csv"
    before = table.read_bytes()
    assert "<svg" in page.read_text()
    assert (tmp_path / "docs" / "figures" / "figure02.svg").exists()
    assert "figures/figure02.svg" in text.read_text()
    again = run(*options)
    assert "mode quick: 1 experiment, 0 trials to run" in again.err
    assert again.out.splitlines()[-1] == f"page: {tmp_path / 'quick' / 'page.html'}"
    assert "<svg" in (tmp_path / "quick" / "page.html").read_text()
    assert table.read_bytes() == before
    (tmp_path / "kept").mkdir()
    with gzip.open(tmp_path / "kept" / "synthetic-p-k.csv.gz", "wb") as stream:
        stream.write(before)
    other = tmp_path / "other.html"
    kept = run("reproduce", "2", "--quick", "--tables", str(tmp_path / "kept"), "--report", str(other))
    assert kept.code == 0, kept.err
    figure = re.compile(r"<svg.*</svg>", re.DOTALL)
    assert figure.search(other.read_text()).group() == figure.search(page.read_text()).group()


def test_one_of_a_kind_is_said_in_the_singular(run, tmp_path):
    options = ["--plan", "--jobs", "1", "--folder", str(tmp_path)]
    plan = run("reproduce", "6", *options).err
    assert "mode default: 1 experiment, 3 trials to run" in plan
    assert "--quick takes smaller grids, --full all trials" in plan
    said = run("reproduce", "6", "--trials", "1", *options).err
    assert re.search(r"1 experiment, 1 trial to run, .* on 1 worker; ", said)


def test_plan_says_the_cost_and_runs_nothing(run, tmp_path):
    done = run("reproduce", "--full", "--plan", "--folder", str(tmp_path))
    assert done.code == 0, done.err
    assert "synthetic-p-k" in done.out
    assert "1500" in done.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "1"], f"figures are numbered 2 to {options.FIGURES[-1]}; got [1]"),
        (["reproduce", "2", "--ours"], "--ours and numbers of figures exclude each other"),
        (["reproduce", "--quick", "--full"], "exclude each other"),
        (["reproduce", "2", "--trials", "0"], "--trials"),
        (["reproduce", "2", "--jobs", "0"], "--jobs"),
        (["reproduce", "2", "--engine", "abacus"], "engine must be"),
        (["reproduce", "9"], "cifar10"),
        (["reproduce", "2", "--tables", "absent"], "has neither"),
        (["reproduce", "2", "--quick", "--report", f"{os.devnull}/page.html"], "cannot be written"),
        (["data", "fetch", "imagenet"], "imagenet"),
        (["data", "fetch", "mnist", "--from", "absent"], "--from) must be a folder"),
        (["data", "fetch", "mnist-sample"], "nothing to fetch"),
    ],
)
def test_bad_input_ends_with_code_2(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.setenv("NETPURIFY_DATA", str(tmp_path / "data"))
    folder = ["--folder", str(tmp_path / "results")] if arguments[0] == "reproduce" else []
    done = run(*arguments, *folder)
    assert done.code == 2, done.out
    assert message in done.message
    assert "Traceback" not in done.err
    assert not (tmp_path / "results").exists()
