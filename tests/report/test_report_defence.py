"""The page and the record of a defence: what it costs and what was forgotten, and never that a network is clean."""

import html
import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest
from scipy.stats import binomtest

from netpurify import InputError, report
from netpurify.network.policies.defence.strength import DOUBT_SHARE
from netpurify.report.defence.pictures import curve, kept
from netpurify.report.kit.canvas import COLOURS
from netpurify.report.kit.numbers import share
from tests.report import made_defences as made
from tests.report import made_purifications
from tests.report.page_reader import LOADING, Reader
from tests.report.schema_breaker import assert_refuses

MADE = (made.automatic, made.asked, made.costly, made.uncounted, made.hostile)


@pytest.fixture(scope="module", params=MADE, ids=lambda make: make.__name__)
def result(request):
    return request.param()


@pytest.fixture(scope="module")
def text(result):
    return report.page(result, command="netpurify defend <x>", files={"Model": "a&b.pt"})


def body_of(text: str) -> str:
    """What is read: neither styles nor scripts nor drawings."""
    return re.sub(r"<(style|script|svg)\b.*?</\1>", "", text, flags=re.DOTALL)


def rows_of(text: str, label: str) -> list[list[str]]:
    """The rows of a table, as texts."""
    (found,) = re.findall(rf'aria-label="{label}".*?</table>', text, flags=re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", found, flags=re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows[1:]]
    return [[html.unescape(re.sub("<.*?>", "", cell)) for cell in row] for row in cells]


@pytest.mark.slow
def test_page_loads_nothing_and_every_link_leads_somewhere(text):
    read = Reader(text)
    for tag, attributes in read.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed"}
        assert not LOADING & set(attributes), tag
    assert text.count("<script>") == 1
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {at["href"].removeprefix("#") for tag, at in read.tags if tag == "a"} <= set(ids)


def test_page_never_calls_a_network_clean_or_safe(result, text):
    body = body_of(text)
    assert "◐ Defended, not proven: " in body
    assert "cannot show that a backdoor is gone" in body
    assert "What to check" in body
    said = " ".join([body, json.dumps(report.record(result))]).lower()
    for found in re.findall(r".{0,12}\bclean\b.{0,9}", said):
        assert re.search(r"clean inputs?|inputs are clean", found), found
    assert not re.search(r"\b(safe|secure|removed|recovered)|✓", said)


def test_page_says_what_it_costs_by_counting(result, text):
    step = result.chosen
    if not step.inputs:
        assert "could not be counted" in body_of(text)
        return
    level = result.level
    high = binomtest(step.differing, step.inputs, alternative="less").proportion_ci(level, method="exact").high
    assert f"Of 40 held-out clean inputs, {step.differing} change their class" in body_of(text)
    assert f"at most {100 * high:.3g} points of accuracy can be lost on inputs like these" in body_of(text)


def test_strength_is_explained():
    chosen, forced, given = (report.record(one())["statements"][1] for one in (made.automatic, made.costly, made.asked))
    result = made.automatic()
    assert chosen.startswith(f"Strength {result.strength:g}, the strongest found that changes the class of at most")
    assert f"{100 * DOUBT_SHARE * (1 - result.confidence):.1f} %: 50.0 % of the network's own doubt" in chosen
    assert forced.startswith("Strength 0.01, the weakest there is, and it changes the class of more than")
    assert given == "Strength 0.3, as asked for."


def test_tables_have_every_layer_and_every_strength(result, text):
    layers = rows_of(text, "Layers")
    assert [row[5] for row in layers] == [share(layer.forgotten) for layer in result.layers]
    guarded = [layer.guarded or "the network itself" for layer in result.layers]
    assert [row[8] for row in layers] == (guarded if result.guard else ["\N{EN DASH}"] * len(guarded))
    strengths = rows_of(text, "Strengths tried")
    assert [row[0] for row in strengths if "chosen" in row[0]] == [f"{result.strength:g} (chosen)"]
    assert [int(row[2]) for row in strengths] == [step.differing for step in result.curve]
    (bound,) = [row[4] for row in strengths if "chosen" in row[0]]
    assert bound == share(result.bound)


def places(svg: str, colour: str) -> list[tuple[str, str]]:
    """Where the drawing has markers of a colour."""
    found = re.findall(r"<use ([^>]*)/>", svg)
    return [
        (re.search(r' x="([^"]+)"', f" {one}")[1], re.search(r' y="([^"]+)"', f" {one}")[1])
        for one in found
        if f"stroke: {colour.lower()}" in one
    ]


@pytest.mark.parametrize("make", [made.automatic, made.costly, made.asked])
def test_curve_rings_the_chosen_point(make):
    result = make()
    picture = curve(result)
    points, rings = places(picture.svg, COLOURS[0]), places(picture.svg, COLOURS[1])
    (ringed,) = [place for place in points[: len(result.curve)] if place in rings]
    assert points.index(ringed) == result.curve.index(result.chosen)
    assert f"Chosen: {result.strength:g}, with" in picture.caption
    assert ("allowed" in picture.caption) == (make is not made.asked)
    assert picture.svg == curve(result).svg


def test_some_layers_of_a_deep_network_are_drawn():
    layer = made.automatic().layers[0]
    assert "of 6 of 40 layers" in kept([layer] * 40).caption
    assert "layers" not in kept([layer]).caption


def test_names_stay_texts():
    result = made.hostile()
    text = report.page(result, title=made.HOSTILE, command=made.HOSTILE)
    assert text.count("<script>") == 1
    assert f"{made.HOSTILE}\n" in Reader(text).words


def test_without_matplotlib_only_the_pictures_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = report.page(made.automatic())
    assert "pip install &#39;netpurify[report]&#39; brings it" in text
    assert "<svg" not in text
    assert len(rows_of(text, "Layers")) == 2


def test_record_fits_its_schema_and_survives_json(result):
    found = report.record(result)
    jsonschema.Draft202012Validator(report.schema("defence")).validate(found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    described = report.schema("defence")["properties"]
    assert found.keys() == described.keys()
    assert found["layers"][0].keys() == described["layers"]["items"]["properties"].keys()
    assert found["schema_name"] == "defence"
    assert found["chosen"] in found["curve"]
    assert [layer["forgotten"] for layer in found["layers"]] == [layer.forgotten for layer in result.layers]
    assert (found["allowed"] is None) != found["automatic"]


def test_schema_refuses_what_is_missing_and_what_is_no_share():
    wrong = ((("schema",), 2), (("policy",), "project"), (("curve",), []), (("layers", 0, "clipped"), 1.5))
    assert_refuses(report.schema("defence"), report.record(made.automatic()), wrong)


def test_a_plan_says_nothing_of_a_defence():
    with pytest.raises(InputError, match="a defence recovers nothing"):
        report.record(made.automatic(), plan=made_purifications.planned())


def test_docs_name_every_field():
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    part = text.split("## The page and the record of a defence")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", part)) >= report.schema("defence")["properties"].keys()
