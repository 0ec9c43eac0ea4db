"""The documentation site builds without a warning, and what it consists of is there and leads somewhere."""

import importlib.util
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import netpurify

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "tools" / "website"
ROOMS = ("lad", "network", "checkpoint", "contaminate", "data", "paper", "report", "experiments", "findings", "engine")
EXTERNAL = ("http:", "https:", "mailto:", "data:", "javascript:")


class Page(HTMLParser):
    """What a page names: places in it, links, pictures, and what a browser would load."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded, self.pictures = set(), [], [], []
        self.text = text
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "img":
            self.pictures.append((given.get("src"), given.get("alt")))
        if tag in ("img", "script", "iframe", "source", "video") and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])


def build(*arguments):
    command = [sys.executable, str(TOOLS / "build.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(once, shared):
    """The folder of the built site; the first worker builds it."""
    code, said = once("site", lambda: build(shared / "site", "--no-tutorials"))
    assert code == 0, said
    return shared / "site"


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): Page(path.read_text()) for path in site.rglob("*.html")}


@pytest.mark.slow
def test_every_link_leads_to_a_place_that_is_there(site, pages):
    lost = set()
    for name, page in pages.items():
        for link in page.links:
            path, _, place = unquote(link).partition("#")
            if link.startswith(EXTERNAL):
                continue
            target = (site / name).parent / path if path else site / name
            inside = target.resolve().relative_to(site.resolve()).as_posix()
            known = target.exists() and (not place or inside not in pages or place in pages[inside].ids)
            lost |= set() if known else {(name, link)}
    assert lost == set()
    assert sum(len(page.links) for page in pages.values()) > 4000


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site, pages):
    loaded = {link for page in pages.values() for link in page.loaded}
    assert loaded
    assert [link for link in loaded if link.startswith(("http:", "https:", "//"))] == []
    styles = "\n".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""", styles) == []


@pytest.mark.slow
def test_pictures_have_words(pages):
    silent = {(name, source) for name, page in pages.items() for source, words in page.pictures if not words}
    assert silent == set()


@pytest.mark.slow
def test_every_public_name_is_described_once(pages):
    named = {f"netpurify.{name}" for name in netpurify.__all__} - {f"netpurify.{room}" for room in ROOMS}
    assert named <= pages["api/netpurify.html"].ids
    described = [name for page in pages.values() for name in page.ids if name.startswith("netpurify.")]
    assert len(described) == len(set(described))
    for room in ROOMS:
        page = pages[f"api/{room}.html"]
        targets = {link.partition("#")[2].rpartition(".")[2] for link in page.links}
        for name in getattr(netpurify, room).__all__:
            assert name in targets, f"netpurify.{room}.{name} is not in the table of its page"


@pytest.mark.slow
def test_types_in_signatures_lead_to_their_descriptions(pages):
    (check,) = re.findall(r'<dt[^>]* id="netpurify\.check">.*?</dt>', pages["api/netpurify.html"].text, flags=re.DOTALL)
    assert 'href="#netpurify.Plan"' in check


@pytest.mark.slow
def test_the_gallery_has_every_figure(pages):
    shown = {Path(source).name for source, _ in pages["gallery.html"].pictures}
    figures = {path.name for path in (ROOT / "docs" / "figures").glob("*.svg")}
    explaining = {
        name for name in figures if name.startswith(("method-", "architecture", "first-minute", "evidence-idea"))
    }
    assert shown == figures - explaining
    assert len(shown) >= 22


@pytest.mark.slow
def test_every_figure_of_the_gallery_has_a_claim_a_verdict_and_a_command(site, pages):
    assert pages["gallery.html"].pictures
    sections = (site.with_name("site-source") / "gallery.md").read_text().split("\n### ")[1:]
    assert len(sections) == len(pages["gallery.html"].pictures)
    for section in sections:
        title = section.partition("\n")[0]
        assert re.search(r"^\| .{20,} \| .+ \| [✓◐✗○] \w", section, flags=re.MULTILINE), title
        assert re.search(r"^Made by `(netpurify|python) [^`]+`\. \[Explained", section, flags=re.MULTILINE), title


@pytest.mark.slow
def test_the_gallery_has_the_verdicts_that_the_reproduction_counts(site, pages):
    assert pages["gallery.html"].pictures
    gallery = (site.with_name("site-source") / "gallery.md").read_text()
    summary = (ROOT / "docs" / "reproduction.md").read_text().split("## Summary")[1].split("\n## ")[0]
    for part, ours in zip(summary.split("What we add"), (False, True), strict=True):
        counted = re.findall(r"^\| (Figure \d+: .*?) \|((?: \d+ \|)+)$", part, flags=re.MULTILINE)
        assert counted
        for title, numbers in counted:
            section = gallery.split(f"### {title}\n")[1].split("\n### ")[0]
            rows = re.findall(
                r"^\| (\(Ours\) )?\[.*\]\(\S*#rule-\d+\) \| .*? \| ([✓◐✗○].*) \|$", section, flags=re.MULTILINE
            )
            verdicts = [words.split(" | ") for own, words in rows if bool(own) == ours]
            signs = [[words[side][:1] for words in verdicts if side < len(words)] for side in (0, 1)]
            found = [signs[side].count(sign) for side in ((0,) if ours else (0, 1)) for sign in "✓◐✗○"]
            assert found == [int(number) for number in re.findall(r"\d+", numbers)], title


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["[lost](nowhere.md)", "[lost](#nowhere)", "![](nowhere.svg)", "# A\n\n### B"])
def test_a_mistake_fails_the_build(tmp_path, mistake):
    (tmp_path / "index.md").write_text(f"# Home\n\n{mistake}\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", str(TOOLS), str(tmp_path), str(tmp_path / "out")]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


@pytest.fixture
def assemble(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    specification = importlib.util.spec_from_file_location("assemble", TOOLS / "assemble.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    yield module
    for name in ("gallery", "benchmark_claims", "reference", "public_names"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("[a](docs/cli.md#scan)", ".", "[a](cli.md#scan)"),
        ("[a](CHANGELOG.md)", ".", "[a](changelog.md)"),
        ("[a](../README.md#install)", "docs", "[a](index.md#install)"),
        ("[a](cli.md)", "docs", "[a](cli.md)"),
        ("[a](#place)", "docs", "[a](#place)"),
        ("[hunt.md](hunt.md#when-it-fails)", "docs", "[](hunt.md#when-it-fails)"),
        ("![a](docs/figures/lad.svg)", ".", "![a](figures/lad.svg)"),
        ("[a](../cli.md#scan) [b](audit.py)", "docs/tutorials", "[a](../cli.md#scan) [b](audit.py)"),
        ("[a](../../README.md)", "docs/tutorials", "[a](../index.md)"),
        ("[a](https://example.org/docs/a.md)", ".", "[a](https://example.org/docs/a.md)"),
        ("```\n[a](docs/cli.md)\n```", ".", "```\n[a](docs/cli.md)\n```"),
        ('<a id="rule-1"></a>**1.**', "docs", "(rule-1)=\n**1.**"),
    ],
)
def test_links_follow_pages_to_the_site(assemble, tmp_path, text, place, expected):
    assert assemble.rewritten(text, tmp_path, place) == expected


def test_other_files_of_the_repository_are_copied(assemble, tmp_path):
    assert assemble.rewritten("[cite](CITATION.cff)", tmp_path, ".") == "[cite](CITATION.cff)"
    assert (tmp_path / "CITATION.cff").read_bytes() == (ROOT / "CITATION.cff").read_bytes()
    with pytest.raises(FileNotFoundError):
        assemble.rewritten("[a](nowhere.txt)", tmp_path, ".")


def test_navigation_has_every_page(assemble, tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    named = set(re.findall(r"^([\w/-]+)$", assemble._contents(tmp_path / "docs"), flags=re.MULTILINE))
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= named
