"""The record: it fits its schema, holds everything, and its numbers are those of the networks."""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import torch

from netpurify import report, scan
from netpurify.contaminate import difference
from netpurify.network import Grade
from netpurify.report import schema, summarise
from netpurify.report.purification.counts import Counts
from tests.report import made_purifications as made
from tests.report.schema_breaker import assert_refuses

MADE = (made.recovered, made.untouched, made.hostile, made.mixed, made.projected, made.deep)


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_record_fits_its_schema_and_survives_json(make):
    found = report.record(make(), plan=made.planned())
    jsonschema.Draft202012Validator(schema()).validate(found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_schema_refuses_what_is_missing_and_what_is_no_number():
    found = report.record(made.recovered())
    assert found["plan"] is None
    wrong = ((("schema",), 2), (("weights",), -1), (("agreement", "same"), "NaN"), (("altered", 0), {}))
    assert_refuses(schema(), found, wrong)


def test_schema_speaks_of_every_field():
    found, described = report.record(made.mixed(), plan=made.planned()), schema()["properties"]
    assert found.keys() == described.keys()
    assert found["layers"][0].keys() == described["layers"]["items"]["properties"].keys()
    assert (
        found["layers"][0]["per_unit"].keys()
        == described["layers"]["items"]["properties"]["per_unit"]["properties"].keys()
    )
    plan = schema()["$defs"]["plan"]
    assert found["plan"].keys() == plan["properties"].keys()
    assert found["plan"]["layers"][0].keys() == plan["properties"]["layers"]["items"]["properties"].keys()


def test_docs_name_every_field_and_every_rule():
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    _, record_part, sarif_part = re.split(r"^## The JSON record|^## SARIF", text, flags=re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", record_part)) >= schema()["properties"].keys()
    state = {"a": torch.ones(2)}
    logs = [report.sarif(made_one, file="m.pt") for made_one in (made.untouched(), made.planned(), scan(state, state))]
    logs.append(report.difference_sarif(difference(state, state), file="m.pt"))
    rules = [rule for log in logs for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (\w+) \|", sarif_part, flags=re.MULTILINE))
    assert rows == {rule["id"]: rule["defaultConfiguration"]["level"] for rule in rules}


def test_altered_weights_are_those_of_the_two_networks():
    result = made.recovered()
    found = report.record(result)["altered"]
    purified = result.model.state_dict()
    assert len(found) == len(result.altered) == 29
    for one in found:
        place = tuple(one["index"])
        assert result.contaminated[one["tensor"]][place].item() == one["was"]
        assert purified[one["tensor"]][place].item() == one["now"]
        assert one["was"] != one["now"]
    changed = sum(int((value != result.contaminated[name]).sum()) for name, value in purified.items())
    assert changed == len({(one["tensor"], *one["index"]) for one in found})


def test_what_json_cannot_say_is_a_string():
    found = report.record(made.mixed())
    wild = [one["was"] for one in found["altered"] if one["grade"] == "approximate"]
    assert wild == ["nan", "-inf", float(np.float32(1e30))]
    assert found["agreement"]["change"] == "nan"
    assert found["layers"][0]["certificate"] is None
    assert set(found["layers"][0]["per_unit"]["surplus"]) == {None}


def test_units_keep_their_places():
    result = made.recovered()
    layer, per_unit = result.layers[0], report.record(result)["layers"][0]["per_unit"]
    assert {len(column) for column in per_unit.values()} == {8}
    assert layer.certificate is not None
    for place, unit in enumerate(layer.certified_units):
        assert per_unit["surplus"][unit] == layer.certificate.surplus[place]
        assert per_unit["unique"][unit] == layer.certificate.unique[place]


def test_bins_hold_every_residual():
    result = made.recovered()
    for layer, found in zip(result.layers, report.record(result)["layers"], strict=True):
        assert sum(one["count"] for one in found["residuals"]) == layer.histogram.sum() > 0


def test_verdict_of_a_projection_counts_what_changed():
    # How many fitted values are what was there before, to the bit, is a matter of rounding.
    pattern = r"All 12 units took the fitted value in every weight; 1\d\d of 332 weights changed; 1 module not examined"
    assert re.fullmatch(pattern, summarise(made.projected()).headline)


@pytest.mark.parametrize(
    ("make", "headline"),
    [
        (
            made.recovered,
            "29 of 397 weights were altered; all replaced: 6 of 12 units recovered, certified; 4 restored to the "
            "initial bits; 2 intact, certified",
        ),
        (
            made.deep,
            "1,600 of 26,465 weights were altered; all replaced: 600 of 800 units recovered, certified; 200 intact, "
            "certified",
        ),
        (
            made.untouched,
            "Nothing was altered in 397 weights examined; 8 of 12 units intact, certified; 4 intact, as before "
            "training",
        ),
        (
            made.mixed,
            "1 of 397 weights was altered; 3 more far out of the fit replaced approximately; 1 of 12 units restored "
            "to the initial bits; 3 intact, as before training; 3 of 12 units without proof; 5 of 12 units could not "
            "be judged",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_verdict_says_what_is_known_and_no_more(make, headline):
    summary = summarise(make())
    assert summary.headline == headline
    said = " ".join([headline, *summary.texts, *(advice.text for advice in summary.advice)]).lower()
    assert not re.search(r"\bclean\b(?! inputs?)", said)


def test_grades_are_never_mixed_up():
    labelled = {statement.style: statement.text for statement in summarise(made.mixed()).statements}
    statements = {
        grade: labelled[grade.label.replace(" ", "-")]
        for grade in (Grade.RESTORED, Grade.APPROXIMATE, Grade.LEFT_ALONE)
    }
    assert statements[Grade.RESTORED] == "1 unit: never trained; 1 weight set back to the initial bits."
    assert statements[Grade.APPROXIMATE].startswith("3 units: 3 weights far out")
    assert "no proof" in statements[Grade.APPROXIMATE]
    assert statements[Grade.LEFT_ALONE] == (
        "5 units: nothing was changed; whether anything is altered there is not known."
    )
    assert "projected" not in labelled
    assert not Counts.of(made.mixed()).whole
    assert Counts.of(made.recovered()).whole


def without_run(value):
    """A record without what differs from run to run."""
    if isinstance(value, dict):
        return {name: without_run(entry) for name, entry in value.items() if name != "run"}
    return [without_run(entry) for entry in value] if isinstance(value, list) else value


def test_records_of_two_runs_differ_under_one_key_alone():
    first = report.record(made.recovered(), plan=made.planned())
    second = report.record(made.recovered.__wrapped__(), plan=made.planned.__wrapped__())
    assert first["run"]["seconds"] != second["run"]["seconds"]
    assert without_run(first) == without_run(second)
    plan = report.record(made.planned())
    assert without_run(plan) == without_run(report.record(made.planned.__wrapped__()))
    assert plan["run"]["seconds"] == made.planned().seconds
    assert [layer["run"]["seconds"] for layer in plan["layers"]] == [layer.seconds for layer in made.planned().layers]
