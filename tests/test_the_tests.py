"""What the suite says of itself: skipped tests are told and can be forbidden, and work is shared among workers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKIPPING = """
import pytest

def test_runs():
    pass

@pytest.mark.skipif(True, reason="needs the moon")
def test_by_mark():
    pass

def test_by_import():
    pytest.importorskip("no_such_module_here", reason="needs the sun")
"""
SHARING = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_made_once(once, number):
    def make():
        with open("made.txt", "a") as stream:
            stream.write("made ")
        return [7]
    found = once("list", make)
    assert found == [7]
    found.append(number)  # must not reach the others
"""


@pytest.fixture
def suite(tmp_path):
    """Runs a suite of one file beside the conftest of this one, without the plugins that only take time here."""
    (tmp_path / "conftest.py").write_bytes(Path(__file__).with_name("conftest.py").read_bytes())

    def run(content, *options):
        (tmp_path / "test_one.py").write_text(content)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", tmp_path / "temp"]
        env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run([*command, *options], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["-p", "xdist", "-n", "1"]], ids=["one process", "workers"])
def test_skipped_tests_are_told_by_reason_and_can_be_forbidden(suite, options):
    done = suite(SKIPPING, *options)
    assert done.returncode == 0, done.stdout
    *_, told, closing = done.stdout.splitlines()
    assert told == (
        "Not everything ran. Skipped tests, by reason: 1: needs the moon; 1: needs the sun. "
        "`make test-all` installs what they need and runs them."
    )
    assert "1 passed, 2 skipped" in closing
    strict = suite(SKIPPING, "--no-skips", *options)
    assert strict.returncode == 1
    assert "FAILED because tests were skipped (1: needs the moon; 1: needs the sun)" in strict.stdout


@pytest.mark.slow
def test_what_is_shared_is_made_once_for_all_workers(suite, tmp_path):
    done = suite(SHARING, "-p", "xdist", "-n", "2")
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "made.txt").read_text() == "made "
