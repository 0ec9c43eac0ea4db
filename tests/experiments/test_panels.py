"""Lines and panels that figures take from their tables."""

import pytest

from netpurify.experiments.figures.panels import baselines, coincidence, error_panel, line, main_line, rate_panel
from netpurify.findings import Line

EPS = [0.0, 0.1, 0.2, 0.3]


def flat(median):
    return Line("a", EPS, median, median, median)


def test_a_line_is_the_median_with_its_quartiles():
    rows = [{"eps": 0.1, "trial": trial, "error": value} for trial, value in enumerate((1.0, 2.0, 3.0, 4.0, 90.0))]
    drawn = line(rows, "p = 5", x="eps", y="error")
    assert (drawn.median, drawn.low, drawn.high) == ([3.0], [2.0], [4.0])


def test_the_main_line_is_the_papers_settings_and_places():
    paper = {"variant": "paper", "trigger": "first five pixels", "origin": "other"}
    old = {"ratio": 0.1, "origin": None}
    left = [
        {"variant": "one rate"},
        {"trigger": "middle"},
        {"origin": "as trained on"},
        paper | {"origin": "elsewhere"},
    ]
    assert main_line([paper, old, {}, *left]) == [paper, old, {}]


def test_before_is_one_thing_whatever_tables_call_it():
    rows = [
        {"eps": eps, "trial": 0, "method": method, "error": eps} for eps in EPS for method in ("contaminated", "l2")
    ]
    before, squares = baselines(rows, ("contaminated", "l2"), "p = 5", x="eps", y="error")
    assert (before.label, before.thing, before.baseline) == ("before purification, p = 5", "contaminated", True)
    assert (squares.label, squares.thing) == ("least squares (l2), p = 5", "l2")
    assert (before.x, squares.x) == (EPS[1:], EPS), "where nothing is altered there is nothing before"
    (other,) = baselines([{"ratio": 0.0, "method": "before", "asr": 0.3}], ("before",), x="ratio", y="asr")
    assert (other.label, other.thing, other.x) == ("before purification", "contaminated", [0.0])


@pytest.mark.parametrize(
    ("others", "note"),
    [
        ([[1e-16, 0.2, 1.0, 2.0]], "all p coincide within 1 %"),
        ([[1e-9, 0.2, 1.0, 2.1], [0.0, 0.21, 1.0, 2.0]], "all p coincide within 5 %"),
        ([[1e-16, 0.2, 1.0, 2.6]], "all p coincide within 24 %"),
        ([[1e-16, 0.1, 1.0, 2.0]], "all p coincide within 1 %, not at 0.1"),
        ([[1e-3, 0.1, 1.0, 2.0]], ""),
        ([[float("nan")] * 4], ""),
        ([], ""),
    ],
)
def test_lines_that_coincide_are_said_so(others, note):
    lines = [flat([1e-16, 0.2, 1.0, 2.0]), *map(flat, others)]
    assert coincidence(lines, "all p") == note


def test_lines_over_other_positions_are_not_compared():
    assert coincidence([flat([1.0] * 4), Line("b", [0.5], [1.0], [1.0], [1.0])], "all p") == ""
    assert coincidence([], "all p") == ""


def test_panels_carry_their_notes():
    assert error_panel("t", "y", [], note="a").note == "a"
    assert rate_panel("t", "y", [], note="b").note == "b"
