"""The pages and records of hunts and of what was trained away: triggers to look at, and no network is called clean."""

import base64
import html
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import binomtest

from netpurify import InputError, report
from netpurify.network import HealthyLevel
from netpurify.report.hunt.pictures import margins
from netpurify.report.hunt.triggers import gallery
from netpurify.report.hunt.words import percent
from netpurify.report.kit.canvas import COLOURS, INK
from netpurify.report.kit.png import png
from tests.report import made_hunts as made
from tests.report import made_purifications
from tests.report.page_reader import LOADING, Reader
from tests.report.schema_breaker import assert_refuses

HUNTS = (made.suspect, made.several, made.nothing, made.own, made.hostile, made.many_classes)
REPAIRS = (made.repaired, made.still_there, made.unchanged)
WEAK = (
    "A hunt after the repair is weak evidence: in an experiment one repaired network scored below 0.1 in its own hunt "
    "while the real patch still worked on 47 % of images."
)


@pytest.fixture(scope="module", params=(*HUNTS, *REPAIRS), ids=lambda make: make.__name__)
def result(request):
    return request.param()


@pytest.fixture(scope="module")
def text(result):
    return report.page(result, command="netpurify hunt <x>", files={"Model": "a&b.pt"})


def body_of(text: str) -> str:
    """What is read: neither styles nor scripts nor drawings."""
    return re.sub(r"<(style|script|svg)\b.*?</\1>", "", text, flags=re.DOTALL)


def words_of(text: str) -> str:
    return " ".join(html.unescape(re.sub("<.*?>", " ", body_of(text))).split())


def table_of(text: str, label: str) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a table, as texts."""
    (found,) = re.findall(rf'aria-label="{label}".*?</table>', text, flags=re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", found, flags=re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows]
    head, *body = [[html.unescape(re.sub("<.*?>", " ", cell)).strip() for cell in row] for row in cells]
    return head, body


def pixels_of(source: str) -> np.ndarray:
    """An image of a page, as a browser reads it, [c, h, w]."""
    with Image.open(io.BytesIO(base64.b64decode(source.removeprefix("data:image/png;base64,")))) as image:
        found = np.asarray(image)
    return found[None] if found.ndim == 2 else found.transpose(2, 0, 1)


def test_page_loads_nothing_and_every_link_leads_somewhere(text):
    read = Reader(text)
    for tag, attributes in read.tags:
        assert tag not in {"link", "iframe", "object", "embed"}
        if tag == "img":
            assert attributes["src"].startswith("data:image/png;base64,")
            assert attributes["alt"]
        else:
            assert not LOADING & set(attributes), tag
    assert text.count("<script>") == 1
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {at["href"].removeprefix("#") for tag, at in read.tags if tag == "a"} <= set(ids)


def test_nothing_calls_a_network_clean_or_safe(result, text):
    said = " ".join([words_of(text), json.dumps(report.record(result)), str(result), result._repr_html_()]).lower()
    for found in re.findall(r".{0,14}\bclean\b.{0,9}", said):
        assert re.search(r"clean inputs?|clean images?|inputs are clean", found), found
    assert not re.search(r"\b(safe|secure|removed|recovered)\b|✓", said)


def test_page_and_record_say_the_same_sentences(result, text):
    summary, record = report.summarise(result), report.record(result)
    words = words_of(text)
    assert all(f"{line.symbol} {line.sentence}" in words for line in summary.verdict)
    assert all(" ".join(sentence.split()) in words for sentence in summary.texts)
    assert summary.basis in words
    assert (record["verdict"], record["statements"]) == (summary.headline, summary.texts)
    assert record["exit_code"] == summary.exit_code


def test_headline_of_a_suspect():
    found = report.summarise(made.suspect())
    assert found.headline == (
        "Class 3 is suspect: a spot sends 98 % of images of other classes there; healthy networks show at most 14 %"
    )
    assert (found.outlook, found.exit_code) == ("fails", 1)
    both = report.summarise(made.several())
    assert both.headline.startswith(
        "Classes 3 and 5 are suspect: a spot sends 95 % of images of other classes to class 3"
    )
    assert "tone leads to class 7 with 65 %" in both.texts[0]  # suspect too, but not a goal


def test_headline_where_nothing_is_suspect():
    found = report.summarise(made.nothing())
    assert found.headline == "Nothing found in 4 families; that does not mean that nothing is there"
    assert (found.outlook, found.exit_code) == ("limits", 0)
    assert report.summarise(replace(made.nothing(), families=made.nothing().families[:1])).headline.startswith(
        "Nothing found in 1 family;"
    )


def test_what_healthy_networks_show_and_what_nobody_knows():
    texts = {one.label: one.text for one in report.summarise(made.nothing()).statements}
    assert "at most 50 % (tone)" in texts["healthy"]
    assert "Measured with 3 healthy networks: small networks for digits." in texts["healthy"]
    assert texts["not calibrated"].startswith(
        "Never calibrated, so that nobody knows what healthy networks show: flow."
    )
    assert "wave, spot, tone, flow" in texts["searched"]
    assert "input-aware" in texts["not known"]
    assert "all-to-all" in texts["not known"]
    assert "netpurify defend works without families" in texts["not known"]
    own = {one.label for one in report.summarise(made.own()).statements}
    assert "healthy" not in own
    assert report.summarise(made.own()).headline.endswith("; what healthy networks show was never measured")
    assert "close" not in own  # the only family is suspect


def test_what_is_never_calibrated_says_both_levels_and_the_strongest_finding():
    unknown = HealthyLevel(0.0, 0.0, 0.0, 0.0, 0)
    one = made.family("spot", {3: 1.0, 4: 0.44}, made.drawn("wave", (1, 8, 8)), unknown)
    hunt = made.hunted([one])
    assert not hunt.suspects
    (said,) = [one.text for one in report.summarise(hunt).statements if one.label == "not calibrated"]
    assert "suspect only from 75 points together with a success of 90 % on" in said
    assert "The strongest, spot, leads to class 3 with 100 %" in said


@pytest.mark.parametrize(("margin", "close"), [(0.30, False), (0.49, True), (0.5, False)])
def test_what_is_close_is_not_suspect(margin, close):
    level = HealthyLevel(0.0, 0.4, 0.0, 0.0, 3)  # suspect from 50 points or a success of 70 % on
    one = made.family("wave", {2: 0.1 + margin, 4: 0.1}, made.drawn("wave", (1, 8, 8)), level)
    hunt = made.hunted([one, made.nothing().families[1]])
    (said,) = [one.text for one in report.summarise(hunt).statements if one.label == "close"]
    assert (f"wave (class 2, {100 * margin / 0.5:.0f} % of the way)" in said) == close
    assert bool(hunt.suspects) == (margin == 0.5)


def test_suspects_are_shown_else_the_strongest_three():
    rows = gallery(made.several()).rows
    assert [(row.heading, row.suspect) for row in rows] == [
        ("spot, class 3", True), ("wave, class 5", True), ("tone, class 7", True)
    ]  # fmt: skip
    calm = gallery(made.nothing())
    assert [row.heading for row in calm.rows] == ["tone, class 2", "spot, class 2", "wave, class 2"]
    assert not any(row.suspect for row in calm.rows)
    page = words_of(report.page(made.nothing()))
    assert page.count("○ strongest, not suspect") == 3
    assert "▲" not in page


@pytest.mark.parametrize("make", [made.suspect, made.several], ids=["grey", "colour"])
def test_images_are_the_examples_without_and_with_the_trigger(make):
    hunt = make()
    row = gallery(hunt).rows[0]
    (best,) = [one.best for one in hunt.families if one.family == "spot"]
    assert len(row.pairs) == 6
    stamped = best.on(hunt.examples)
    for place, (clean, changed) in enumerate(row.pairs):
        for shown, image in ((clean, hunt.examples[place]), (changed, stamped[place])):
            assert np.array_equal(pixels_of(shown.source), np.rint(255.0 * image.numpy()).astype(np.uint8))
            assert (shown.height, shown.width) == tuple(image.shape[1:])
        assert "which leads to class 3" in changed.alt


def test_what_is_added_to_every_image_is_amplified_and_other_triggers_have_a_difference():
    pattern = torch.zeros(1, 8, 8)
    pattern[0, 2, 5], pattern[0, 0, 0] = 0.04, -0.02
    hunt = made.hunted([made.family("added", made.rates(1, 0.2), made.Added(pattern))])
    (row,) = gallery(hunt).rows
    assert row.caption == "What is added to every image, amplified 12 times."
    found = pixels_of(row.difference.source)[0]
    assert (found[2, 5], found[0, 0]) == (round(255 * (0.5 + 12 * 0.04)), round(255 * (0.5 - 12 * 0.02)))
    assert np.delete(found.flatten(), [0, 21]).tolist() == [128] * 62
    hunt = made.hunted([made.family("inverted", made.rates(1, 0.2), made.Inverted(torch.empty(0)))])
    (row,) = gallery(hunt).rows
    assert row.caption == "The difference on the first image, halved."
    expected = 0.5 + 0.5 * (1.0 - 2.0 * hunt.examples[0].numpy())
    assert np.abs(pixels_of(row.difference.source) - 255.0 * expected).max() <= 0.51
    hunt = made.hunted([made.family("none", made.rates(1, 0.2), made.Added(torch.zeros(1, 8, 8)))])
    assert gallery(hunt).rows[0].caption == "What is added to every image: none."


def test_large_images_are_fewer_and_many_suspects_are_limited():
    shape = (3, 96, 96)
    spots = [made.family("spot", made.rates(3, 0.9 + 0.01 * place), made.drawn("spot", shape)) for place in range(8)]
    found = gallery(made.hunted(spots, examples=made.images(3, 96)))
    assert len(found.rows) == 6
    assert found.note.startswith("The strongest 6 of 8 suspects.")
    assert len(found.rows[0].pairs) == 3
    assert found.rows[0].success == "97 %"


@pytest.mark.parametrize(
    "examples", [torch.ones(8, 6), torch.ones(8, 2, 8, 8), 3.0 * torch.ones(8, 1, 8, 8), torch.ones(8, 1, 8, 8).long()],
    ids=["vectors", "two channels", "beyond 1", "whole numbers"],
)  # fmt: skip
def test_without_images_there_are_no_pictures_and_the_page_says_so(examples):
    page = report.page(replace(made.suspect(), examples=examples))
    assert "<img" not in page
    assert "There are no pictures of triggers: the inputs are no images" in page
    assert "98 % of inputs of other classes" in words_of(page)
    assert len(table_of(page, "Success")[1]) == 3


@pytest.mark.parametrize("shape", [(1, 5, 7), (3, 4, 3)], ids=["grey", "colour"])
def test_files_are_read_by_others_as_they_were_written(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    with Image.open(io.BytesIO(png(pixels))) as image:
        image.load()
        assert image.mode == ("L" if shape[0] == 1 else "RGB")
        found = np.asarray(image)
    assert np.array_equal(
        found if found.ndim == 2 else found.transpose(2, 0, 1), pixels[0] if shape[0] == 1 else pixels
    )


def test_table_has_every_number_and_its_shade():
    hunt = made.suspect()
    page = report.page(hunt)
    head, rows = table_of(page, "Success")
    assert head[:4] == ["Family", "Class 0", "Class 1", "Class 2"]
    for one, row in zip(hunt.families, rows, strict=True):
        assert row[1:11] == [percent(value) for value in one.successes(10)]
        level = one.expected
        assert row[11:] == [
            percent(one.runner_up), f"{100 * one.margin:.0f}", f"{100 * level.threshold:.0f}",
            percent(level.success_threshold), percent(level.success), percent(level.highest),
        ]  # fmt: skip
    assert rows[1][0].split() == ["spot", "▲", "suspect:", "class", "3"]
    assert '<td role="cell" data-label="Class 3" data-value="0.984"><span class="heat-10">98 %</span></td>' in page
    assert '<span class="heat-6">60 %</span>' in page
    assert "heat sortable" in page


def test_many_classes_show_those_that_were_followed_up():
    page = report.page(made.many_classes())
    head, rows = table_of(page, "Success")
    assert head[1:6] == ["Class 7", "Class 12", "Class 41", "Class 90", "Runner-up"]
    assert rows[1][1:5] == ["30 %", "10 %", "\N{EN DASH}", "\N{EN DASH}"]
    assert "Of 100 classes, 4 classes to which first draws led are shown" in words_of(page)
    assert "are shown" not in words_of(report.page(made.suspect()))
    crowd = made.family("spot", {target: target / 200 for target in range(100)}, made.drawn("spot", (1, 8, 8)))
    head, _ = table_of(report.page(made.hunted([crowd], classes=100)), "Success")
    assert head[1:41] == [f"Class {target}" for target in range(60, 100)]


def marks(svg: str, colour: str) -> list[tuple[float, ...]]:
    """Where the drawing has markers of a colour; the last are those of the legend."""
    found = [one for one in re.findall(r"<use ([^>]*)/>", svg) if f"stroke: {colour.lower()}" in one]
    return [tuple(float(re.search(rf' {axis}="([^"]+)"', f" {one}")[1]) for axis in "xy") for one in found]


def test_drawing_has_margins_and_thresholds_where_they_are():
    hunt = made.suspect()
    picture = margins(hunt)
    (red, *_) = marks(picture.svg, COLOURS[1])
    calm = marks(picture.svg, COLOURS[0])[:2]
    lines = marks(picture.svg, INK)
    wave, spot, tone = (  # ticks of the axis are on the same height, on the left
        max(place for place in lines if abs(place[1] - one[1]) < 0.01) for one in (calm[0], red, calm[1])
    )
    assert red[1] == pytest.approx(spot[1])
    assert red[0] > spot[0]
    assert [one[0] < line[0] for one, line in zip(calm, (wave, tone), strict=True)] == [True, True]
    assert spot[0] < wave[0] < tone[0]
    assert picture.svg == margins(hunt).svg
    assert "never calibrated" not in picture.caption
    assert "never calibrated" in margins(made.nothing()).caption
    assert "after the repair" in margins(hunt, made.repaired().after).caption


def test_names_stay_texts():
    text = report.page(made.hostile(), title=made.HOSTILE, command=made.HOSTILE)
    assert text.count("<script>") == 1
    assert f"{made.HOSTILE}\n" in Reader(text).words
    assert made.HOSTILE not in made.hostile()._repr_html_()
    assert any(made.HOSTILE in (at.get("alt") or "") for tag, at in Reader(text).tags if tag == "img")


def test_without_matplotlib_only_the_drawing_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for make, label in ((made.suspect, "Success"), (made.repaired, "Before and after")):
        text = report.page(make())
        assert "pip install &#39;netpurify[report]&#39; brings it" in text
        assert "<svg" not in text
        assert "<img" in text
        assert len(table_of(text, label)[1]) == 3


def test_printed_hunts_are_short(result):
    text = str(result)
    summary = report.summarise(result)
    assert text.splitlines()[0] == f"{summary.symbol} {summary.headline}"
    assert len(text.splitlines()) <= 25
    hunt = getattr(result, "before", result)
    assert all(one.family in text for one in hunt.families)
    read = Reader(result._repr_html_())
    assert all(line.sentence in read.words for line in summary.verdict)
    assert "tensor(" not in text + repr(result)


def test_many_families_stay_short():
    families = [replace(made.nothing().families[0], family=f"own{number}") for number in range(40)]
    lines = str(replace(made.nothing(), families=tuple(families))).splitlines()
    assert len(lines) <= 25
    assert lines[-1] == "  20 more families"


@pytest.mark.parametrize("make", HUNTS, ids=lambda make: make.__name__)
def test_record_of_a_hunt_fits_its_schema_and_survives_json(make):
    hunt = make()
    found = report.record(hunt)
    jsonschema.Draft202012Validator(report.schema("hunt")).validate(found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found.keys() == report.schema("hunt")["properties"].keys()
    definition = report.schema("hunt")["$defs"]["families"]["items"]
    assert found["families"][0].keys() == definition["properties"].keys()
    assert found["goals"] == list(hunt.goals)
    assert [one["margin"] for one in found["families"]] == [one.margin for one in hunt.families]
    assert [one["healthy"] is None for one in found["families"]] == [not one.expected.hunts for one in hunt.families]


def test_record_has_the_numbers_of_the_trigger():
    hunt = made.suspect()
    spot = hunt.families[1].best.trigger
    (found,) = [one["best"]["trigger"] for one in report.record(hunt)["families"] if one["family"] == "spot"]
    assert found == {"parameters": spot.parameters.tolist(), "box": list(spot.box)}
    large = made.family("added", made.rates(1, 0.2), made.Added(torch.zeros(3, 100, 100)))
    assert report.record(made.hunted([large], examples=made.images(3, 100)))["families"][0]["best"]["trigger"] == {
        "parameters": None
    }


@pytest.mark.parametrize("make", REPAIRS, ids=lambda make: make.__name__)
def test_record_of_a_repair_fits_its_schema_and_survives_json(make):
    result = make()
    found = report.record(result)
    jsonschema.Draft202012Validator(report.schema("unlearning")).validate(found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found.keys() == report.schema("unlearning")["properties"].keys()
    assert (found["after"] is None) == (not found["changed"])
    assert found["chosen"]["bound"] == result.bound


def test_schemas_refuse_what_is_missing_and_what_is_no_share():
    wrong = (
        (("schema",), 2), (("goals",), ["3"]), (("families",), []), (("families", 0, "runner_up"), 1.5),
        (("families", 0, "healthy"), {}), (("exit_code",), 2), (("families", 0, "successes"), [2.0]),
    )  # fmt: skip
    assert_refuses(report.schema("hunt"), report.record(made.suspect()), wrong)
    wrong = ((("schema",), 2), (("policy",), "defend"), (("after", "families"), []), (("before",), None),
             (("steps",), -1), (("chosen", "differing"), None))  # fmt: skip
    assert_refuses(report.schema("unlearning"), report.record(made.repaired()), wrong)


@pytest.mark.parametrize("make", [made.repaired, made.still_there], ids=lambda make: make.__name__)
def test_a_repair_says_what_it_did_and_what_it_costs_by_counting(make):
    result = make()
    words = words_of(report.page(result))
    assert WEAK in words
    assert "this trained the weights: 100 steps of gradient descent" in words
    differing = result.chosen.differing
    high = binomtest(differing, 60, alternative="less").proportion_ci(0.95, method="exact").high
    change = "1 changes its class" if differing == 1 else f"{differing} change their class"
    assert f"Of 60 held-out clean inputs, {change}" in words
    assert f"at most {100 * high:.3g} points of accuracy can be lost on inputs like these" in words
    assert "with another seed and other draws, judged on the 60 held-out inputs" in words
    summary = report.summarise(result)
    assert summary.outlook == "limits"
    assert summary.headline.startswith("Trained, not proven: class 3 was suspect (spot); at most ")


def test_what_a_second_hunt_says():
    calm, again = report.summarise(made.repaired()), report.summarise(made.still_there())
    assert "nothing found by a second hunt; that does not mean that nothing is there" in calm.headline
    assert "still found by a second hunt: class 3 (spot, 90 %)" in again.headline
    assert (calm.exit_code, again.exit_code) == (0, 1)


def test_a_class_that_was_not_suspect_before_is_not_still_found():
    before = made.still_there()
    other = made.hunted([made.family("spot", made.rates(5, 0.9), made.drawn("spot", (1, 8, 8)))], inputs=60)
    summary = report.summarise(replace(before, after=other))
    assert summary.headline.endswith("a second hunt finds another class: class 5 (spot, 90 %)")
    assert "No class that was suspect before is among them" in " ".join(summary.texts)
    assert "still found" not in " ".join([summary.headline, *summary.texts])
    assert summary.exit_code == 1


def test_without_a_suspect_nothing_was_changed():
    summary = report.summarise(made.unchanged())
    assert summary.headline.startswith("Nothing was changed: nothing found in 4 families; ")
    assert (summary.exit_code, summary.outlook) == (0, "limits")
    assert "try netpurify defend, which needs no families" in " ".join(summary.texts)
    page = words_of(report.page(made.unchanged()))
    assert WEAK not in page
    assert "Triggers after" not in page
    assert "as they came, bit for bit" in page
    assert made.unchanged().bound == 0.0


def test_both_hunts_stand_side_by_side():
    result = made.still_there()
    page = report.page(result)
    _, rows = table_of(page, "Before and after")
    for before, after, row in zip(result.before.families, result.after.families, rows, strict=True):
        assert row[:4] == [before.family, str(before.best.target), percent(before.best.success),
                           f"{100 * before.margin:.0f}"]  # fmt: skip
        assert row[4:9] == [str(after.best.target), percent(after.best.success), f"{100 * after.margin:.0f}",
                            f"{100 * after.expected.threshold:.0f}",
                            percent(after.expected.success_threshold)]  # fmt: skip
    assert [row[9] for row in rows] == ["not suspect", "before and after", "not suspect"]
    assert [row[9] for row in table_of(report.page(made.repaired()), "Before and after")[1]][1] == "before"
    assert words_of(page).count("▲ suspect spot, class 3") == 2


@pytest.mark.parametrize("make", [made.suspect, made.repaired], ids=lambda make: make.__name__)
def test_no_plan_and_no_log_of_a_hunt(make):
    with pytest.raises(InputError, match="recovers nothing"):
        report.record(make(), plan=made_purifications.planned())
    with pytest.raises(InputError, match="names none; take its page or its record"):
        report.sarif(make(), file="m.pt")


@pytest.mark.parametrize(("value", "said"), [(0.0, "0 %"), (0.004, "under 1 %"), (0.996, "over 99 %"), (1.0, "100 %")])
def test_shares_are_never_rounded_to_nothing_or_all(value, said):
    assert percent(value) == said


@pytest.mark.parametrize(("name", "part"), [("hunt", "a hunt"), ("unlearning", "what was trained away")])
def test_docs_name_every_field(name, part):
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    section = text.split(f"## The page and the record of {part}")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) >= report.schema(name)["properties"].keys()
