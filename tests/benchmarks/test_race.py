"""The race and the steps from the command line, on the smallest case."""

import json

import pytest

import lad as race  # benchmarks/lad.py, not netpurify.lad
import lad_stages
from lad_cases import CASES
from lad_report import LIMIT

NAME = "100x25 eps 0.4"
PEERS = [peer for peer in race.PEERS if peer.name in ("scipy HiGHS, dual form", "scikit-learn QuantileRegressor")]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs ``benchmarks/lad.py`` on one case; returns the lines of its page of tables."""
    monkeypatch.setattr(race, "PEERS", PEERS)

    def call(*options):
        page, record = tmp_path / "page.md", tmp_path / "lad.json"
        fixed = ["--columns", "8", "--budget", "5", "--without-fresh", "--cases", NAME]
        files = ["--markdown", str(page), "--json", str(record), "--figure", str(tmp_path / "lad.svg")]
        monkeypatch.setattr("sys.argv", ["lad.py", *fixed, *files, *options])
        race.main()
        return page.read_text(), json.loads(record.read_text())

    return call


@pytest.mark.slow
def test_a_race_judges_and_tells_everybody(run, capsys):
    page, record = run()
    out = capsys.readouterr().out
    assert [row["solver"] for row in record["rows"]][:3] == [LIMIT, "netpurify", "netpurify, all cores"]
    assert {row["solver"] for row in record["rows"][3:]} == {peer.name for peer in PEERS}
    assert all(row["gap"] < 1e-6 for row in record["rows"][1:])
    assert [row["certified"] for row in record["rows"][1:3]] == [1.0, 1.0]
    (entry,) = record["summary"]
    assert entry["target"] == "10x"
    assert entry["speedup"] == pytest.approx(entry["best_peer_ms"] / record["rows"][1]["ms"])
    assert page.count(f"| {NAME} |") == 3
    assert NAME in out


@pytest.mark.slow
def test_a_race_that_was_interrupted_goes_on(run, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(race, "figure", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run()
    (_, kept) = (tmp_path / "lad.part").read_text().splitlines()
    monkeypatch.setattr(race, "figure", lambda *_: None)
    monkeypatch.setattr(race.Race, "run", interrupt)  # nothing is left to be run
    _, record = run()
    assert [row["ms"] for row in record["rows"]] == [row["ms"] for row in json.loads(kept)[1]]
    assert not (tmp_path / "lad.part").exists()


def test_a_case_that_does_not_exist_is_refused(run):
    with pytest.raises(SystemExit, match="expected parts of names of cases"):
        run("--cases", "no such case")


@pytest.mark.slow
def test_steps_of_one_case(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["lad_stages.py", "--cases", NAME, "--columns", "8", "--repeat", "1"])
    lad_stages.main()
    titles, line = capsys.readouterr().out.splitlines()
    assert titles.split()[:7] == ["case", "total", "squares", "identify", "polish", "simplex", "prove"]
    assert line.startswith(NAME)
    total, *steps = (float(cell.replace(",", "")) for cell in line.removeprefix(NAME).split()[:6])
    assert total >= max(steps)
    assert "OPTIMAL" in line


def test_steps_of_the_largest_case_are_measured_only_if_asked_for():
    chosen = {lad_stages.name(case, floor) for case, floor in lad_stages.chosen([])}
    assert {case.size for case in CASES} - {name.split(" eps")[0] for name in chosen} == {lad_stages.LARGEST}
    assert "392x198 eps 0.1 float32 noise_floor=0" in chosen
    assert "392x198 eps 0.1 float32" not in chosen
    asked = {lad_stages.name(case, floor) for case, floor in lad_stages.chosen(["5000x1000 eps 0.1", "0.95"])}
    assert asked == {"5000x1000 eps 0.1", *(f"{size} t(3) quantile 0.95" for size in SIZES)}


SIZES = ("100x25", "500x8", "2000x20", "5000x50")
