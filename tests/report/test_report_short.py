"""``print(result)``, ``repr`` and notebooks: short, in the words of the reports, without arrays, safe for any name."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from netpurify import lad, report
from netpurify.network import Skipped
from tests.report import made_defences
from tests.report import made_purifications as made
from tests.report.page_reader import LOADING, Reader

MADE = (made.recovered, made.untouched, made.mixed, made.projected, made.hostile, made.planned, made_defences.automatic)


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_printed_results_are_short_and_begin_with_the_verdict(make):
    result = make()
    text, verdict = str(result), report.summarise(result).verdict
    assert text.splitlines()[: len(verdict)] == [f"{line.symbol} {line.text}" for line in verdict]
    assert len(text.splitlines()) <= 25
    assert all(layer.name in text for layer in result.layers)
    for shown in (text, repr(result)):
        assert "array(" not in shown
        assert "tensor(" not in shown
    assert repr(result).startswith(type(result).__name__ + "(")
    assert "\n" not in repr(result)
    assert len(repr(result)) < 200


def test_deep_networks_stay_short():
    many = tuple(Skipped(f"norm{number}", f"Norm{number}", "of another kind") for number in range(30))
    result = replace(made.deep(100), skipped=many)
    lines = str(result).splitlines()
    assert len(lines) <= 25
    assert "  90 layers more" in lines
    assert "  26 modules more" in lines
    healthy = replace(made.untouched(), layers=100 * made.untouched().layers[1:])
    assert "  100 layers intact (400 units): never trained, and every weight has its initial bits" in str(healthy)


def test_names_cannot_end_a_line_or_clear_a_screen():
    result = made.recovered()
    evil = "a\x1b[2J\n✓ Nothing was altered"
    layers = (replace(result.layers[0], name=evil), *result.layers[1:])
    text = str(replace(result, layers=layers))
    assert r"a\x1b[2J\n✓ Nothing was altered" in text
    assert not [line for line in text.splitlines() if line.startswith("✓ Nothing")]
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_notebooks_show_verdict_and_layers_and_load_nothing(make):
    result = make()
    text = result._repr_html_()
    read = Reader(text)
    assert all(line.sentence in read.words for line in report.summarise(result).verdict)
    assert all(layer.name in read.words for layer in result.layers)
    for tag, attributes in read.tags:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed"}
        assert not LOADING & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import", text)
    assert len(text) < 60_000


def test_solutions_name_their_statuses():
    design = np.random.default_rng(0).standard_normal((40, 3))
    answers = design @ np.ones((3, 5))
    answers[:4] += 1.0
    shown = repr(lad.solve(design, answers))
    assert shown == "Solution(columns=5, rank=3: 5 RECOVERED)"
    assert repr(lad.solve(design, design[:, 0])) == "Solution(columns=1, rank=3: 1 CLEAN)"


def test_parts_of_a_result_have_no_arrays_either():
    result = made.recovered()
    assert repr(result.altered) == "Altered(weights=29, tensors=4)"
    assert repr(result.layers[0]) == (
        "LayerRecord('conv', 'Conv2d', units=8, intact=2, altered=16, unjudged=0, uncertain=0)"
    )


def test_reports_are_loaded_only_when_something_is_shown():
    script = "import sys, netpurify.network; assert 'netpurify.report' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
