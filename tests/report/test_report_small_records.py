"""Records of plans, contaminations, differences and examinations: each fits its schema, and NaN has one spelling."""

import json
import math
from pathlib import Path

import jsonschema
import pytest
import torch

from netpurify import checkpoint, contaminate, report
from netpurify.paper import theory
from netpurify.report.kit.json_values import to_json
from netpurify.report.kit.numbers import estimate
from tests.report.schema_breaker import assert_refuses

STATE = {"a": torch.tensor([1.0, 2.0, 3.0, 4.0]), "b": torch.ones(2, 2)}
LARGE = ("purification", "defence", "hunt", "unlearning")
NAMES = (*LARGE, "plan", "contamination", "difference", "examination", "sweep", "scan")


def erased():
    law = contaminate.LAWS.make("erase", {})
    return contaminate.contaminate(STATE, law, share=1.0, generator=torch.Generator().manual_seed(0), names=["a"])


def test_erased_weights_are_recorded_as_nan():
    found = erased()
    settings = {"law": "Erase()", "share": 1.0, "seed": 0, "source": checkpoint.digest(STATE)}
    record = report.contamination_record(found, STATE, settings=settings)
    assert record["tensors"]["a"] == {
        "entries": 4,
        "index": [0, 1, 2, 3],
        "was": [1.0, 2.0, 3.0, 4.0],
        "now": ["nan"] * 4,
    }
    assert record["result"] == checkpoint.digest(found.state)
    wrong = ((("altered",), -1), (("share",), 2.0), (("tensors", "a", "now"), [None] * 4), (("source",), "x"))
    assert_refuses(report.schema("contamination"), record, wrong)


def test_changes_beyond_numbers_have_names():
    other = {"a": torch.tensor([1.0, math.inf, 3.0, 4.0]), "b": torch.ones(3), "c": torch.zeros(1)}
    found = contaminate.difference(STATE, other)
    digests = [checkpoint.digest(state) for state in (STATE, other)]
    record = report.difference_record(found, digests=digests)
    assert {tensor["name"]: tensor["largest"] for tensor in record["tensors"]} == {"a": "inf", "b": "nan"}
    assert record["verdict"] == report.describe_difference(found)
    wrong = ((("same",), "no"), (("digests",), digests[:1]), (("tensors", 0, "largest"), None))
    assert_refuses(report.schema("difference"), record, wrong)


@pytest.mark.slow
def test_examination_fits_its_schema():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(3, 80, generator=generator, dtype=torch.float64)
    found = theory.examine(
        inputs,
        torch.zeros(3).double(),
        system=theory.ExaminedSystem(m=2, p=60, gamma=0.1, share=0.1),
        generator=generator,
    )
    record = report.examination_record(found, seed=0)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    intervals = [row["measured"] for row in record["rows"] if isinstance(row["measured"], list)]
    assert all(len(interval) == 2 for interval in intervals)
    assert intervals
    assert_refuses(report.schema("examination"), record, ((("regime",), "both"), (("rows", 0, "bound"), "NaN")))


@pytest.mark.slow
def test_sweep_fits_its_schema():
    base = theory.Setting(n=3, m=2, k=30, p=40, gamma=0.1, share=0.1)
    found = theory.sweep("m", [1, 2, 3], base=base, generator=torch.Generator().manual_seed(0), trials=2, steps=5)
    record = report.sweep_record(found, seed=0)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert all(len(one["constants"]) == 3 for one in record["statements"])
    wrong = ((("letter",), "eps"), (("values",), [1, 2]), (("statements", 0, "verdict"), "perhaps"))
    assert_refuses(report.schema("sweep"), record, wrong)


def test_numbers_that_json_lacks_are_strings_at_any_depth():
    deep = {1: (math.nan, [math.inf, {"x": -math.inf}], 2, None, True)}
    assert to_json(deep) == {"1": ["nan", ["inf", {"x": "-inf"}], 2, None, True]}


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas_and_use_what_they_define(name):
    schema = report.schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema_name"]["const"] == name
    text = json.dumps(schema)
    for used in {part.split('"')[0].split("/")[0] for part in text.split('"#/$defs/')[1:]}:
        assert used in schema["$defs"]


@pytest.mark.parametrize("name", NAMES[len(LARGE) :])
def test_docs_name_every_field_of_the_small_records(name):
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith(f'| `"{name}"`')]
    assert all(f"`{field}`" in row for field in report.schema(name)["required"][2:])


def test_unrelated_files_have_no_tensor_in_common():
    found = contaminate.difference({"a": torch.zeros(2), "b": torch.zeros(1)}, {"c": torch.zeros(2)})
    told = report.describe_difference(found)
    assert told == "no tensor in common: 2 tensors in A only, 1 tensor in B only"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.059, "106 %"), (12.5, "1,250 %"), (3e9, "3.0e+11 %"), (1.0, "100.0 %"), (0.25, "25.0 %"), (0.0, "0 %")],
)
def test_shares_above_one_are_whole_percents(value, text):
    assert report.share(value) == text


def test_estimates_are_not_told_to_the_millisecond():
    assert [estimate(seconds) for seconds in (0.0, 0.04, 2.4, 120.0)] == [
        "under 0.1 s", "under 0.1 s", "about 2.40 s", "about 2 min"
    ]  # fmt: skip
