"""Every tutorial runs, and what its text says is so; the tool that writes them puts output behind its cell.

A text has no number that the output shows. What it says in words ("no weight was called altered that is not") is
asserted here from the variables of the executed script.
"""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from netpurify import lad
from netpurify.contaminate import measure

ROOT = Path(__file__).parents[1]
TOOL = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "tutorials.py")))
TEXT = {name: (ROOT / "docs" / "tutorials" / f"{name}.py").read_text(encoding="utf-8") for name in TOOL.NAMES}


def run(name):
    """Execute a tutorial, and check what holds for all of them."""
    done = TOOL.execute(name)
    assert done.pictures, "a tutorial shows at least one picture"
    assert all(len(content) > 5_000 for content in done.pictures.values())
    named = re.findall(r"!\[([^\]]{20,})\]\(([^)]+)\)", done.markdown)
    assert {file for _, file in named} == done.pictures.keys()
    assert "```text" in done.markdown
    return done.names, done.printed


def rates(names, network):
    return measure(network, names["images"], names["test"].labels, trigger=names["trigger"], target=0)


@pytest.mark.slow
def test_flipped_bits():
    names, printed = run("flipped-bits")
    masks, named = names["masks"], names["named"]
    assert names["plan"].repairable
    assert len(names["result"].altered) == sum(int(mask.sum()) for mask in named.values()) > 100
    assert all(not (named[name] & ~masks[name]).any() for name in masks), "no weight was called altered that is not"
    assert names["false_alarms"] == 0
    assert 0.0 < names["sizes"].max() <= 5.0 * names["head"].noise_floor.max(), "a flip that was not named is rounding"
    assert names["errors"].max() < 1e-6
    assert names["check"].sound
    trained, broken, repaired = (
        names["accuracy"](network, names["test_pixels"], names["test"].labels)
        for network in (names["trained"], names["broken"], names["result"].model)
    )
    assert broken < trained - 0.2
    assert repaired == trained
    backbone = {name: value for name, value in names["truth"].items() if name.startswith("0.")}
    assert all(names["repaired"][name].equal(value) for name, value in backbone.items()), "set back to the bit"
    assert "falsely named: 0" in printed


@pytest.mark.slow
def test_backdoored():
    names, _ = run("backdoored")
    assert names["hunts"]["A"].goals == ()
    assert names["hunts"]["B"].goals == (0,)
    assert names["unlearnt"].before.goals == (0,)
    assert not names["unlearnt"].still_found
    assert names["unlearnt"].chosen.inputs < len(names["clean"]), "some of the images are held out"
    before, unlearnt, defended = names["measured"]
    healthy = rates(names, names["healthy"])
    assert before.asr > 0.95
    assert before.accuracy > healthy.accuracy - 0.02, "on clean images as good as any other"
    assert unlearnt.asr < 0.05
    assert defended.asr < 0.1
    assert unlearnt.accuracy > before.accuracy - 0.02
    assert names["defended"].bound > names["unlearnt"].bound, "to defend costs more accuracy"
    assert defended.accuracy <= unlearnt.accuracy


@pytest.mark.slow
def test_reproduce():
    names, _ = run("reproduce")
    claims = [str(finding.by_measure) for finding in names["result"].findings if not finding.ours]
    assert claims[0] == "holds", "larger inputs recover more"
    (own,) = [finding for finding in names["result"].findings if finding.ours]
    assert "0.02" in own.rule.measure, "the last statement asks for agreement to 0.02"
    assert {row["n"] for row in names["more"]} == {2 * names["settings"]["n"]}
    assert max(names["errors"]) < 5.0, "the points lie on the lines as closely as so few filters can show"
    exact = {
        len(table): np.mean([row["W_exact"] for row in names["findings"].select(table, p=50, method="l1", k=100)])
        for table in (names["rows"], names["more"])
    }
    assert exact[len(names["more"])] < exact[len(names["rows"])] - 0.1, "twice the samples bear fewer alterations"
    assert len(names["rows"]) != len(names["more"])


@pytest.mark.slow
def test_regressions():
    names, printed = run("regressions")
    assert names["median"].count(lad.Status.OPTIMAL) == names["genes"] == 10_000
    assert names["errors"]["median"].max() < names["errors"]["least squares"].max() / 3, "least squares suffers"
    assert names["certificate"].certified.all()
    middles = [np.median(names["effects"][tau]) for tau in names["taus"]]
    assert middles == sorted(middles), "the effect grows with the quantile"
    assert np.allclose(middles, list(names["implied"].values()), atol=0.25)
    errors = [np.abs(names[fit].coefficients - names["truth"]).mean() for fit in ("median", "weighted")]
    assert errors[1] < errors[0], "weights make the errors smaller"
    assert abs(names["below"].mean() - 0.9) < 0.01
    assert "the same coefficients as lad.solve: True" in printed
    assert names["each"] < names["peers"] / 10


@pytest.mark.slow
def test_audit():
    names, printed = run("audit")
    assert (names["well"], names["found"], names["refused"]) == (0, 1, 2)
    results = names["log"]["runs"][0]["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [("altered-tensor", "error")]
    changes = [
        abs(float(line.split()[-3]) - float(line.split()[-2]))
        for line in printed.splitlines()
        if re.match(r"backbone\.3\.weight\[", line)
    ]
    assert len(changes) >= 3
    assert changes == sorted(changes, reverse=True), "the largest changes first"
    assert names["named"].equal(names["hit"].altered["backbone.3.weight"].flatten())
    assert int(names["named"].sum()) == names["altered"] == int(re.search(r"altered +(\d+)", printed)[1])
    assert "compared only" in printed
    assert "\nthis text would be printed" not in printed, "nothing in the hostile file is run"


def test_the_pipelines_of_the_audit_are_those_of_the_repository():
    blocks = re.findall(r"^# ```yaml\n(.*?)^# ```", TEXT["audit"], flags=re.DOTALL | re.MULTILINE)
    action, hook = (yaml.safe_load(re.sub(r"^# ?", "", block, flags=re.MULTILINE)) for block in blocks)
    (scan,) = [step for step in action["jobs"]["scan"]["steps"] if "netpurify" in step["uses"]]
    known = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert scan["with"].keys() <= known.keys()
    assert {name for name, one in known.items() if one.get("required")} <= scan["with"].keys()
    assert "fail-on" in known
    (used,), (ours,) = hook["repos"][0]["hooks"], yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert used["id"] == ours["id"]


@pytest.mark.parametrize("name", TOOL.NAMES)
def test_every_tutorial_asks_answers_and_says_what_to_do(name):
    text = "\n".join(cell.text for cell in TOOL.cells_of(TEXT[name]) if cell.is_text)
    assert text.startswith("# ")
    for part in ("**The question.**", "**The answer.**", "## What to do with your own model"):
        assert text.count(part) == 1
    assert text.index("## What to do") == max(place.start() for place in re.finditer("^## ", text, flags=re.MULTILINE))
    for file, anchor in re.findall(r"\]\((?!https?:)([\w./-]+\.(?:md|py))(?:#([\w-]+))?\)", text):
        target = ROOT / "docs" / "tutorials" / file
        assert target.is_file(), file
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, f"{file}#{anchor}"


def test_the_index_has_every_tutorial_and_leads_to_pages(tmp_path):
    TOOL.write_index(tmp_path)
    text = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"\]\(([\w-]+)\.md\)", text)) == TOOL.NAMES
    assert sorted(path.stem for path in (ROOT / "docs" / "tutorials").glob("*.py")) == sorted(TOOL.NAMES)


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool with tutorials of a test's own: ``tool(text)`` is a tutorial's text, ``run`` writes it."""
    own = runpy.run_path(str(ROOT / "tools" / "tutorials.py"))
    sources, folder = tmp_path / "sources", tmp_path / "pages"
    sources.mkdir()
    (sources / "index.md").write_text("[one](one.py#part)")
    monkeypatch.setitem(own["main"].__globals__, "SOURCES", sources)
    monkeypatch.setitem(own["main"].__globals__, "NAMES", ("one",))

    def run_tool(text):
        (sources / "one.py").write_text(text)
        return own["main"]([str(folder)]), folder

    return run_tool


def test_the_tool_puts_output_and_pictures_behind_their_cells(tool, tmp_path):
    code, folder = tool(
        "# %% [markdown]\n# # Title\n#\n# see [it](one.py)\n\n# %%\nfrom pathlib import Path\n\nprint('out', 6 * 7)\n"
        "Path('own.svg').write_text('<svg/>')\n\n# %% [markdown]\n# ![mine](own.svg)\n\n# %% A caption\n"
        "from matplotlib import pyplot as plt\n\nplt.plot([0, 1])\n"
    )
    assert code == 0
    page = (folder / "one.md").read_text()
    assert page.startswith("# Title\n\nsee [it](one.md)\n\n```python\nfrom pathlib import Path")
    order = ["```python\nfrom pathlib", "```text\nout 42\n```", "![mine](one-own.svg)", "![A caption](one-2.png)"]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert (folder / "one-own.svg").read_text() == "<svg/>"
    assert (folder / "one-2.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "index.md").read_text() == "[one](one.md#part)"
    assert not (tmp_path / "own.svg").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("print(1)\n", "line 1: expected a cell"),
        ("# %% [markdown]\n# text\nprint(1)\n", "line 3: expected a comment in a text"),
        ("# %%\nx = 1\n\n1 / 0\n", "line 4, in <module>"),
        ("# %% [markdown]\n# ![a](lost.svg)\n", "no cell wrote the picture lost.svg"),
        ("# %%\nfrom matplotlib import pyplot as plt\n\nplt.plot([0, 1])\n", "needs a title"),
    ],
)
def test_the_tool_says_what_is_wrong_and_where(tool, capsys, text, told):
    code, folder = tool(text)
    assert code == 1
    assert told in capsys.readouterr().err
    assert not (folder / "one.md").exists()
