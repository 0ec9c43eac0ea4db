"""The page of a purification: whole, self-contained, safe for any name, and never saying more than was proven."""

import re
import sys
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

from netpurify import report
from netpurify.network import Agreement, Altered, Grade, Skipped
from netpurify.report.purification.entries import entries
from netpurify.report.purification.mosaic import mosaic
from netpurify.report.purification.page import MOST_PICTURED
from netpurify.report.purification.pictures import chosen, pictures
from netpurify.report.purification.tables import MOST_UNITS, MOST_WEIGHTS
from tests.report import made_purifications as made
from tests.report.page_reader import LOADING, Reader

pytestmark = pytest.mark.slow  # every test draws pages

MADE = (made.recovered, made.untouched, made.hostile, made.mixed, made.projected)


@pytest.fixture(scope="module", params=MADE, ids=lambda make: make.__name__)
def result(request):
    return request.param()


@pytest.fixture(scope="module")
def text(result):
    return report.page(result, command="netpurify recover <x>", files={"Model": "a&b.pt"})


@pytest.fixture(scope="module")
def read(text):
    return Reader(text)


def body_of(text: str) -> str:
    """What is read: neither styles nor scripts nor drawings."""
    return re.sub(r"<(style|script|svg)\b.*?</\1>", "", text, flags=re.DOTALL)


def cells(text: str, kind: str) -> list[list[str]]:
    """The rows of a table, as texts."""
    (found,) = re.findall(rf'<table[^>]*class="{kind} sortable".*?</table>', text, flags=re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", found, flags=re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows[1:]]


@pytest.mark.slow
def test_page_loads_nothing_and_runs_nothing_else(read, text):
    for tag, attributes in read.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed"}
        assert not (LOADING - {"data"}) & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes)
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert [tag for tag, _ in read.tags].count("script") == 1
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


@pytest.mark.slow
def test_every_link_leads_somewhere_and_ids_are_unique(read):
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"] for tag, attributes in read.tags if tag == "a"}
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_page_says_everything_but_never_clean_of_a_network(result, read, text):
    assert "netpurify recover <x>" in read.words
    assert "a&b.pt" in read.words
    assert result.provenance["model"] in read.words
    if result.compared:  # the norm is no layer: its tensors are compared with their initial values
        assert "norm.running_var" in read.words
    else:
        assert "BatchNorm1d has a scale and a shift for each unit" in read.words
    for layer in result.layers:
        assert layer.name in read.words
    for found in re.findall(r".{12}\bclean\b.{9}", body_of(text)):
        assert re.search(r"clean inputs?|inputs are clean", found), found
    assert len(cells(text, "layers")) == len(result.layers)
    assert len(cells(text, "units")) == sum(layer.units for layer in result.layers)


@pytest.mark.slow
def test_grades_stand_beside_their_own_counts():
    text = report.page(made.mixed(), plan=made.planned())
    assert "▲ 1 of 397 weights was altered; 3 more far out of the fit replaced approximately.<" in text
    assert "✓ 1 of 12 units restored to the initial bits; 3 intact, as before training.<" in text
    (conv, head) = cells(text, "layers")
    assert [re.sub("<.*?>", "", cell) for cell in conv[8:12]] == ["0", "3", "5", "0"]
    assert [re.sub("<.*?>", "", cell) for cell in head[8:12]] == ["3", "0", "0", "1"]
    assert "never trained: compared with the initial weights, not fitted" in head[0]
    rows = cells(text, "altered")
    assert [row[2] for row in rows[:2]] == ["nan", "-inf"]
    assert [row[5] for row in rows] == ["◐ approximate"] * 3 + ["↺ restored"]
    judged = [row[2] for row in cells(text, "units")]
    assert judged[:8] == ["○ left alone"] * 5 + ["◐ approximate"] * 3
    assert sorted(judged[8:]) == ["↺ restored", "✓ intact", "✓ intact", "✓ intact"]
    assert "outputs cannot be compared: those of the contaminated network are not finite" in text
    assert "What check had said of each layer" in text
    assert "can be checked again" not in text  # there was no fit to certify
    assert "can be checked again by anyone" in report.page(made.recovered())


@pytest.mark.slow
def test_projecting_is_not_called_recovering():
    body = body_of(report.page(made.projected()))
    assert "All 12 units took the fitted value in every weight" in body
    assert "▣ projected" in body
    assert "checked again" not in body  # no proof was kept
    assert "✓" not in body
    assert "Project does not tell which weights had been altered." in body


def test_nothing_altered_shows_no_picture():
    text = report.page(made.untouched())
    assert "✓ Nothing was altered in 397 weights examined" in text
    assert "<svg" not in text


@pytest.mark.slow
def test_names_stay_texts(result, text):
    assert text.count("<script>") == 1
    if result is made.hostile():
        assert "&lt;script&gt;alert(1)&lt;/script&gt;.weight" in text
        assert f"{made.HOSTILE}.weight\n" in Reader(text).words


def test_layer_names_in_drawings_stay_texts():
    drawn = pictures(made.hostile().layers[0])
    assert all("<script" not in one.svg and "&lt;script&gt;alert(1)" in one.svg for one in drawn)


@pytest.mark.slow
def test_same_result_gives_the_same_page(result, text):
    assert report.page(result, command="netpurify recover <x>", files={"Model": "a&b.pt"}) == text


def test_without_matplotlib_only_the_pictures_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = report.page(made.recovered())
    assert "pip install &#39;netpurify[report]&#39; brings it" in text
    assert "<svg" not in text
    assert len(cells(text, "altered")) == 29


def test_deep_networks_make_pages_of_few_megabytes(monkeypatch):
    result = made.deep(100)
    assert len(chosen(result.layers, MOST_PICTURED)) == MOST_PICTURED
    one = pictures(result.layers[0])
    assert sum(len(each.svg) for each in one) < 150_000
    monkeypatch.setattr("netpurify.report.purification.page.pictures", lambda _layer: one)
    text = report.page(result)
    assert "76 layers without a picture: at most 24 are drawn" in text
    assert len(text) < 5_000_000


def test_long_tables_are_cut_and_say_so(monkeypatch):
    monkeypatch.setattr("netpurify.report.purification.page.can_draw", lambda: False)
    text = report.page(made.deep(300))
    assert "The 2,000 largest changes of 4,800; the JSON record has all." in text
    assert "1,000 of 2,400 units, the weakest evidence first; the JSON record has all." in text
    rows = cells(text, "altered")
    assert (len(rows), len(cells(text, "units"))) == (MOST_WEIGHTS, MOST_UNITS)
    changes = [float(row[4]) for row in rows]
    assert changes == sorted(changes, reverse=True)


def test_layers_worth_a_picture_come_by_what_is_wrong_with_them():
    conv, head = made.mixed().layers
    assert chosen((conv, head), 1) == [conv]
    assert chosen((head, conv), 2) == [head, conv]
    assert chosen(made.untouched().layers, 9) == []


def test_image_marks_exactly_the_replaced_weights():
    layer = made.recovered().layers[1]
    image = mosaic(layer)
    assert image.pixels.shape == (4, 16, 3)
    marked = {(int(y), int(x)) for y, x in zip(*(image.pixels[..., 0] < 0.5).nonzero(), strict=True)}
    places = layer.altered.index[layer.altered.tensor == 0]
    assert marked == {divmod(int(place), 16) for place in places}


def test_image_of_kernels_keeps_their_shape():
    layer = made.mixed().layers[0]
    image = mosaic(layer)
    assert (image.kernels, image.across, image.pixels.shape) == (True, 2, (16, 16, 3))
    marked = {(int(y), int(x)) for y, x in zip(*(image.pixels[..., 2] < 0.1).nonzero(), strict=True)}
    assert marked == {(1, 2), (4, 8), (8 + 2, 8 + 2)}  # unit 0 at 1, 2; unit 3 at 0, 0; unit 5 at 2, 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", made.KINDS)
def test_every_kind_of_layer_has_its_image_and_place(kind):
    result = made.kind(kind)
    (layer,) = result.layers
    places = {(one.index, one.tensor) for one in entries(result, result.altered)}
    weight = result.contaminated["weight"]
    expected = {(tuple(map(int, np.unravel_index(2 * unit, weight[0].shape))), unit) for unit in range(layer.units)}
    assert places == {((unit, *place), "weight") for place, unit in expected}
    image = mosaic(layer)
    assert image.per_pixel == 1
    assert int((image.pixels[..., 0] < 0.5).sum()) == layer.units
    text = report.page(result)
    assert ">the network itself</a>" in text
    jsonschema.Draft202012Validator(report.schema()).validate(report.record(result))


def test_unjudged_weights_are_counted_and_spoil_the_verdict():
    result = made.untouched()
    layers = (replace(result.layers[0], unjudged=1234), *result.layers[1:])
    text = report.page(replace(result, layers=layers))
    assert "◐ No weight of 397 is proven to be altered." in text
    assert "◐ 1,234 weights left unjudged." in text
    assert "nothing was altered" not in text.lower()
    assert ">Unjudged</th>" in text
    (finding,) = report.sarif(replace(result, layers=layers), file="m.pt")["runs"][0]["results"]
    assert finding["ruleId"] == "weights-unjudged"


def test_suspicious_weights_are_counted_and_listed():
    result = made.untouched()
    first = result.layers[0]
    some = Altered(
        tensor=np.array([0, 1], np.int32),
        index=np.array([9, 3]),
        was=np.array([1.5, -2.0]),
        now=np.array([1.5, -2.0]),
        grade=np.array([Grade.LEFT_ALONE] * 2, np.int8),
        names=first.altered.names,
    )
    suspected = replace(result, layers=(replace(first, suspicious=some), *result.layers[1:]))
    text = report.page(suspected)
    assert "◐ 2 suspicious weights left unchanged." in text
    assert ">Suspicious</th>" in text
    assert ">Suspicious</th>" not in report.page(result)
    record = report.record(suspected)
    jsonschema.Draft202012Validator(report.schema()).validate(record)
    assert record["suspicious"] == [
        {"tensor": "conv.weight", "index": [0, 0, 1, 1], "value": 1.5},
        {"tensor": "conv.bias", "index": [3], "value": -2.0},
    ]
    assert record["layers"][0]["suspicious"] == 2
    assert record["altered"] == []
    (finding,) = report.sarif(suspected, file="m.pt")["runs"][0]["results"]
    assert (finding["ruleId"], finding["level"]) == ("weights-suspicious", "note")
    assert "2 suspicious weights left unchanged" in finding["message"]["text"]


def test_large_layers_are_put_together_but_nothing_is_lost():
    one = made.recovered().layers[1]
    place = 3 * 4000 + 3999
    wide = replace(one, shape=(4, 4000), altered=replace(one.altered, index=one.altered.index * 0 + place))
    image = mosaic(wide)
    assert (image.per_pixel, image.pixels.shape) == (10, (4, 400, 3))
    assert image.pixels[3, 399, 0] < 0.9
    assert (image.pixels[:3] > 0.9).all()
    assert "A pixel stands for up to 10 weights" in image.caption


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (Agreement(0, float("nan"), float("nan")), "not compared: they are no tensors"),
        (Agreement(1, float("nan"), 0.25), "On 1 clean input, outputs changed by 25.0 % of their size."),
        (Agreement(40, 0.975, 0.0), "by 0 % of their size, and the largest output is the same for 97.5 %."),
    ],
)
def test_agreement_in_words(outputs, words):
    assert words in report.page(replace(made.untouched(), agreement=outputs))


def test_grades_have_signs_and_words():
    text = report.page(made.mixed())
    for grade in (Grade.RESTORED, Grade.APPROXIMATE, Grade.LEFT_ALONE):
        assert grade.meaning in text


def test_a_misfit_beyond_every_number_is_drawn_without_it():
    layer = next(layer for layer in made.mixed().layers if layer.histogram.any())
    (drawn,) = [
        picture for picture in pictures(replace(layer, error_scale=np.full(layer.units, np.inf)))
        if "residual" in picture.caption
    ]  # fmt: skip
    assert drawn.svg.startswith("<svg")


def test_layers_that_are_intact_are_folded_away(monkeypatch):
    monkeypatch.setattr("netpurify.report.purification.page.can_draw", lambda: False)
    result, healthy = made.recovered(), made.untouched().layers
    frozen = tuple(replace(healthy[1], name=f"block{number}") for number in range(6))
    norms = tuple(Skipped(f"norm{number}", "BatchNorm2d", "of another kind") for number in range(7))
    missed = Skipped("odd", "Linear", "no clean input reaches it", missed=True)
    text = report.page(replace(result, layers=(*frozen, *result.layers), skipped=(*norms, missed)))
    shown, folded = re.findall(r'<table[^>]*class="layers sortable".*?</table>', text, flags=re.DOTALL)
    assert "block0" not in shown
    assert shown.count("<tr") == 1 + len(result.layers)
    assert folded.count("<tr") == 1 + 6
    assert "<summary>6 layers intact (24 units): never trained, and every weight has its initial bits</summary>" in text
    tables = re.findall(r'<table[^>]*class="skipped".*?</table>', text, flags=re.DOTALL)
    first, whole = (table for table in tables if "<th" in table and "Reason" in table)
    rows = [re.sub("<.*?>", " ", row).split() for row in re.findall(r"<tr.*?</tr>", first, flags=re.DOTALL)[1:]]
    assert [row[0] for row in rows] == ["odd", "7"]
    assert whole.count("<tr") == 1 + 8
