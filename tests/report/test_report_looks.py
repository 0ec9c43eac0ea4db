"""Looks of lines: one for one thing in all figures, and told apart without colours."""

import re
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from netpurify.experiments.figures import FIGURES
from netpurify.experiments.figures.panels import generic_line
from netpurify.findings import Line, PlotPanel, read_table
from netpurify.report.kit import canvas
from netpurify.report.reproduction import plots
from netpurify.report.reproduction.looks import FIXED, LAWS, STEPS, step_stroke, strokes_of, thing_of

RESULTS = Path(__file__).parents[2] / "docs" / "results"
DRAWN = [number for number, figure in FIGURES.items() if (RESULTS / f"{figure.experiment.name}.csv.gz").is_file()]
COLUMN, PAGE = 3.5, 7.0
"""Inches: the width of one column of a journal, and of a page of two."""


@cache
def table(name):
    return read_table(RESULTS / f"{name}.csv.gz")


@cache
def panels_of(number):
    return FIGURES[number].panels(table(FIGURES[number].experiment.name))


def lightness(colour):
    """CIE lightness, from 0 for black to 100 for white: what is left of a colour in a photocopy."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116.0 * luminance ** (1.0 / 3.0) - 16.0


def apart_in_grey(one, other):
    shapes = (one.marker, one.dashes, one.thin) != (other.marker, other.dashes, other.thin)
    return shapes or abs(lightness(one.colour) - lightness(other.colour)) > 8.0


def made(things, *, baseline=False):
    return [PlotPanel("t", "x", "y", [Line(thing, [0.0], [1.0], [1.0], [1.0], baseline) for thing in things])]


def test_fixed_things_differ_in_dashes_alone():
    dashes = [stroke.dashes for stroke in FIXED.values()]
    assert None not in dashes
    assert len(set(dashes)) == len(dashes)


@pytest.mark.parametrize("count", [2, 3, 5, 6, 7])
def test_steps_go_from_light_to_dark_and_differ_in_their_markers(count):
    strokes = [step_stroke(rank, count) for rank in range(count)]
    greys = [lightness(stroke.colour) for stroke in strokes]
    assert all(first - second > 8.0 for first, second in pairwise(greys))
    assert greys[0] < 80.0, "the lightest is to be seen on white"
    assert len({stroke.marker for stroke in strokes}) == count


@pytest.mark.parametrize("ladder", [LAWS, *([f"{name} = {step}" for step in steps] for name, steps in STEPS.items())])
def test_a_step_looks_the_same_whatever_stands_beside_it(ladder):
    everything = strokes_of(made(ladder))
    assert list(strokes_of(made(ladder[::-1]))) == list(ladder)
    for thing in ladder:
        assert strokes_of(made([ladder[-1], thing]))[thing] == everything[thing]


def test_steps_that_no_figure_of_the_paper_has_are_ranked_as_they_come():
    strokes = strokes_of(made(["p = 7", "p = 500", "a"]))
    assert list(strokes) == ["p = 7", "p = 500", "a"]
    assert list(strokes.values()) == [step_stroke(rank, 3) for rank in range(3)]


def test_a_comparison_at_one_step_has_its_colour():
    panel = PlotPanel("t", "x", "y", [*made(["m = 2"])[0].lines, Line("b", [0.0], [1.0], [1.0], [1.0], True, "m = 2")])
    step, compared = strokes_of([panel]).values()
    assert (step.colour, step.dashes) == (compared.colour, None)
    assert compared.dashes
    assert compared.thin


def test_what_is_predicted_has_its_looks():
    lines = [Line("predicted", [0.0], [0.5], [0.4], [0.6], True, "predicted"), generic_line([0.0], [0.7])]
    strokes = strokes_of([PlotPanel("t", "x", "y", lines)])
    assert [strokes[line.label] for line in lines] == [FIXED["predicted"], FIXED["generic"]]
    assert (lines[0].low, lines[0].high) == ([0.4], [0.6])


def test_unknown_comparisons_differ_from_all_that_is_known():
    strokes = strokes_of(made([*FIXED, "a", "b", "c", "d", "e"], baseline=True))
    assert all(apart_in_grey(one, other) for one, other in combinations(strokes.values(), 2))


@pytest.mark.slow
def test_one_thing_looks_the_same_in_all_figures():
    seen = {}
    for number in DRAWN:
        strokes = strokes_of(panels_of(number))
        for line in (line for panel in panels_of(number) for line in panel.lines):
            look = seen.setdefault((thing_of(line), line.baseline), strokes[line.label])
            assert look == strokes[line.label], (number, line.label)
    assert {"contaminated", "initial weights", "l2", "chance", "p = 500", "n = 36"} <= {thing for thing, _ in seen}


@pytest.mark.slow
@pytest.mark.parametrize("number", DRAWN)
def test_labels_of_a_figure_are_few_and_told_apart_in_grey(number):
    strokes = strokes_of(panels_of(number))
    assert len(strokes) <= 12
    things = {(thing_of(line), line.baseline): line.label for panel in panels_of(number) for line in panel.lines}
    assert sorted(things.values()) == sorted(strokes), "two labels for one thing, which look the same"
    for (one, first), (other, second) in combinations(strokes.items(), 2):
        assert apart_in_grey(first, second), (number, one, other)


@pytest.mark.slow
@pytest.mark.parametrize("number", [number for number in DRAWN if number <= 13])
def test_figures_draw_what_was_before_and_least_squares(number):
    for panel in panels_of(number):
        things = {thing_of(line) for line in panel.lines}
        assert {"contaminated", "l2"} <= things or "generic" in things, panel.title


@pytest.mark.slow
@pytest.mark.parametrize("columns", [None, 1])
@pytest.mark.parametrize("number", DRAWN)
def test_text_is_large_enough_in_a_journal(number, columns, monkeypatch):
    """Drawn for its width: all text is at least 7 points, and panels are wider than they are high."""

    def drawn(fill, *, size, **_):
        with matplotlib.rc_context(canvas._SETTINGS):
            figure = Figure(figsize=size, layout=ConstrainedLayoutEngine())
            fill(figure)
            figure.draw_without_rendering()
        return figure

    monkeypatch.setattr(plots, "render", drawn)
    figure = plots.draw(panels_of(number), columns=columns)
    scale = (COLUMN if columns == 1 else PAGE) / figure.get_figwidth()
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
    assert min(sizes) * scale >= 7.0
    for axes in figure.axes:
        box = axes.get_window_extent()
        assert box.width > 1.2 * box.height
        title = axes.title.get_window_extent()
        assert title.x0 > 0.0
        assert title.x1 < figure.bbox.width
    for legend in figure.legends:
        assert legend.get_window_extent().width <= figure.bbox.width


def test_notes_are_shown_and_spoken(monkeypatch):
    panel = PlotPanel("t", "x", "y", made(["a"])[0].lines, note="all p coincide within 2 %")
    assert "All p coincide within 2 %." in plots.describe([panel])
    monkeypatch.setattr(canvas, "_embeddable", lambda svg, _title, _description: svg)
    assert "all p coincide within 2 %" in re.findall(r"<!-- (.*?) -->", plots.draw([panel]), flags=re.DOTALL)
