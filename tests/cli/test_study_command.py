"""``netpurify study``: one command from the grid to the page, with refusals before anything is run."""

import pytest


@pytest.mark.slow
def test_limits_by_one_command_twice(run, tmp_path):
    page = tmp_path / "docs" / "limits.md"
    options = ["study", "limits", "--quick", "--engine", "inline", "--folder", str(tmp_path / "results")]
    done = run(*options, "--markdown", str(page))
    assert done.code == 0, done.err
    text = page.read_text()
    assert "Made by `netpurify study limits --quick --markdown docs/limits-results.md`" in text
    assert "| 100x25 | 0.400 | 0.298 | 0.185 | 4 | 13 |" in text  # as docs/lad.md quotes it
    tables = page.parent / "results"
    assert sorted(path.name for path in tables.iterdir()) == ["limits-worst-case.csv.gz", "limits.csv.gz"]
    again = run(*options)
    assert "2 experiments, 0 trials to run" in again.err
    other = tmp_path / "other.md"
    assert run("study", "limits", "--quick", "--tables", str(tables), "--markdown", str(other)).code == 0
    assert other.read_text() == text


def test_plan_says_the_cost_and_runs_nothing(run, tmp_path):
    done = run("study", "defence", "--full", "--plan", "--folder", str(tmp_path))
    assert done.code == 0, done.err
    assert all(name in done.out for name in ("defence-networks", "defences", "defences-published"))
    assert "1035" in done.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["astrology"],
            "evidence, limits, half, optimisers, architectures, unlearn; got 'astrology'",
        ),
        (["recovery", "--quick", "--full"], "exclude each other"),
        (["recovery", "--engine", "abacus"], "engine must be"),
        (["recovery", "--tables", "absent", "--markdown", "page.md"], "absent must hold recovery.csv"),
        (["defence", "--full"], "give --quick, which does not need"),
        (["recovery", "--quick", "--markdown", "/dev/null/page.md"], "cannot be written"),
    ],
)
def test_bad_input_ends_with_code_2(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.setenv("NETPURIFY_DATA", str(tmp_path / "data"))
    done = run("study", *arguments, "--folder", str(tmp_path / "results"))
    assert done.code == 2, done.out
    assert message in done.message
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_a_run_is_extended_from_published_tables(run, tmp_path):
    page = tmp_path / "docs" / "limits.md"
    common = ["study", "limits", "--quick", "--engine", "inline"]
    first = run(*common, "--folder", str(tmp_path / "one"), "--markdown", str(page))
    assert first.code == 0, first.err
    tables = page.parent / "results"
    done = run(*common, "--folder", str(tmp_path / "two"), "--extend", str(tables))
    assert done.code == 0, done.err
    assert "2 experiments, 0 trials to run" in done.err
    one, two = ((tmp_path / name / "quick" / "limits.csv").read_bytes() for name in ("one", "two"))
    assert one == two


def test_extending_goes_with_a_run(run, tmp_path):
    done = run("study", "limits", "--quick", "--plan", "--extend", str(tmp_path))
    assert done.code == 2
    assert "--extend goes with a run" in done.message
    done = run("study", "limits", "--quick", "--extend", str(tmp_path), "--folder", str(tmp_path / "results"))
    assert done.code == 2
    assert "must hold tables of an earlier run (limits.csv" in done.message
