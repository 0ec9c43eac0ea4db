"""The settings tables: the numbers of the paper's own words are those of the grids, and nothing is left unsaid."""

import re

import pytest

from netpurify.cli import options
from netpurify.experiments.figures import FIGURES
from netpurify.experiments.figures.settings.quotations import NOT_SAID, SAID
from netpurify.experiments.figures.settings.table import NAMES, main_cells, units_of
from netpurify.experiments.figures.trials import altered_weights

PAPERS = [number for number in FIGURES if not FIGURES[number].ours]
WORDS = {"zero": 0, "one": 1, "two": 2, "three": 3, "five": 5}


def numbers(number, name):
    """The whole numbers of a quotation, also those written as words; the name of a letter or a law is none."""
    text = SAID[number][name].replace("l2", "").replace("CIFAR-10", "")
    found = re.findall(r"\d+|" + "|".join(WORDS), text)
    return [WORDS[word] if word in WORDS else int(word) for word in found]


def grid(number):
    return main_cells(FIGURES[number].experiment.grid("full"))


def values(number, column):
    return sorted({cell[column] for cell in grid(number)})


def row(number, name):
    (found,) = [one for one in FIGURES[number].settings if one.name == NAMES[name]]
    return found


@pytest.mark.parametrize(("number", "column"), [
    (2, "n"), (2, "m"), (2, "k"), (3, "n"), (3, "m"), (3, "k"), (4, "n"), (4, "k"), (4, "p"),
    (6, "training"), (7, "training"), (8, "training"), (9, "training"), (10, "training"), (11, "training"),
    (12, "training"), (13, "training"), (8, "layers"), (9, "layers"),
])  # fmt: skip
def test_sizes_are_those_of_the_text(number, column):
    said = [value for value in numbers(number, column) if column != "layers" or value < 10]
    assert sorted(set(said)) == values(number, column)
    assert row(number, column).here == ", ".join(map(str, values(number, column)))


def test_figure_5_has_the_ways_of_cutting_and_both_numbers_of_images():
    pairs = [tuple(pair) for pair in zip(*[iter(numbers(5, "m and k"))] * 2, strict=True)]
    assert pairs == sorted({(cell["m"], cell["k"]) for cell in grid(5)})
    assert numbers(5, "training") == values(5, "training") == [21, 99]
    assert "21" in row(5, "training").why
    assert "99" in row(5, "training").why


@pytest.mark.parametrize("number", PAPERS)
def test_trials_are_those_of_the_text(number):
    assert numbers(number, "trials") == [FIGURES[number].experiment.trials["full"]]


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7])
def test_the_noise_is_that_of_the_text(number):
    assert numbers(number, "law") == [1, 1]
    assert row(number, "law").here.startswith("N(1, 1)")
    law = altered_weights.LAW
    assert (law.mean, law.sd) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("number", "repair"), [(8, {9, 99}), (9, {99}), (10, {36}), (11, {36}), (12, {69}), (13, {69})]
)
def test_repair_sizes_are_those_of_the_text(number, repair):
    here = {int(text) for text in row(number, "counts").here.split(", ")}
    assert repair <= set(numbers(number, "counts"))
    assert repair <= here
    if number == 9:
        assert 99 // 3 in here  # "one third of the trained data"


@pytest.mark.parametrize("number", [number for number in PAPERS if number > 7])
def test_the_attack_is_that_of_the_text(number):
    assert 5 in numbers(number, "trigger")
    assert row(number, "trigger").here.startswith("pixels 1 to 5 of the first row")
    assert row(number, "target").here == ("0 (airplane)" if number in (9, 12, 13) else "0 (digit 0)")
    if number in (8, 10, 11):
        assert numbers(number, "target")[0] == 0
    low, high = (value / 100 for value in numbers(number, "ratio"))
    assert {low, high} <= set(values(number, "ratio"))
    assert row(number, "loss").here == "softmax cross entropy"


def test_depths_are_those_of_the_text():
    assert set(numbers(10, "layers")) <= set(values(10, "layers"))
    assert max(numbers(12, "layers")) == max(values(12, "layers"))


@pytest.mark.parametrize("number", PAPERS)
def test_every_row_says_something_about_what_the_paper_leaves_open(number):
    rows = FIGURES[number].settings
    assert len({one.name for one in rows}) == len(rows) > 10
    assert all(one.paper and one.here for one in rows)
    unsaid = [one.name for one in rows if one.paper == NOT_SAID and not one.why]
    assert unsaid == [], "a choice that the paper leaves open has a reason"
    assert {NAMES[name] for name in SAID[number]} <= {one.name for one in rows}


def test_the_command_knows_the_figures_that_there_are():
    assert tuple(sorted(FIGURES)) == options.FIGURES
    assert [number for number in options.FIGURES if number > options.LAST_OF_THE_PAPER] == [
        number for number in FIGURES if FIGURES[number].ours
    ]


def test_units_of_a_purification():
    assert units_of({"p": 300, "eps": 0.1}) == 301
    assert units_of({"p": 300, "layers": 3, "ratio": 0.3}) == 903
