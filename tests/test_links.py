"""Links between pages lead somewhere on a code host, and those of the README on a package index too."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def places(page):
    """The anchors that a code host gives to headings, and those that the page has itself."""
    titles = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    named = re.findall(r'<a id="([^"]+)">', page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | set(named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_on_a_code_host(page):
    lost = []
    for link in LINK.findall(prose(page)):
        path, _, place = link.partition("#")
        if link.startswith(("http:", "https:")):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (place and target.suffix == ".md" and place not in places(target)):
            lost.append(link)
    assert lost == []


@pytest.fixture(scope="module")
def standing_alone():
    path = ROOT / "tools" / "package_readme.py"
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.standing_alone


def test_with_an_address_links_of_the_readme_are_absolute(standing_alone):
    shown = standing_alone((ROOT / "README.md").read_text(), "https://example.org/us/netpurify/")
    links = LINK.findall(shown)
    assert "https://example.org/us/netpurify/blob/main/docs/network.md" not in links, "the README has no such link"
    assert "https://example.org/us/netpurify/blob/main/docs/your-network.md" in links
    assert "https://example.org/us/netpurify/raw/main/docs/figures/first-minute.svg" in links
    assert all(link.startswith("https://") for link in links)


def test_without_an_address_the_readme_has_no_links_that_lead_nowhere(standing_alone):
    text = (ROOT / "README.md").read_text()
    shown = standing_alone(text, None)
    assert all(link.startswith("https://") for link in LINK.findall(shown))
    assert "what netpurify does with your network." in shown, "the words of a link stay"
    assert "Four rows of kernels of a small CNN" in shown, "the picture becomes its description"
    codes = [re.findall(r"^```.*?^```$", one, flags=re.DOTALL | re.MULTILINE) for one in (text, shown)]
    assert codes[0] == codes[1], "code is left as it is"
