"""Drawings: the same bytes every time, one look for each label, and honest axes."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from netpurify.errors import InputError
from netpurify.findings import Line, PlotPanel
from netpurify.report import draw
from netpurify.report.kit import canvas
from netpurify.report.kit.scales import heights, power_of_ten, scales_of
from netpurify.report.reproduction import looks
from tests.report.made_figures import EPS, LABELS, NAN, WIDTHS, line, panel

pytestmark = pytest.mark.slow

SIX = [panel(width) for width in WIDTHS]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def drawn_texts(monkeypatch):
    """Draws, and gives the texts in the drawing; their shapes are paths, but matplotlib notes each in a comment."""
    monkeypatch.setattr(canvas, "_embeddable", lambda svg, _title, _description: svg)
    return lambda panels, **options: re.findall(r"<!-- (.*?) -->", draw(panels, **options), flags=re.DOTALL)


def paths(svg: str, colour: str) -> list[str]:
    """Outlines of the lines in one colour."""
    found = re.findall(r'<path d="([^"]*)"[^>]*?style="fill: none;([^"]*)"', svg)
    return [outline for outline, style in found if colour.lower() in style]


def one(mean, *, label="a", **options):
    return PlotPanel("title", "x", "y", [line(label, mean, x=tuple(range(len(mean))))], **options)


@pytest.mark.parametrize("columns", [None, 1])
def test_drawing_is_xml_small_and_the_same_bytes_every_time(columns):
    svg = draw(SIX, columns=columns)
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert draw(SIX, columns=columns) == svg
    assert len(svg.encode()) < 200_000


def test_reader_style_changes_nothing():
    plain = draw(SIX[:1])
    with matplotlib.rc_context({"font.size": 30.0, "lines.linewidth": 9.0, "axes.facecolor": "black"}):
        assert draw(SIX[:1]) == plain


def test_no_state_of_matplotlib_is_changed():
    before = dict(matplotlib.rcParams)
    draw(SIX[:2])
    assert dict(matplotlib.rcParams) == before


def test_matplotlib_comes_only_with_a_drawing_and_never_with_pyplot():
    code = (
        "import sys; from netpurify import report; assert 'matplotlib' not in sys.modules\n"
        "from netpurify.findings import PlotPanel\n"
        "report.draw([PlotPanel('t', 'x', 'y', [])]); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"netpurify\[report\]"):
        draw(SIX)


def test_ids_of_two_drawings_never_meet():
    ids = [set(re.findall(r' id="([^"]+)"', draw(SIX, columns=columns))) for columns in (None, 1)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_every_reference_has_its_target():
    svg = draw(SIX)
    targets = re.findall(r' id="([^"]+)"', svg)
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', svg)) == set(targets)
    assert len(targets) == len(set(targets))


def test_screen_readers_hear_title_and_labels():
    root = ElementTree.fromstring(draw(SIX, title='Figure 2: "<error>" & more'))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'Figure 2: "<error>" & more'
    description = root.findtext(f"{SVG}desc") or ""
    assert all(name in description for name in (*LABELS, "width 2048", "relative error"))


def test_legend_names_every_label_once(drawn_texts):
    texts = drawn_texts(SIX)
    assert [texts.count(label) for label in LABELS] == [1] * 5
    assert [texts.count(f"width {width}") for width in WIDTHS] == [1] * 6


def test_shared_axis_is_named_once_in_a_row(drawn_texts):
    assert drawn_texts(SIX).count("relative error") == 2
    assert drawn_texts(SIX, columns=1).count("relative error") == 6


def test_label_looks_the_same_in_every_panel():
    first = PlotPanel("1", "x", "y", [line("a", [1.0] * 8), line("base", [2.0] * 8, baseline=True)])
    second = PlotPanel("2", "x", "y", [line("b", [1.0] * 8), line("a", [3.0] * 8)])
    strokes = looks.strokes_of([first, second])
    assert list(strokes) == ["a", "b", "base"]
    assert [stroke.dashes is None for stroke in strokes.values()] == [True, True, False]
    svg = draw([first, second])
    assert [len(paths(svg, stroke.colour)) for stroke in strokes.values()] == [3, 2, 2]  # the legend's included


def test_fifty_labels_all_look_different():
    lines = [line(f"label {number}", [1.0] * 8) for number in range(50)]
    strokes = looks.strokes_of([PlotPanel("t", "x", "y", lines)])
    assert len(set(strokes.values())) == 50


@pytest.mark.parametrize(
    ("low", "high", "drawn"),
    [
        ([1.0] * 4, [1.0] * 4, 0),  # all trials agree: no ribbon of no width
        ([0.5] * 4, [1.5] * 4, 1),
        ([1.0, 0.5, 0.5, 1.0], [1.0, 1.5, 1.5, 1.0], 1),
        ([0.0, 0.0, 0.5, 0.5], [0.0, 1.5, 1.5, 1.5], 2),  # a bar where a quarter is exact, no wedge from there
    ],
)
def test_bands_are_drawn_where_trials_differ(low, high, drawn, monkeypatch):
    monkeypatch.setattr(canvas, "_embeddable", lambda svg, _title, _description: svg)
    svg = draw([PlotPanel("t", "x", "y", [Line("a", range(4), [1.0] * 4, low, high)], log=True)])
    assert len(re.findall(r'id="(?:FillBetween|LineCollection)\w*"', svg)) == drawn


def test_values_that_are_not_finite_leave_gaps():
    svg = draw([one([1.0, 2.0, NAN, 3.0, 2.0, float("inf"), 1.0, 1.5])])
    outline = max(paths(svg, looks.step_stroke(0, 1).colour), key=len)
    assert outline.count("M") == 3


def test_floor_carries_all_that_is_not_above_it(drawn_texts):
    flat = one([0.0, -1.0, 1e-20, 1e-16, 1e-3, 1.0], log=True)
    (scale,) = scales_of([flat])
    assert heights(flat.lines[0].median, scale).tolist() == [1e-16] * 4 + [1e-3, 1.0]
    assert scale.low < 1e-16
    assert (scale.ticks[0], scale.labels[0]) == (1e-16, "≤10⁻¹⁶")
    assert "≤10⁻¹⁶" in drawn_texts([flat])


def test_axis_above_the_floor_does_not_claim_one():
    (scale,) = scales_of([one([0.5, 0.6, 0.7, 0.6], log=True)])
    assert scale.labels == ["10⁻¹", "1"]
    assert 0.05 < scale.low < 0.1


def test_panels_that_measure_the_same_share_a_scale():
    low, high, other = one([0.1, 0.2]), one([5.0, 9.0]), PlotPanel("t", "x", "z", [line("a", [1.0] * 8)])
    scales = scales_of([low, high, other])
    assert scales[0] is scales[1]
    assert scales[0].low < 0.1 < 9.0 < scales[0].high
    assert scales[2].high < 2.0


def test_fixed_limits_stay_in_sight():
    (scale,) = scales_of([one([0.4, 0.5], limits=(0.0, 1.0))])
    assert -0.1 < scale.low < 0.0
    assert 1.0 < scale.high < 1.1


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (10.0, "10"), (1e-16, "10⁻¹⁶"), (5e-9, "5·10⁻⁹"), (3.0, "3"), (1e12, "10¹²"), (20.0, "2·10")],
)
def test_ticks_read_as_powers_of_ten(value, text):
    assert power_of_ten(value) == text


@pytest.mark.parametrize(
    "mean", [[], [NAN, NAN], [0.0, 0.0], [1e300, 1e200, 1e-300]], ids=["nothing", "nan", "zero", "extreme"]
)
@pytest.mark.parametrize("log", [True, False])
def test_odd_tables_are_drawn(mean, log, drawn_texts):
    texts = drawn_texts([one(mean, log=log)])
    assert ("nothing measured" in texts) == (not np.isfinite(mean).any())


def test_dollars_and_brackets_are_just_text(drawn_texts):
    texts = drawn_texts([one([1.0, 2.0], label="$5 & <b> and $6")])
    assert sum("$5" in text and "$6" in text for text in texts) == 1
    ElementTree.fromstring(draw([one([1.0, 2.0], label="$x_ <b> -- ]]> $")]))


@pytest.mark.parametrize(
    ("panels", "options", "message"),
    [
        ([], {}, "at least one panel"),
        (SIX, {"columns": 0}, "columns must be at least 1; got 0"),
        ([one([1.0], log=True, floor=0.0)], {}, "title: a logarithmic axis must start above zero"),
        ([one([1.0], log=True, limits=(0.0, 1.0))], {}, "title: a logarithmic axis must start above zero"),
        ([PlotPanel("t", "x", "y", [Line("a", EPS, [1.0], [1.0], [1.0])])], {}, r"t, a: .* got \[8, 1, 1, 1\]"),
    ],
)
def test_what_has_no_meaning_is_refused(panels, options, message):
    with pytest.raises(InputError, match=message):
        draw(panels, **options)
