import gzip
import os
import re
import subprocess
import sys

import pytest


def run(*arguments, **environment):
    command = [sys.executable, "-m", "netpurify", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def test_figure_2_by_one_command_twice(tmp_path):
    options = ["reproduce", "2", "--quick", "--trials", "1", "--folder", str(tmp_path)]
    page, text = tmp_path / "page.html", tmp_path / "docs" / "page.md"
    first = run(*options, "--report", str(page), "--markdown", str(text))
    assert first.returncode == 0, first.stderr
    assert "When k increases, the limit of eps" in " ".join(first.stdout.split()).replace("  ", " ")
    table = tmp_path / "quick" / "synthetic-p-k.csv"
    before = table.read_bytes()
    assert "<svg" in page.read_text()
    assert (tmp_path / "docs" / "figures" / "figure02.svg").exists()
    assert "figures/figure02.svg" in text.read_text()
    again = run(*options)
    assert "0 trials to run" in again.stderr
    assert table.read_bytes() == before
    (tmp_path / "kept").mkdir()
    with gzip.open(tmp_path / "kept" / "synthetic-p-k.csv.gz", "wb") as stream:
        stream.write(before)
    other = tmp_path / "other.html"
    kept = run("reproduce", "2", "--quick", "--tables", str(tmp_path / "kept"), "--report", str(other))
    assert kept.returncode == 0, kept.stderr
    figure = re.compile(r"<svg.*</svg>", re.DOTALL)
    assert figure.search(other.read_text()).group() == figure.search(page.read_text()).group()


def test_one_of_a_kind_is_said_in_the_singular(tmp_path):
    options = ["--plan", "--jobs", "1", "--folder", str(tmp_path)]
    assert "1 experiment, 3 trials to run" in run("reproduce", "6", *options).stderr
    said = run("reproduce", "6", "--trials", "1", *options).stderr
    assert re.search(r"1 experiment, 1 trial to run, .* on 1 worker\n", said)


def test_plan_says_the_cost_and_runs_nothing(tmp_path):
    done = run("reproduce", "--full", "--plan", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "synthetic-p-k" in done.stdout
    assert "1500" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "1"], "figures are numbered 2 to 13; got [1]"),
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
def test_bad_input_ends_with_code_2(arguments, message, tmp_path):
    folder = ["--folder", str(tmp_path / "results")] if arguments[0] == "reproduce" else []
    done = run(*arguments, *folder, NETPURIFY_DATA=str(tmp_path / "data"))
    assert done.returncode == 2, done.stdout
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()
