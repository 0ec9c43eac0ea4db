"""Readers of foreign files against some hundred changed ones each; `tools/fuzz.py` tries as many as time allows."""

import importlib.util
import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path
from time import gmtime

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the limits of time and memory are those of POSIX")
SCRIPT = Path(__file__).parent.parent / "tools" / "fuzz.py"
READERS = ["torch zip", "torch legacy", "safetensors", "index", "proof", "npy", "npz", "images"]
LINE = re.compile(r"(.+): (\d+) inputs in \d+ s, (\d+) read, (\d+) refused, (\d+) findings")


@pytest.fixture(scope="module")
def fuzz():
    specification = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["fuzz"] = module  # where a dataclass looks for it
    specification.loader.exec_module(module)
    yield module
    del sys.modules["fuzz"]


@pytest.mark.slow
def test_every_changed_file_is_read_or_refused(tmp_path):
    # In a process of its own: a reader that crashed would end the tests.
    command = [sys.executable, SCRIPT, "--inputs", "250", "--seed", "0", "--keep", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert run.returncode == 0, run.stdout + run.stderr
    found = [LINE.fullmatch(line).groups() for line in run.stdout.splitlines()]
    assert [name for name, *_ in found] == READERS
    for name, tried, read, refused, findings in found:
        assert (tried, findings) == ("250", "0"), name
        assert int(read) > 0 < int(refused), f"{name}: {read} read, {refused} refused; the changes show nothing"


def test_a_reader_that_fails_is_found(fuzz, tmp_path, monkeypatch):
    def fails(_):
        raise KeyError("some")

    def hangs(_):
        while True:
            pass

    def hides(_):
        raise fuzz.NetpurifyError("no file is named")

    monkeypatch.setattr(fuzz, "LONGEST", 0.1)
    before = fuzz.signal.signal(fuzz.signal.SIGALRM, fuzz._stop)
    path = tmp_path / "some"
    words = [fuzz.examine(fuzz.Form("some", [], read), path) for read in (fails, hangs, hides)]
    words.append(fuzz.examine(fuzz.Form("some", [], lambda _: None, memory=-1), path))
    fuzz.signal.signal(fuzz.signal.SIGALRM, before)
    assert [outcome for outcome, _ in words] == ["finding"] * 4
    for (_, found), part in zip(words, ("KeyError", "HangError", "without a name", "MB of memory"), strict=True):
        assert part in found


def test_the_same_seed_gives_the_same_files_and_intact_ones_are_read(fuzz, tmp_path, monkeypatch):
    now = count(1e9, 60.0)  # a minute goes by between two looks at the clock
    monkeypatch.setattr("time.localtime", lambda _=None: gmtime(next(now)))
    for form in fuzz.forms():
        made = [fuzz.files(form, fuzz.random.Random("1 a")) for _ in range(2)]
        assert [next(made[0]) for _ in range(20)] == [next(made[1]) for _ in range(20)]
        folder = tmp_path / form.name
        folder.mkdir()
        for sample in form.samples:
            (folder / "some.png").write_bytes(sample)
            assert fuzz.examine(form, folder / "some.png") == ("read", "")
