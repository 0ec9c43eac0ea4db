"""Tables say what the rows say."""

from math import isnan

import pytest

from lad_cases import Case, Target, gaussian
from lad_figure import figure
from lad_report import (
    BEFORE,
    BEFORE_EXACT,
    LIMIT,
    OURS,
    OURS_ALL_CORES,
    OURS_EXACT,
    Row,
    aligned,
    best_peer,
    finite,
    markdown,
    solvers_table,
    steps_table,
    summarise,
    summary_table,
    table,
)

CASE = Case("9x2", 0.1, gaussian(9, 2), rounded=True, target=Target(10, 40), exact_target=Target(4))
ROWS = [
    Row(CASE.name, LIMIT, "limit", ms=0.01),
    Row(CASE.name, OURS, "ours", ms=0.2, gap=1e-13, certified=1.0, pivots=1.5, steps={"polish": 0.05, "prove": 0.1}),
    Row(CASE.name, BEFORE, "before", ms=0.8, gap=1e-13, certified=1.0, pivots=0.0, steps={"polish": 0.6}),
    Row(CASE.name, OURS_EXACT, "ours", ms=1.0, gap=1e-13, certified=0.5, pivots=2.0),
    Row(CASE.name, BEFORE_EXACT, "before", ms=3.0, gap=1e-13, certified=1.0),
    Row(CASE.name, OURS_ALL_CORES, "ours", ms=0.1, gap=1e-13, certified=1.0, steps={"polish": 0.05}),
    Row(CASE.name, "quick and wrong", "peer", ms=0.3, gap=1e-3),
    Row(CASE.name, "exact", "peer", ms=3.0, gap=1e-8),
    Row(CASE.name, "slow", "peer", ms=9.0, gap=1e-15),
    Row(CASE.name, "stopped", "peer", note="stopped: not done after 8 s"),
]


def cells(lines, case):
    """The line of a case, by the titles."""
    return next(dict(zip(lines[0], line, strict=True)) for line in lines[1:] if line[0] == case)


def test_the_best_peer_is_the_fastest_exact_one():
    assert best_peer(ROWS).solver == "exact"
    assert best_peer(ROWS[:7]).solver == "none"


def test_the_summary_compares_with_the_peer_and_with_the_version_before():
    line = cells(summary_table(summarise(ROWS, [CASE])), CASE.name)
    expected = {
        "ms/column": "0.200", "before": "0.800", "times before": "4.00x", "all cores": "0.100", "best peer": "exact",
        "its ms": "3.00", "faster": "15.0x", "GEMMs": "20.0", "pivots": "1.50", "certified": "100.0%",
        "worst gap": "1e-13", "aim": "10x, 40 GEMMs", "reached": "yes",
    }  # fmt: skip
    assert {title: line[title] for title in expected} == expected
    exact = cells(summary_table(summarise(ROWS, [CASE])), f"{CASE.name}, noise_floor=0")
    assert (exact["times before"], exact["faster"], exact["certified"]) == ("3.00x", "3.00x", "50.0%")
    assert (exact["aim"], exact["reached"]) == ("4x", "no")


def test_an_aim_is_missed_by_too_many_products_and_unknown_where_a_peer_is_absent():
    slower = Row(CASE.name, LIMIT, "limit", ms=0.001)
    assert summarise([slower, *ROWS[1:]], [CASE])[0].reached == "no"
    absent = Row(CASE.name, "R", "peer", note="not installed", absent=True)
    assert summarise([*ROWS, absent], [CASE])[0].reached == "unknown: a peer is absent"


def test_without_a_version_before_there_is_no_ratio_to_it():
    (first, *_) = summarise([row for row in ROWS if row.role != "before"], [CASE])
    assert isnan(first.before_ms)
    assert cells(summary_table([first]), CASE.name)["times before"] == "-"


def test_steps_and_the_rest_add_up():
    lines = steps_table(ROWS)
    line = cells(lines, CASE.name)
    assert (line["total, us"], line["polish"], line["prove"], line["the rest"]) == ("200", "50", "100", "50")
    assert [line[1] for line in lines[1:]] == [OURS, BEFORE]


def test_what_is_not_exact_stands_in_brackets():
    line = cells(solvers_table(ROWS), CASE.name)
    assert (line["quick and wrong"], line["exact"], line["stopped"]) == ("(0.300)", "3.00", "-")
    assert BEFORE not in line


def test_tables_are_rendered_whole():
    lines = table(ROWS)
    assert len(lines) == len(ROWS) + 1
    text = aligned(lines).splitlines()
    assert len(text) == len(lines)
    assert text[0].index("solver") == text[2].index(OURS)
    page = markdown(lines).splitlines()
    assert {line.count("|") for line in page} == {len(lines[0]) + 1}
    assert page[1] == "| " + " | ".join(["---"] * len(lines[0])) + " |"


def test_json_has_no_nan():
    assert finite({"ms": float("nan"), "gap": 0.5, "case": "9x2"}) == {"ms": None, "gap": 0.5, "case": "9x2"}


@pytest.mark.slow
def test_the_figure_names_cases_and_solvers(tmp_path):
    path = tmp_path / "new" / "lad.svg"
    figure(ROWS, path)
    text = path.read_text()
    assert CASE.name in text
    assert OURS_EXACT in text
