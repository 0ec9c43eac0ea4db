"""Where no home, no cache and no configuration can be written, commands work and nobody complains."""

import errno
import os
import subprocess
import sys

import pytest


def start(code, *arguments, **environment):
    path = os.pathsep.join(part for part in sys.path if part)
    known = {name: value for name, value in os.environ.items() if name not in ("MPLCONFIGDIR", "XDG_CONFIG_HOME")}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False,
        env=known | {"PYTHONPATH": path} | environment,
    )  # fmt: skip


@pytest.mark.slow
def test_purify_with_a_report_needs_no_home(files):
    done = start(
        "from netpurify.cli import main; main()", "recover", "contaminated.safetensors", "--factory",
        "small_networks:build", "--data", "inputs.npy", "--initial-seed", "5", "-o", files / "out.safetensors",
        "--report", files / "page.html", "--quiet", HOME=f"{os.devnull}/none", XDG_CACHE_HOME=f"{os.devnull}/none",
        TMPDIR=f"{os.devnull}/none",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert sorted(path.name for path in files.iterdir()) == ["out.safetensors", "page.html"]


@pytest.mark.slow
def test_purify_with_a_report_needs_no_folder_but_that_of_its_outputs(files):
    nowhere = f"{os.devnull}/none"
    done = start(
        f"import tempfile; tempfile._candidate_tempdir_list = lambda: [{nowhere!r}]\n"
        "from netpurify.cli import main; main()", "recover", "contaminated.safetensors", "--factory",
        "small_networks:build", "--data", "inputs.npy", "--initial-seed", "5", "-o", files / "out.safetensors",
        "--report", files / "page.html", "--quiet", HOME=nowhere, XDG_CACHE_HOME=nowhere,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert sorted(path.name for path in files.iterdir()) == ["out.safetensors", "page.html"]
    assert "<svg" in (files / "page.html").read_text()


def test_a_report_without_any_folder_is_refused_before_the_work(run, files, common, monkeypatch):
    def refuse(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr("netpurify.cli.outputs.gettempdir", refuse)
    monkeypatch.setattr("netpurify.cli.outputs.mkdtemp", refuse)
    monkeypatch.setattr("netpurify.network.purify", lambda *_, **__: pytest.fail("it began to work"))
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    done = run("recover", "contaminated.safetensors", *common, "--initial-seed", "5", "-o", files / "out.safetensors",
               "--report", files / "page.html")  # fmt: skip
    assert done.code == 2, done.err
    assert "need a temporary folder; none can be made" in done.message
    assert not list(files.iterdir())


def test_libraries_that_manage_without_a_folder_are_not_heard_and_others_are():
    code = (
        "import logging, warnings; from netpurify.cli import app, main\n"
        "def run():\n"
        "    logging.getLogger('matplotlib').warning('mkdir -p failed')\n"
        "    warnings.warn('this one is news')\n"
        "    return 0\n"
        "app.run = run\n"
        "main()"
    )
    done = start(code)
    assert (done.returncode, done.stderr) == (0, "UserWarning: this one is news\n")


def test_a_drawing_that_finds_no_folder_is_bad_input_and_leaves_nothing(run, files, common, monkeypatch):
    def page(*_, **__):
        raise OSError("Matplotlib requires access to a writable cache directory; set MPLCONFIGDIR")

    monkeypatch.setattr("netpurify.report.results.page_text", page)
    done = run("recover", "contaminated.safetensors", *common, "--initial-seed", "5", "-o", files / "out.safetensors",
               "--report", files / "page.html")  # fmt: skip
    assert done.code == 2
    assert "set MPLCONFIGDIR" in done.err
    assert not list(files.iterdir())
