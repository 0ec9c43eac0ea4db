"""The page in a real browser, where one is installed."""

import html
import re

import pytest
from PIL import Image

from netpurify import report
from netpurify.report.reproduction.looks import FIXED
from tests.report.browser import BROWSER, browse
from tests.report.made_figures import result, table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome on the path"),
]
# Headless windows are at least 500 pixels wide; a frame is as narrow as a phone. srcdoc, so that it may be measured.
FRAME = """<body style="margin:0"><iframe srcdoc="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>onload = () => {{ const root = document.querySelector("iframe").contentDocument.documentElement;
document.body.dataset.found = root.scrollWidth; }}</script>"""


@pytest.fixture(scope="module")
def page():
    results = [result(2, panels=6), result(3, panels=2, rows=table(failed=1)), result(4, "unbroken" * 20, panels=1)]
    return report.reproduction_page(results, about={"Command": "netpurify reproduce --mode full"})


@pytest.mark.parametrize("width", [1400, 400])
def test_page_is_drawn(page, width, tmp_path):
    report.save(tmp_path / "page.html", page)
    shot = tmp_path / "page.png"
    browse(tmp_path / "page.html", f"--screenshot={shot}", f"--window-size={width},12000")
    with Image.open(shot) as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or []}
    assert {tuple(bytes.fromhex(FIXED[thing].colour[1:])) for thing in ("contaminated", "initial weights")} <= colours


@pytest.mark.parametrize("width", [360, 700, 1000, 1400])
def test_nothing_sticks_out_at_the_side(page, width, tmp_path):
    report.save(tmp_path / "frame.html", FRAME.format(page=html.escape(page), width=width))
    found = re.search(r'data-found="(\d+)"', browse(tmp_path / "frame.html", "--dump-dom", "--window-size=1500,1000"))
    assert found is not None
    assert int(found[1]) == width
