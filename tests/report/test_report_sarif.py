"""The SARIF log: valid by the official schema, one result for each finding, safe for any name."""

import json
from pathlib import Path

import jsonschema
import pytest

from netpurify import report
from tests.report import made_purifications as made

OFFICIAL = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
MADE = (made.recovered, made.untouched, made.hostile, made.mixed, made.projected, made.deep)


def log_of(make):
    return report.sarif(make(), file="weights/model.safetensors")


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_log_is_valid_by_the_official_schema(make):
    log = log_of(make)
    validator = jsonschema.Draft4Validator(OFFICIAL, format_checker=jsonschema.FormatChecker())
    validator.validate(log)
    assert json.loads(json.dumps(log, allow_nan=False)) == log
    assert not validator.is_valid(log | {"version": "2.0.0"})


def test_one_result_for_each_altered_tensor():
    (run,) = log_of(made.recovered)["runs"]
    places = [one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for one in run["results"]]
    assert places == ["conv.weight", "conv.bias", "head.weight", "head.bias"]
    assert [one["ruleId"] for one in run["results"]] == ["altered-weights"] * 2 + ["restored-weights"] * 2
    assert run["results"][0]["message"]["text"].startswith(
        "conv.weight: 15 of 256 weights replaced, exact to rounding; largest change "
    )
    assert "norm: BatchNorm1d" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_largest_change_is_that_of_the_networks():
    result = made.recovered()
    change = (result.model.state_dict()["head.weight"] - result.contaminated["head.weight"]).abs()
    unit, column = divmod(int(change.argmax()), change.shape[1])
    text = log_of(made.recovered)["runs"][0]["results"][2]["message"]["text"]
    assert f"largest change {float(change.max()):.3g} at index {unit}, {column} (was " in text


def test_grades_have_rules_of_their_own():
    (run,) = log_of(made.mixed)["runs"]
    found = {one["ruleId"]: (one["level"], one["message"]["text"]) for one in run["results"]}
    assert set(found) == {"restored-weights", "approximate-repair", "unit-left-alone"}
    assert found["approximate-repair"][0] == "warning"
    assert "largest change inf at index 0, 0, 1, 2 (was nan, now " in found["approximate-repair"][1]
    assert found["unit-left-alone"][1].startswith("conv.weight: 5 of 8 units left alone: the clean inputs span every")
    (run,) = log_of(made.projected)["runs"]
    assert {one["ruleId"] for one in run["results"]} == {"layer-projected"}


def test_rules_are_where_results_say():
    for make in MADE:
        (run,) = log_of(make)["runs"]
        for one in run["results"]:
            rule = run["tool"]["driver"]["rules"][one["ruleIndex"]]
            assert rule["id"] == one["ruleId"]
            assert rule["defaultConfiguration"]["level"] == one["level"]


def test_nothing_altered_is_no_result():
    assert log_of(made.untouched)["runs"][0]["results"] == []


def test_fingerprints_tell_findings_apart_and_come_again():
    first, again, other = log_of(made.recovered), log_of(made.recovered), log_of(made.mixed)
    prints = [one["partialFingerprints"] for one in first["runs"][0]["results"]]
    assert first == again
    assert len({one["tensor/v1"] for one in prints}) == len({one["weights/v1"] for one in prints}) == 4
    (same,) = [one["partialFingerprints"] for one in other["runs"][0]["results"] if one["ruleId"] == "restored-weights"]
    assert same["tensor/v1"] == prints[2]["tensor/v1"]
    assert same["weights/v1"] != prints[2]["weights/v1"]


def test_names_make_neither_links_nor_arguments():
    texts = [one["message"]["text"] for one in log_of(made.hostile)["runs"][0]["results"]]
    assert texts[2].startswith(r"""a"b'{{0}}\[x\](http://y)&amp;.weight: """)


@pytest.mark.parametrize(
    ("file", "uri"),
    [("a b/model#1.pt", "a%20b/model%231.pt"), ("/srv/m.pt", "file:///srv/m.pt"), ("c:d.pt", "c%3Ad.pt")],
)
def test_file_is_an_address(file, uri):
    run = report.sarif(made.untouched(), file=file)["runs"][0]
    assert run["artifacts"] == [{"location": {"uri": uri}}]
