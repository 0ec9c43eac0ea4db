"""The examples of the README and of the guides do what they say."""

import ast
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from netpurify import checkpoint
from netpurify.experiments import demo
from tests.cli.test_demo_command import COMMANDS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def examples(page):
    """Each block of Python of a page, and what the block of text below it says that is printed; None without one."""
    return re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", page.read_text(), flags=re.DOTALL)


def words_and_numbers(text):
    return NUMBER.sub("#", text), [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def run(page, names, capsys):
    """Executes the blocks of a page one after the other; gives what was printed and what was said to be, by block."""
    found = []
    for code, said in examples(page):
        exec(compile(code, str(page), "exec"), names)
        found.append((capsys.readouterr().out, said))
    return found


@pytest.mark.slow
def test_a_network_is_recovered_and_defended_as_the_readme_says(capsys, tmp_path, monkeypatch, once):
    story = once("recovery of the demo", demo.recovery)
    folder = tmp_path / "netpurify-demo"
    folder.mkdir()
    checkpoint.save_weights(story.contaminated.state_dict(), folder / "contaminated.safetensors")
    np.save(folder / "inputs.npy", story.inputs.numpy())
    np.save(folder / "images.npy", demo.further_images().numpy())
    monkeypatch.chdir(tmp_path)
    assert max(len(code.splitlines()) for code, _ in examples(README)) <= 10
    names = {}
    (recovered, said), (defended, expected) = run(README, names, capsys)
    assert len(names["result"].altered) == sum(int(mask.sum()) for mask in story.hit.values())
    words, numbers = words_and_numbers(recovered)
    wanted, then = words_and_numbers(said)
    assert words == wanted
    # Training on other processors rounds otherwise, which its steps amplify: counts agree, weights to three digits.
    assert numbers == pytest.approx(then, rel=1e-3, abs=1e-3)
    assert words_and_numbers(defended)[0] == words_and_numbers(expected)[0]
    chosen = names["defence"].chosen
    assert chosen.inputs == 60
    assert chosen.differing <= 3, "a first defence that a newcomer sees is a good one"


@pytest.mark.slow
def test_the_explanation_of_the_method_is_what_its_code_gives(capsys):
    found = run(ROOT / "docs" / "method.md", {}, capsys)
    assert len(found) == 4
    assert [printed for printed, _ in found] == [said for _, said in found]


def test_first_commands_of_the_readme_are_those_that_are_run_after_the_demo():
    blocks = re.findall(r"```\n(netpurify.*?)```", README.read_text(), flags=re.DOTALL)
    lines = re.findall(r"^netpurify (.*?)(?: +#.*)?$", "".join(blocks), flags=re.MULTILINE)
    assert lines[:2] == ["demo", " ".join(COMMANDS["scan"])]


def test_the_picture_shows_what_the_text_says():
    (alternative,) = re.findall(r"!\[(.*?)\]", README.read_text())
    picture = (ROOT / "docs" / "figures" / "first-minute.svg").read_text()
    altered, total = re.search(r"([\d,]+) of ([\d,]+) weights were altered", alternative).groups()
    assert f"{altered} of {total} weights were altered" in picture
    assert f"Called altered by netpurify: {altered}, exactly those" in picture


@pytest.mark.slow
def test_the_picture_is_of_the_demo(once):
    story = once("recovery of the demo", demo.recovery)
    picture = (ROOT / "docs" / "figures" / "first-minute.svg").read_text()
    hit, total = (sum(map(count, story.hit.values())) for count in (lambda it: int(it.sum()), lambda it: it.numel()))
    assert f"{hit:,} of {total:,} weights were altered" in picture
    assert f"{len(story.result.altered):,}, exactly those" in picture
    bound = float(re.search(r"off by more than (\S+)<", picture)[1])
    assert story.largest_error < 10 * bound


def rows(text, start):
    """The cells of the table whose head begins with some words."""
    table = re.search(rf"^\| {re.escape(start)}.*?(?=\n\n)", text, flags=re.DOTALL | re.MULTILINE)[0]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_figures_on_defence_stand_on_the_page_of_results():
    page = (ROOT / "docs" / "unlearn-results.md").read_text().split("### ResNet with BatchNorm, CIFAR-10: seed 2")[1]
    published = {cells[0].lower(): cells[2:] for cells in rows(page, "repair | uses")}
    shown = rows(README.read_text(), "repair | healthy")
    assert len(shown) == 3
    for name, *cells in shown:
        assert cells == published[name.split(",")[0].strip("`").lower()], name


def test_figures_on_speed_stand_on_the_page_of_the_solver():
    published = {
        cells[0]: cells for cells in rows((ROOT / "docs" / "lad.md").read_text(), "design, share altered | net")
    }
    shown = rows(README.read_text(), "rows x columns")
    assert len(shown) == 3
    for name, ours, theirs, ratio in shown:
        assert [published[name][place] for place in (1, 4, 5)] == [ours, theirs, ratio], name
    worst = min(published.values(), key=lambda cells: float(cells[5].rstrip("x")))
    assert worst[0] in {name for name, *_ in shown}, "the line in which the advantage is smallest is shown"


@pytest.mark.slow
def test_a_backdoor_of_the_example_no_longer_opens():
    example = runpy.run_path(str(ROOT / "examples" / "backdoor.py"))
    found = example["trial"](example["TRIGGERS"]["patch"])
    assert found.same
    assert found.before.asr > 0.95
    assert found.after.asr < 0.1
    assert found.after.accuracy > found.before.accuracy - 0.02
    assert found.defence.chosen.inputs == 100


def test_the_papers_example_recovers_both_layers(capsys):
    ((printed, _),) = run(ROOT / "docs" / "paper.md", {}, capsys)
    errors = ast.literal_eval(printed)
    assert errors.keys() == {"hidden.0", "output"}
    assert max(errors.values()) < 1e-12


def test_commands_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"`make ([a-z-]+)`", README.read_text()))
    assert {"demo", "docs", "test"} <= commands <= targets
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    assert {"docs", "test", "test-fast", "test-all"} <= set(re.findall(r"`make ([a-z-]+)`", guide)) <= targets


def test_extras_that_are_named_exist():
    named = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[1].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", named, flags=re.MULTILINE)) - {"dev"}
    table = (ROOT / "docs" / "install.md").read_text().split("## Extras")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE)))) == extras
