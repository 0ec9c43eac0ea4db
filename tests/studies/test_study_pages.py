"""Studies: their pages are functions of their tables, and what a study needs is refused by name if it is missing."""

import importlib.util
import re
from pathlib import Path

import pytest

from netpurify.cli import options
from netpurify.errors import InputError
from netpurify.experiments import core_seconds, trials_of
from netpurify.experiments.figures import FIGURES
from netpurify.experiments.studies import STUDIES, require_libraries, table_path, write_page
from netpurify.findings import read_table

DOCS = Path(__file__).parents[2] / "docs"
EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        *(figure.experiment for figure in FIGURES.values()),
        *(experiment for study in STUDIES.values() for experiment in study.experiments(Path("results"))),
    )
}
COMMITTED = sorted(path.name.removesuffix(".csv.gz") for path in (DOCS / "results").glob("*.csv.gz"))
DEFAULT = {"recovery", "transformers", "evidence", "healthy", "limits", "optimisers", "half", "architectures"}
"""Studies whose committed tables were made in the default mode, and whose pages can be made from them alone."""


def test_the_command_line_knows_every_study():
    assert tuple(STUDIES) == options.STUDIES


def test_the_guide_has_every_study_with_its_page():
    text = (DOCS / "reproduce.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [A-Z].*? \| \[[\w-]+\.md\]\(([\w-]+\.md)\) \|$", text, flags=re.MULTILINE))
    assert rows == {study.name: Path(study.document).name for study in STUDIES.values()}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_table_holds_the_trials_of_its_experiment(name):
    experiment = EXPERIMENTS[name]
    rows = read_table(DOCS / "results" / f"{name}.csv.gz")
    assert {row["experiment"] for row in rows} == {name}
    assert all(row["failure"] is None for row in rows)
    mode = (
        "default"
        if name.removesuffix("-worst-case").removesuffix("-change").removesuffix("-training") in DEFAULT
        else "full"
    )
    wanted = {(*map(str, trial.settings.values()), trial.number) for trial in trials_of(experiment, mode=mode)}
    settings = list(experiment.grid(mode)[0])
    found = {(*(str(row[column]) for column in settings), row["trial"]) for row in rows}
    assert found == wanted


@pytest.mark.parametrize("name", [*sorted(DEFAULT), "unlearn"])
def test_a_published_page_is_a_function_of_its_table(name, tmp_path):
    study = STUDIES[name]
    mode = "default" if name in DEFAULT else "full"
    write_page(study, tmp_path / study.document, tables=DOCS / "results", mode=mode)
    assert (tmp_path / study.document).read_text() == (DOCS / study.document).read_text()


@pytest.mark.parametrize("name", STUDIES)
def test_a_grid_has_cells_in_every_mode_and_a_cost_for_each(name):
    for experiment in STUDIES[name].experiments(Path("results")):
        for mode in ("quick", "default", "full"):
            assert all(trial.cost > 0.0 for trial in trials_of(experiment, mode=mode)), (experiment.name, mode)


def test_missing_libraries_are_refused_by_name(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "netpurify.experiments.studies.study.find_spec", lambda name: None if name == "transformers" else real(name)
    )
    with pytest.raises(InputError, match=r"'transformers' needs transformers; .* pip install 'netpurify\[studies\]'"):
        require_libraries(STUDIES["transformers"])
    require_libraries(STUDIES["recovery"])


def test_a_page_without_its_table_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"must hold recovery\.csv or recovery\.csv\.gz"):
        write_page(STUDIES["recovery"], tmp_path / "page.md", tables=tmp_path, mode="quick")
    assert not list(tmp_path.iterdir())


def test_a_compressed_table_is_found_too(tmp_path):
    (tmp_path / "some.csv.gz").write_bytes(b"")
    assert table_path(tmp_path, "some").name == "some.csv.gz"
    (tmp_path / "some.csv").write_bytes(b"")
    assert table_path(tmp_path, "some").name == "some.csv"


def test_the_seconds_of_a_trial_count_once():
    (experiment,) = STUDIES["recovery"].experiments(Path("results"))
    cells = experiment.grid("quick")[:2]
    rows = [{**cell, "trial": 0, "altered": law, "seconds": 7.0} for cell in cells for law in ("noise", "erasure")]
    assert core_seconds(experiment, rows, mode="quick") == 14.0
