"""All pages, for those who read by keyboard, by ear or with weak eyes: wide and narrow, light and dark."""

import html
import json
import re
from functools import cache
from pathlib import Path

import pytest
import torch

import netpurify
from netpurify import report
from tests.report import made_defences, made_hunts, made_purifications
from tests.report.browser import BROWSER, browse
from tests.report.made_figures import result, table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome on the path"),
]
ACCESS = Path(__file__).with_name("access.js").read_text(encoding="utf-8")
# What scripts look at is open: what is folded would not be displayed.
FRAME = """<meta name="color-scheme" content="light dark"><body style="margin:0">
<iframe srcdoc="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>onload = () => {{ const page = document.querySelector("iframe").contentDocument;
for (const one of page.querySelectorAll("details")) one.open = {opened};
const found = (() => {{ {script} }})(); document.body.dataset.found = JSON.stringify(found); }}</script>"""


def scanned():
    generator = torch.Generator().manual_seed(0)
    base = {f"layer{number}.weight": torch.randn(20, 30, generator=generator) for number in range(3)}
    hit = {name: value.clone() for name, value in base.items()} | {"extra": torch.ones(2)}
    hit["layer1.weight"][3, 4] = 9.0
    hit["layer2.weight"] += 0.01 * torch.randn(20, 30, generator=generator)
    return netpurify.scan(hit, base)


def reproduced():
    figures = [result(2, panels=6), result(3, panels=2, rows=table(failed=1)), result(14, panels=1)]
    return report.reproduction_page(figures, about={"Command": "netpurify reproduce"}, digests={"a.csv": "0" * 64})


PAGES = {
    "purification": lambda: report.page(made_purifications.mixed(), plan=made_purifications.planned()),
    "defence": lambda: report.page(made_defences.automatic()),
    "hunt": lambda: report.page(made_hunts.suspect()),
    "unlearning": lambda: report.page(made_hunts.repaired()),
    "scan": lambda: report.page(scanned()),
    "reproduction": reproduced,
}


@cache
def text_of(name):
    return PAGES[name]()


def ask(page, folder, script, *, width=1280, dark=False, opened=True):
    """What a script finds that looks at the page from outside."""
    frame = FRAME.format(page=html.escape(page), width=width, script=script, opened=json.dumps(opened))
    report.save(folder / "frame.html", frame)
    look = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    found = re.search(
        r'data-found="([^"]*)"', browse(folder / "frame.html", "--dump-dom", look, "--window-size=1500,1000")
    )
    assert found is not None, "the script raised"
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_lacks_nothing_for_keyboard_ear_and_weak_eyes(name, width, dark, tmp_path):
    assert ask(text_of(name), tmp_path, ACCESS, width=width, dark=dark) == []


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_sticks_out_at_the_side(name, width, tmp_path):
    assert ask(text_of(name), tmp_path, "return page.documentElement.scrollWidth;", width=width) == width


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("hunt", "--soft: #59626d", "--soft: #a0a6ad", "contrast"),
        ("hunt", 'lang="en"', "", "no language"),
        ("hunt", '<nav aria-label="On this page">', "<nav>", "a landmark without a name"),
        ("hunt", "<h3", "<h5", "skips a level"),
        ("reproduction", ' tabindex="0"', "", "cannot be focused"),
        ("hunt", 'href="#checks"', 'href="#nothing"', "leads nowhere"),
        ("hunt", ' alt="', ' data-alt="', "an image without a text"),
    ],
)
def test_the_checker_finds_what_is_missing(name, old, new, told, tmp_path):
    page = text_of(name)
    assert old in page
    broken = page.replace(old, new).replace("</h3>", "</h5>" if "h5" in new else "</h3>")
    assert any(told in one for one in ask(broken, tmp_path, ACCESS, width=400))


SWITCH = """const figure = page.querySelector("figure.live");
const shown = () => ["log", "linear"].filter((name) => figure.querySelector(`:scope > .${name}`).checkVisibility());
const before = shown(); figure.querySelector('input[value="linear"]').click(); const linear = shown();
figure.querySelector('input[value="log"]').click(); const others = [...page.querySelectorAll("figure.live")].length;
return [before, linear, shown(), others];"""


@pytest.mark.parametrize("width", [400, 1280])
def test_the_vertical_axis_can_be_switched(width, tmp_path):
    assert ask(text_of("reproduction"), tmp_path, SWITCH, width=width) == [["log"], ["linear"], ["log"], 3]


POINT = """const figure = page.querySelector("figure.live");
const svg = [...figure.querySelectorAll("svg")].find((one) => one.checkVisibility());
const line = [...svg.querySelectorAll("[data-rows]")].find((one) => one.dataset.rows.startsWith("8-"));
const use = line.querySelectorAll("use")[3]; const tip = figure.querySelector(".tip"); const said = [tip.hidden];
svg.scrollIntoView();
const at = new page.defaultView.DOMPoint(Number(use.getAttribute("x")), Number(use.getAttribute("y")));
const place = at.matrixTransform(svg.getScreenCTM());
const point = (x) => svg.dispatchEvent(new page.defaultView.PointerEvent("pointermove",
  { clientX: x, clientY: place.y + 3, bubbles: true }));
point(place.x + 2); said.push(tip.textContent, tip.hidden);
const row = [...page.querySelector("table.numbers").tBodies[0].rows][11];
said.push([...row.cells].map((cell) => cell.textContent));
point(-500); said.push(tip.hidden); return said;"""


@pytest.mark.parametrize("width", [400, 1280])
def test_a_marker_tells_the_numbers_of_its_row(width, tmp_path):
    before, told, hidden, row, after = ask(text_of("reproduction"), tmp_path, POINT, width=width)
    panel, label, x, median, low, high = row
    assert (before, hidden, after) == (True, False, True)
    assert told == f"{label} ({panel})x = {x}: median {median}, quartiles {low} to {high}"
    assert (label, x) == ("output layer only", "0.2")
