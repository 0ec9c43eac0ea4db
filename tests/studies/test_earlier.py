"""Trials of an earlier run: taken from its table, all of one network or none, and never of another revision."""

from dataclasses import replace

import pytest

from netpurify.errors import InputError
from netpurify.experiments import run
from netpurify.experiments.studies import take_up
from netpurify.findings import Experiment, read_table, write_table

MACHINE = {"name": "old"}


def trial(settings, seed):
    """Two rows, which say on which machine they were made."""
    return [{"part": part, "made": f"{MACHINE['name']} {settings['repair']} {seed}", "share": 0.1} for part in (0, 1)]


EXPERIMENT = Experiment(
    name="mended",
    title="what is left",
    grid=lambda _: [{"network": name, "repair": repair} for name in ("cnn", "mlp") for repair in ("none", "prune")],
    trial=trial,
    cost=lambda _: 1.0,
    trials={"quick": 2, "default": 2, "full": 2},
    together=("network",),
)


def more(cell, _):
    return cell["network"] == "cnn" or cell["repair"] == "none"


@pytest.fixture
def earlier(tmp_path, monkeypatch):
    """The table of a run on another machine, without its journal, that repaired the MLP in one way only."""
    monkeypatch.setitem(MACHINE, "name", "old")
    run(replace(EXPERIMENT, has_trial=more), folder=tmp_path / "old", engine="inline")
    (tmp_path / "old" / "mended.jsonl").unlink()
    monkeypatch.setitem(MACHINE, "name", "new")
    return tmp_path / "old"


def made(path):
    """Of each network and seed, where its rows were made."""
    found: dict = {}
    for row in read_table(path):
        found.setdefault((row["network"], row["seed"]), set()).add(str(row["made"]).split()[0])
    return found


def test_whole_networks_are_taken_up_and_all_else_is_run(earlier, tmp_path):
    folder = tmp_path / "new"
    assert take_up([EXPERIMENT], earlier, folder=folder, mode="default") == 4
    path = run(EXPERIMENT, folder=folder, engine="inline")
    assert made(path) == {("cnn", 0): {"old"}, ("cnn", 1): {"old"}, ("mlp", 0): {"new"}, ("mlp", 1): {"new"}}
    kept = [row for row in read_table(earlier / "mended.csv") if row["network"] == "cnn"]
    assert [row for row in read_table(path) if row["network"] == "cnn"] == kept, "to the bit, with their seconds"
    assert take_up([EXPERIMENT], earlier, folder=folder, mode="default") == 0, "all is done"


def test_trials_that_stand_by_themselves_are_taken_up_one_by_one(earlier, tmp_path):
    alone = replace(EXPERIMENT, together=None)
    assert take_up([alone], earlier, folder=tmp_path / "new", mode="default") == 6
    found = made(run(alone, folder=tmp_path / "new", engine="inline"))
    assert found[("mlp", 0)] == {"old", "new"}


def test_a_network_on_which_this_run_has_begun_is_left_to_it(earlier, tmp_path):
    begun = replace(EXPERIMENT, has_trial=lambda cell, seed: (cell["repair"], seed) == ("none", 1))
    run(begun, folder=tmp_path / "new", engine="inline")
    assert take_up([EXPERIMENT], earlier, folder=tmp_path / "new", mode="default") == 2
    found = made(run(EXPERIMENT, folder=tmp_path / "new", engine="inline"))
    assert found[("cnn", 0)] == {"old"}
    assert found[("cnn", 1)] == {"new"}


def test_failed_trials_are_not_taken_up(earlier, tmp_path):
    rows = read_table(earlier / "mended.csv")
    write_table(earlier / "mended.csv", [row | {"failure": "OSError: gone"} if row["seed"] else row for row in rows])
    assert take_up([EXPERIMENT], earlier, folder=tmp_path / "new", mode="default") == 2


def test_rows_of_another_revision_are_refused(earlier, tmp_path):
    newer = replace(EXPERIMENT, revision=2)
    with pytest.raises(InputError, match=r"mended\.csv: rows must be of revision 2 .*; it says 1\. Those are other"):
        take_up([newer], earlier, folder=tmp_path / "new", mode="default")
    unknown = [{name: row[name] for name in row if name != "revision"} for row in read_table(earlier / "mended.csv")]
    write_table(earlier / "mended.csv", unknown)
    with pytest.raises(InputError, match="it says none"):
        take_up([EXPERIMENT], earlier, folder=tmp_path / "new", mode="default")
    assert not (tmp_path / "new").exists()


def test_what_is_no_earlier_table_is_refused(earlier, tmp_path):
    with pytest.raises(InputError, match=r"must hold tables of an earlier run \(mended\.csv, or the same with \.gz\)"):
        take_up([EXPERIMENT], tmp_path, folder=tmp_path / "new", mode="default")
    fewer = [{name: row[name] for name in row if name != "repair"} for row in read_table(earlier / "mended.csv")]
    write_table(earlier / "mended.csv", fewer)
    with pytest.raises(InputError, match="must have the columns repair; it is not a table of this study"):
        take_up([EXPERIMENT], earlier, folder=tmp_path / "new", mode="default")
