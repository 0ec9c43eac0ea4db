"""One voice: terminal, page, record and SARIF take their sentences, advice and exit code from one summary."""

import html
import json
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import torch

from netpurify import report
from netpurify.errors import InputError
from netpurify.lad import Status
from netpurify.network import Grade, Plan, Skipped
from netpurify.report.purification.advice import advise_layer
from tests.report import made_defences
from tests.report import made_purifications as made

MADE = (
    *(made.recovered, made.untouched, made.mixed, made.projected),
    *(made_defences.automatic, made_defences.asked, made_defences.uncounted),
)


def left_alone(*codes: int):
    """A result whose first layer has one unit for each of these statuses left alone; the others are recovered."""
    result = made.untouched()
    first = result.layers[0]
    grade, status = first.grade.copy(), first.status.copy()
    grade[: len(codes)], status[: len(codes)] = Grade.LEFT_ALONE, codes
    layer = replace(first, grade=grade, status=status, reason="too few weights agree")
    return replace(result, layers=(layer, *result.layers[1:]))


def words_of(page: str) -> str:
    return " ".join(html.unescape(re.sub("<.*?>", " ", page)).split())


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_page_and_record_say_the_same_sentences(make, monkeypatch):
    for room in ("purification", "defence"):
        monkeypatch.setattr(f"netpurify.report.{room}.page.can_draw", lambda: False)
    result = make()
    summary, record = report.summarise(result), report.record(result)
    words = words_of(report.page(result))
    assert all(f"{line.symbol} {line.sentence}" in words for line in summary.verdict)
    assert "; ".join(line.text for line in summary.verdict) == summary.headline
    assert all(text in words for text in summary.texts)
    assert (record["verdict"], record["statements"]) == (summary.headline, summary.texts)
    assert record["exit_code"] == summary.exit_code


@pytest.mark.parametrize("make", [made.recovered, made.mixed, made.projected], ids=lambda make: make.__name__)
def test_sarif_says_the_same_sentences(make):
    properties = report.sarif(make(), file="m.pt")["runs"][0]["properties"]
    summary = report.summarise(make())
    assert (properties["verdict"], properties["statements"]) == (summary.headline, summary.texts)


def test_status_and_remedy_stand_wherever_a_unit_is_not_recovered(monkeypatch):
    monkeypatch.setattr("netpurify.report.purification.page.can_draw", lambda: False)
    result = left_alone(Status.OPTIMAL, Status.OPTIMAL, Status.WITHIN_GAP, Status.FAILED)
    record = report.record(result)
    jsonschema.Draft202012Validator(report.schema()).validate(record)
    run = report.sarif(result, file="m.pt")["runs"][0]
    (alert,) = [one["message"]["text"] for one in run["results"] if one["ruleId"] == "unit-left-alone"]
    helps = {rule["id"]: rule.get("help", {}).get("text", "") for rule in run["tool"]["driver"]["rules"]}
    words = words_of(report.page(result))
    counted = {(entry["status"], entry["units"]) for entry in record["advice"]}
    assert counted == {("optimal", 2), ("within gap", 1), ("failed", 1)}
    assert record["advice"] == record["layers"][0]["advice"]
    assert record["layers"][1]["advice"] == []
    for status in (Status.OPTIMAL, Status.WITHIN_GAP, Status.FAILED):
        assert any((one["meaning"], one["remedy"]) == (status.meaning, status.remedy) for one in record["advice"])
        for text in (words, alert, helps["unit-left-alone"], helps["approximate-repair"]):
            assert status.meaning in text
            assert status.remedy in text
    assert helps["altered-weights"] == ""


def test_advice_without_a_fit_names_why_there_is_none():
    (conv,) = [advise_layer(layer) for layer in made.mixed().layers if layer.count(Grade.LEFT_ALONE)]
    (spanned,) = conv
    assert (spanned.units, spanned.meaning) == (8, Status.RANK_FULL.meaning)
    (unfitted,) = report.summarise(left_alone(-1)).advice
    assert (unfitted.status, unfitted.meaning) == ("no fit", "too few weights agree")
    assert unfitted.remedy


def test_advice_never_says_that_a_unit_without_enough_evidence_is_recovered():
    for status in (Status.CLEAN, Status.RECOVERED):
        (advice,) = report.summarise(left_alone(status)).advice
        assert status.meaning != advice.meaning
        assert "use the fit" not in advice.remedy


def test_layers_with_the_same_advice_share_it():
    result = left_alone(Status.OPTIMAL)
    first = result.layers[0]
    many = tuple(replace(first, name=f"block{number}") for number in range(9))
    (advice,) = report.summarise(replace(result, layers=many)).advice
    assert advice.units == 9
    assert advice.where == "block0, block1, block2, block3, block4 and 4 more"


def test_projected_units_get_advice_only_without_a_proven_minimum():
    result = made.projected()
    assert report.summarise(result).advice == ()
    assert report.summarise(result).exit_code == 0
    layer = result.layers[0]
    status = np.where(np.arange(layer.units) == 0, Status.FAILED, layer.status).astype(np.int8)
    broken = report.summarise(replace(result, layers=(replace(layer, status=status), *result.layers[1:])))
    assert [(one.status, one.units) for one in broken.advice] == [("failed", 1)]
    assert "1 fit without a certificate" in broken.headline
    assert broken.exit_code == 1


@pytest.mark.parametrize(
    ("make", "signs"),
    [(made.recovered, "▲✓"), (made.untouched, "✓"), (made.mixed, "▲✓◐"), (made.projected, "▣○")],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_tampering_is_red_and_repair_is_green_and_both_have_signs(make, signs):
    lines = report.summarise(make()).verdict
    assert "".join(line.symbol for line in lines) == signs
    looks = {"▲": "fails", "✓": "holds", "◐": "limits", "○": "unseen", "▣": "limits"}
    assert [line.outlook for line in lines] == [looks[sign] for sign in signs]
    assert all(line.outlook == "fails" for line in lines if "weights were altered" in line.text)


def test_units_are_intact_only_if_nothing_was_replaced_or_left_unjudged():
    result = made.recovered()
    for layer in result.layers:
        per_unit = np.zeros(layer.units, int)
        weight = layer.altered.tensor == 0
        np.add.at(per_unit, layer.altered.index[weight] // int(np.prod(layer.shape[1:])), 1)
        np.add.at(per_unit, layer.altered.index[~weight], 1)
        np.testing.assert_array_equal(layer.replaced, per_unit)
        assert layer.intact == (per_unit == 0).sum()
    first = made.untouched().layers[0]
    kept = np.where(np.arange(first.units) < 3, 2, 0)
    doubted = replace(first, kept=kept, unjudged=6)
    assert (first.intact, doubted.intact) == (8, 5)
    summary = report.summarise(replace(made.untouched(), layers=(doubted, *made.untouched().layers[1:])))
    assert "5 of 12 units intact, certified; 4 intact, as before training; 3 certified but for" in summary.headline
    assert "3 units: nothing was replaced; weights that differ from the fit were left unjudged." in summary.texts
    assert not replace(first, reason="").affected
    assert doubted.affected


def test_exit_code_follows_from_what_was_found():
    assert [report.summarise(make()).exit_code for make in (made.untouched, made.recovered, made.mixed)] == [0, 1, 1]
    result = made.untouched()
    missed = replace(result, skipped=(Skipped("", "Linear", "no input reaches it", missed=True),))
    summary = report.summarise(missed)
    assert (summary.exit_code, summary.outlook) == (1, "limits")
    assert summary.headline.endswith(
        "layers that could not be examined, so that nothing is known about them: the network itself"
    )
    assert report.summarise(left_alone(Status.OPTIMAL)).exit_code == 1
    unjudged = replace(result, layers=(replace(result.layers[0], unjudged=1), *result.layers[1:]))
    assert report.summarise(unjudged).exit_code == 1


def test_weights_that_are_not_finite_are_counted():
    result = made.untouched()
    model = torch.nn.Linear(2, 1)
    model.weight.data[0, 1] = float("inf")
    summary = report.summarise(replace(result, model=model))
    assert (summary.exit_code, summary.symbol) == (1, "◐")
    assert "; 1 weight of the purified network is not finite" in summary.headline


def test_plan_is_summed_up_and_recorded():
    plan = made.planned()
    summary, record = report.summarise(plan), report.record(plan)
    jsonschema.Draft202012Validator(report.schema("plan")).validate(record)
    assert record["verdict"] == summary.headline
    assert f"{len(plan.repairable)} of {len(plan.layers)} layers can be recovered exactly" in summary.headline
    nothing = report.summarise(Plan(layers=(), skipped=(), compared=(), seconds=0.0, bytes=0))
    assert (nothing.exit_code, nothing.outlook) == (1, "unseen")
    spared = replace(plan, layers=(replace(plan.layers[0], rank=0), *plan.layers[1:]))
    assert report.record(spared)["layers"][0]["ratio"] == "inf"
    json.dumps(report.record(spared), allow_nan=False)


def test_what_is_no_result_is_refused():
    known = "Purification, Defence, Hunt, Unlearning, Plan, Detection, Scan"
    with pytest.raises(InputError, match=f"one of {known}; got int"):
        report.summarise(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a Defence names none"):
        report.sarif(made_defences.automatic(), file="m.pt")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="got a Plan; take its record"):
        report.page(made.planned())  # type: ignore[arg-type]
