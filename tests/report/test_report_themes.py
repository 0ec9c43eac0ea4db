"""Drawings in the dark: every colour is seen on the dark page, and drawings outside of pages stay as they are."""

import re

import pytest

from netpurify import report
from netpurify.report.kit import canvas
from netpurify.report.kit.themes import contrast, dark, themed
from netpurify.report.purification.mosaic import mosaic
from netpurify.report.purification.pictures import pictures
from netpurify.report.reproduction import looks
from tests.report import made_purifications as made

PAPER = (20, 23, 27)


def channels(colour):
    return [int(colour.lstrip("#")[place : place + 2], 16) for place in (0, 2, 4)]


@pytest.mark.parametrize(
    "colour",
    [*canvas.COLOURS, canvas.INK, *looks._GREYS, *("#{:02x}{:02x}{:02x}".format(*ramp) for ramp in looks._RAMP)],
)
def test_lines_are_seen_on_a_dark_page(colour):
    assert contrast(channels(dark(colour.lstrip("#").lower())), PAPER) >= 2.9  # rounded to whole channels


def test_paper_becomes_paper_and_ink_becomes_ink():
    assert dark("ffffff") == "#14171b"
    assert dark("000000") == "#e6e8eb"
    assert dark("0072b2") == "#0072b2"  # the same colour in both, where it can be
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21.0)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)  # as the guidelines say


def test_colours_become_variables_with_the_old_value_for_light_screens():
    svg = '<svg role="img"><path d="M 0 0" style="fill: #0072b2; stroke: #ffffff"/><desc>style: #123456</desc></svg>'
    found = themed(svg)
    assert 'style="fill: var(--c0072b2,#0072b2); stroke: var(--cffffff,#ffffff)"' in found
    assert "<desc>style: #123456</desc>" in found
    assert "@media screen and (prefers-color-scheme:dark){:root{--c0072b2:#0072b2;--cffffff:#14171b;}}" in found
    assert themed("<svg></svg>") == "<svg></svg>"


@pytest.mark.slow
def test_every_colour_of_a_page_is_a_variable_and_files_of_drawings_are_not_touched():
    drawn = pictures(made.recovered().layers[0])
    assert all("var(" not in one.svg and "#ffffff" in one.svg for one in drawn)
    text = report.page(made.recovered())
    styles = [style for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
              for style in re.findall(r' style="([^"]*)"', svg)]  # fmt: skip
    assert styles
    assert not [style for style in styles if re.search(r": #", style)]


def test_kept_weights_are_a_veil_and_replaced_ones_are_opaque():
    image = mosaic(made.recovered().layers[1])
    layer = image.layer
    assert layer.shape == (*image.pixels.shape[:2], 4)
    assert (layer[image.marked, 3] == 1.0).all()
    assert (layer[image.marked, :3] == image.pixels[image.marked]).all()
    over_white = layer[..., :3] * layer[..., 3:] + 1.0 - layer[..., 3:]
    assert abs(over_white - image.pixels).max() < 0.02  # on white paper it looks as before
