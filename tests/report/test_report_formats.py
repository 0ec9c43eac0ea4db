"""Formats are entries of one table: a further one is written by ``report.write`` and has its option at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from netpurify import report
from netpurify.errors import InputError
from tests.report import made_defences
from tests.report import made_purifications as made

TINY = """
from netpurify import report
report.FORMATS["lines"] = report.Format("lines", "--lines", "Write a line for each layer here.", "tiny_format:text")

def text(result, context):
    return "".join(f"{layer.name} in {context.files['contaminated']}\\n" for layer in result.layers)
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A format that is one function and one entry of the table."""
    (tmp_path / "tiny_format.py").write_text(TINY)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = dict(report.FORMATS)
    __import__("tiny_format")
    yield tmp_path
    report.FORMATS.clear()
    report.FORMATS.update(known)
    del sys.modules["tiny_format"]


def test_front_door_gives_every_name_and_hides_no_module():
    modules = {path.stem for path in Path(report.__file__).parent.iterdir()}
    assert not modules & set(report.__all__)
    assert all(getattr(report, name) is not None for name in report.__all__)
    assert set(report.__all__) <= set(dir(report))


def test_all_formats_are_written_together(tmp_path, monkeypatch):
    monkeypatch.setattr("netpurify.report.purification.page.can_draw", lambda: False)
    outputs = {"page": tmp_path / "a.html", "record": tmp_path / "a.json", "sarif": tmp_path / "a.sarif"}
    report.write(made.recovered(), outputs, command="netpurify <x>", files={"contaminated": "model.pt"})
    assert "netpurify &lt;x&gt;" in outputs["page"].read_text()
    assert json.loads(outputs["record"].read_text()) == report.record(made.recovered())
    assert json.loads(outputs["sarif"].read_text()) == report.sarif(made.recovered(), file="model.pt")


def test_none_is_written_if_one_cannot_be_made(tmp_path):
    (tmp_path / "a.json").write_text("earlier")
    outputs = {"record": tmp_path / "a.json", "sarif": tmp_path / "a.sarif", "page": None}
    with pytest.raises(InputError, match="a Defence names none"):
        report.write(made_defences.asked(), outputs, files={"contaminated": "model.pt"})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.json", "earlier")]


def test_a_log_needs_the_file_that_it_is_about(tmp_path):
    with pytest.raises(InputError, match="give files="):
        report.write(made.untouched(), {"sarif": tmp_path / "a.sarif"})


def test_unknown_formats_are_refused_by_name():
    with pytest.raises(InputError, match="one of page, record, sarif; got 'pdf'"):
        report.render(made.untouched(), "pdf")
    with pytest.raises(InputError, match="--report writes a file and prints nothing"):
        report.render(made.untouched(), "page", printed=True)


def test_a_further_format_is_written_like_the_others(tiny):
    report.write(made.untouched(), {"lines": tiny / "a.txt"}, files={"contaminated": "model.pt"})
    assert (tiny / "a.txt").read_text() == "conv in model.pt\nhead in model.pt\n"


@pytest.mark.slow
def test_a_further_format_has_its_option_on_the_command_line(tmp_path):
    (tmp_path / "tiny_format.py").write_text(TINY)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

    def start(*arguments):
        code = "import tiny_format; from netpurify.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environment,
        )

    assert "Write a line for each layer here." in " ".join(start("recover", "--help").stdout.replace("│", " ").split())
    make = (
        "import numpy, torch; from netpurify import checkpoint\n"
        "torch.manual_seed(5); checkpoint.save_weights(torch.nn.Linear(20, 3).state_dict(), 'w.safetensors')\n"
        "numpy.save('x.npy', numpy.random.default_rng(0).standard_normal((4, 20), numpy.float32))"
    )
    subprocess.run([sys.executable, "-c", make], check=True, cwd=tmp_path, env=environment)
    build = ["--factory", "torch.nn:Linear", "--factory-args", '{"in_features": 20, "out_features": 3}']
    done = start("recover", "w.safetensors", *build, "--data", "x.npy", "--initial-seed", "5", "-o", "o.safetensors",
                 "--lines", "lines.txt")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lines.txt").read_text() == " in w.safetensors\n"
    assert "written: o.safetensors, lines.txt" in done.stdout
