"""Reports of scans: words, record, page and log agree, fit their schemas, and are safe for any name."""

import json
import math
from pathlib import Path

import jsonschema
import pytest
import torch

import netpurify
from netpurify import contaminate, report
from tests.network.fine_tuning import flipped
from tests.report.page_reader import LOADING, Reader
from tests.report.schema_breaker import assert_refuses

OFFICIAL = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
HOSTILE = "<script>alert(1)</script>{0}[x](http://y)"


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def found():
    """A scan with a finding of every kind."""
    base = {HOSTILE: drawn(30, 30), "b.weight": drawn(30, 20), "c": drawn(9), "d": drawn(3), "same": drawn(20, 20)}
    tuned = base["b.weight"] + 1e-3 * drawn(30, 20).flip(0)
    tuned[1, 2], tuned[3, 4] = math.nan, 90.0
    state = {HOSTILE: flipped(base[HOSTILE], 95, 30), "b.weight": tuned, "c": drawn(8), "same": base["same"]}
    return netpurify.scan(state, base)


def log_of(result):
    log = report.sarif(result, file="weights/model.safetensors")
    jsonschema.Draft4Validator(OFFICIAL, format_checker=jsonschema.FormatChecker()).validate(log)
    return log["runs"][0]


def test_every_kind_of_finding_has_its_rule_and_place():
    run = log_of(found())
    by_rule = {one["ruleId"]: one for one in run["results"]}
    assert len(by_rule) == len(run["results"]) == 5
    places = {rule: one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for rule, one in by_rule.items()}
    assert places == {
        "altered-tensor": HOSTILE,
        "impossible-weights": "b.weight",
        "outlying-weights": "b.weight",
        "tensor-without-base": "c",
        "tensor-only-in-base": "d",
    }
    assert "1 of 900 weights differ from the base" in by_rule["altered-tensor"]["message"]["text"]
    assert "at index 3, 5 (is " in by_rule["altered-tensor"]["message"]["text"]
    assert "at index 1, 2 (is nan, base " in by_rule["impossible-weights"]["message"]["text"]
    assert "at index 3, 4 (is 90, base " in by_rule["outlying-weights"]["message"]["text"]
    for one in run["results"]:
        rule = run["tool"]["driver"]["rules"][one["ruleIndex"]]
        assert (rule["id"], rule["defaultConfiguration"]["level"]) == (one["ruleId"], one["level"])


def test_fingerprints_stay_while_the_finding_stays():
    first, again = log_of(found())["results"], log_of(found())["results"]
    assert [one["partialFingerprints"] for one in first] == [one["partialFingerprints"] for one in again]
    assert len({one["partialFingerprints"]["tensor/v1"] for one in first}) == 5


def test_nothing_found_is_no_result_and_compared_tensors_are_notes():
    base = {"a": drawn(20, 20), "b": drawn(6, 6)}
    result = netpurify.scan(base | {"a": base["a"] * 1.01}, base)
    run = log_of(result)
    assert run["results"] == []
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["level"] == "note"
    assert note["message"]["text"].startswith("a: ")
    strict = log_of(report.Detection(result, strict=True))
    assert [one["ruleId"] for one in strict["results"]] == ["tensor-compared-only"]
    assert report.summarise(result).exit_code == 0
    assert report.summarise(report.Detection(result, strict=True)).exit_code == 1


def test_record_fits_its_schema_and_has_every_finding():
    result = found()
    record = report.record(result)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    wrong = (
        (("exit_code",), 5), (("coverage", "examined"), -1), (("tensors", 0, "verdict"), "fine"),
        (("tensors", 0, "altered", "was"), [None]), (("fits",), {}), (("frozen",), "*"),
    )  # fmt: skip
    assert_refuses(report.schema("scan"), record, wrong)
    by_name = {one["name"]: one for one in record["tensors"]}
    assert by_name[HOSTILE]["altered"]["index"] == [95]
    assert by_name["b.weight"]["impossible"] == {
        "index": [22], "was": ["nan"], "base": [pytest.approx(float(drawn(30, 20)[1, 2]))]
    }  # fmt: skip
    assert by_name["b.weight"]["outliers"]["index"] == [64]
    assert record["only_base"] == ["d"]
    assert record["coverage"] == {"examined": 1300, "compared": 600, "unknown": 8}
    assert record["verdict"] == report.summarise(result).headline


def test_page_shows_findings_and_escapes_names():
    text = report.page(found(), title="Scan of a model", command="netpurify scan x", files={"base": "b.safetensors"})
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text

    page = Reader(text)
    assert not [tag for tag, attributes in page.tags if LOADING & attributes.keys()]
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert text.index('id="findings"') < text.index('id="tensors"')
    for words in ("impossible", "outlying", "altered", "only the base has it", "b.safetensors", "Scan of a model"):
        assert words in text


def test_differences_have_logs_by_the_official_schema():
    first = {"a": torch.ones(4), "b": torch.ones(2, 2), "c": torch.ones(1), "d": torch.ones(2)}
    second = {
        "a": torch.tensor([1.0, 3.0, 1.0, math.inf]),
        "b": torch.ones(3),
        "d": torch.ones(2).double(),
        "e": drawn(1),
    }
    log = report.difference_sarif(contaminate.difference(first, second), file="a.pt")
    jsonschema.Draft4Validator(OFFICIAL).validate(log)
    texts = [(one["ruleId"], one["message"]["text"]) for one in log["runs"][0]["results"]]
    assert texts == [
        ("tensor-differs", "a: 2 of 4 weights differ; largest change inf; first at 1, 3 of the flattened tensor"),
        ("tensor-of-another-kind", r"b: shape \[2, 2\] in the first file, \[3\] in the second"),
        ("tensor-of-another-kind", "d: float32 in the first file, float64 in the second"),
        ("tensor-only-in-first", "c: the second file lacks this tensor"),
        ("tensor-only-in-second", "e: the first file lacks this tensor"),
    ]
    same = report.difference_sarif(contaminate.difference(first, first), file="a.pt")
    assert same["runs"][0]["results"] == []
