"""The page of a purification in a real browser, where one is installed: it runs, sorts, fits, and turns dark."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from netpurify import report
from tests.report import made_defences, made_hunts
from tests.report import made_purifications as made
from tests.report.browser import BROWSER, browse, logged

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome on the path"),
]
# The page is in a frame, as narrow as a phone if wanted, and its surroundings do what a reader would.
FRAME = """<meta name="color-scheme" content="light dark"><body style="margin:0">
<iframe srcdoc="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>onload = () => {{ const page = document.querySelector("iframe").contentDocument;
const found = (() => {{ {script} }})(); document.body.dataset.found = JSON.stringify(found); }}</script>"""
COLUMN = """const column = (kind, place) => [...page.querySelectorAll(`table.${kind} tbody tr`)].map(
  (row) => row.cells[place].textContent);
const click = (kind, place) => { const head = page.querySelectorAll(`table.${kind} thead th`)[place];
  head.querySelector("button").click(); return head.getAttribute("aria-sort"); };
"""


def ask(page: str, folder: Path, script: str, *, width: int = 1200):
    """What a script finds that looks at the page from outside."""
    report.save(folder / "frame.html", FRAME.format(page=html.escape(page), width=width, script=script))
    found = re.search(r'data-found="([^"]*)"', browse(folder / "frame.html", "--dump-dom", "--window-size=1500,1000"))
    assert found is not None
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def page():
    return report.page(made.mixed(), plan=made.planned(), files={"Weights": "unbroken" * 30})


def test_console_stays_silent(page, tmp_path):
    report.save(tmp_path / "page.html", page)
    assert logged(tmp_path / "page.html") == []


def test_hostile_names_run_nothing(tmp_path):
    report.save(tmp_path / "page.html", report.page(made.hostile()))
    assert logged(tmp_path / "page.html") == []
    title = "</title><script>console.error('broken out')</script>"
    report.save(tmp_path / "page.html", report.page(made.hostile(), title=title, command=title))
    assert logged(tmp_path / "page.html") == []


def test_foreign_scripts_are_refused_even_if_they_were_in_the_page(page, tmp_path):
    report.save(tmp_path / "page.html", page.replace("</main>", "</main><script>document.title = 'run'</script>"))
    (line,) = logged(tmp_path / "page.html")
    assert "Content Security Policy" in line
    assert "<title>run" not in browse(tmp_path / "page.html", "--dump-dom")


def test_columns_sort_both_ways(page, tmp_path):
    script = COLUMN + (
        "const said = [click('altered', 2)]; const up = column('altered', 2); said.push(click('altered', 2));"
        "const down = column('altered', 2); click('altered', 1); return [said, up, down, column('altered', 1)];"
    )
    said, up, down, places = ask(page, tmp_path, script)
    assert said == ["ascending", "descending"]
    assert (up[0], up[-1], down[-1]) == ("-inf", "nan", "nan")
    numbers = [float(text) for text in up[:-1]]
    assert numbers == sorted(numbers)
    assert [float(text) for text in down[:-1]] == numbers[::-1]
    assert places == ["0, 0, 1, 2", "1, 3", "3, 0, 0, 0", "5, 0, 2, 2"]


def test_numbers_with_units_sort_by_what_they_are(tmp_path):
    result = made.deep(12)
    layers = tuple(replace(layer, seconds=(place * 7 % 12) * 9.5) for place, layer in enumerate(result.layers))
    page = report.page(replace(result, layers=layers))
    script = COLUMN + "const head = page.querySelectorAll('table.layers thead th').length - 1; click('layers', head);"
    times, names = ask(page, tmp_path, script + "return [column('layers', head), column('layers', 0)];")
    assert times[:3] == ["0 ms", "9.50 s", "19 s"]
    assert times[-1] == "1.7 min"
    assert names[1] == "block7.conv"


def test_headers_are_reached_from_the_keyboard(page, tmp_path):
    script = COLUMN + (
        "page.querySelector('#units details').open = true;"
        "const button = page.querySelector('table.units thead button');"
        "button.focus(); const focused = page.activeElement === button; button.click();"
        "return [focused, button.type, column('units', 0)[0], column('units', 0).at(-1)];"
    )
    assert ask(page, tmp_path, script) == [True, "button", "conv", "head"]


@pytest.mark.parametrize("width", [360, 390, 700, 1000, 1280])
def test_nothing_sticks_out_at_the_side(page, width, tmp_path):
    script = (
        "for (const one of page.querySelectorAll('details')) one.open = true; return page.documentElement.scrollWidth;"
    )
    assert ask(page, tmp_path, script, width=width) == width


@pytest.mark.parametrize(("scheme", "paper"), [(0, (20, 23, 27)), (1, (255, 255, 255))], ids=["dark", "light"])
def test_page_follows_the_reader_into_the_dark(page, scheme, paper, tmp_path):
    report.save(tmp_path / "page.html", page)
    shot = tmp_path / "page.png"
    look = (f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1280,2600")
    browse(tmp_path / "page.html", f"--screenshot={shot}", *look)
    with Image.open(shot) as image:
        counted = {colour: times for times, colour in image.convert("RGB").getcolors(1 << 24) or []}
    assert max(counted, key=lambda colour: counted[colour]) == paper
    assert (213, 94, 0) in counted  # an approximate weight in the picture


def test_page_of_a_defence_is_silent_and_fits_a_phone(tmp_path):
    page = report.page(made_defences.automatic(), files={"Weights": "unbroken" * 30})
    report.save(tmp_path / "page.html", page)
    assert logged(tmp_path / "page.html") == []
    assert ask(page, tmp_path, "return page.documentElement.scrollWidth;", width=360) == 360


@pytest.mark.parametrize("make", [made_hunts.several, made_hunts.repaired, made_hunts.hostile])
def test_pages_of_hunts_are_silent_and_fit_a_phone(make, tmp_path):
    page = report.page(make(), files={"Weights": "unbroken" * 30})
    report.save(tmp_path / "page.html", page)
    assert logged(tmp_path / "page.html") == []
    script = (
        "const shown = [...page.querySelectorAll('img')].map((one) => one.complete && one.naturalWidth > 0);"
        "return [page.documentElement.scrollWidth, shown.length > 0 && shown.every(Boolean)];"
    )
    assert ask(page, tmp_path, script, width=360) == [360, True]


def test_altered_weights_can_be_searched(page, tmp_path):
    script = (
        "const box = page.querySelector('#altered input[type=search]');"
        "const shown = () => [...page.querySelectorAll('table.altered tbody tr')].filter("
        "  (row) => getComputedStyle(row).display !== 'none').map((row) => row.cells[1].textContent);"
        "const find = (words) => { box.value = words; box.dispatchEvent(new Event('input')); return shown(); };"
        "const all = shown().length; const heads = find('HEAD'); const both = find('conv nan');"
        "const said = page.querySelector('#altered output').textContent; find('');"
        "return [all, heads, both, said, find('nothing like this').length, find('').length];"
    )
    assert ask(page, tmp_path, script) == [4, ["1, 3"], ["0, 0, 1, 2"], "1 of 4", 0, 4]


def test_plots_are_as_dark_as_the_page(page, tmp_path):
    report.save(tmp_path / "page.html", page)
    shot = tmp_path / "page.png"
    look = ("--blink-settings=preferredColorScheme=0", "--window-size=1280,2600")
    browse(tmp_path / "page.html", f"--screenshot={shot}", *look)
    with Image.open(shot) as image:
        counted = {colour: times for times, colour in image.convert("RGB").getcolors(1 << 24) or []}
    assert counted.get((255, 255, 255), 0) < 1000
