"""Figure 19: backdoors written into a trained network."""

import pytest

from netpurify.experiments.figures import figure19
from netpurify.experiments.figures.trials import handcrafted
from tests.experiments.own_figures import check_figure, table


@pytest.fixture(scope="module")
def rows():
    (settings,) = [cell for cell in figure19.grid("quick") if cell["training"] == 21]
    edits = ((3, 0.0), (3, 1.0))
    return handcrafted.handcrafted(settings, 0, edits=edits, everything=(0.0,))


def found(rows, **wanted):
    (row,) = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    return row


def test_backdoor_works_until_algorithm_2_takes_it_out_exactly(rows):
    clean = found(rows, method="never attacked")
    attacked = found(rows, method="attacked", erased=0.0)
    after = found(rows, method="l1", clean=handcrafted.CLEAN[0], erased=0.0)
    assert attacked["asr"] > 0.9 > 0.2 > clean["asr"]
    assert after["edited_exact"] == after["W_exact"] == after["beta_exact"] == after["called"] == 1.0
    assert after["largest"] < 1e-10
    assert (after["asr"], after["accuracy"]) == (clean["asr"], clean["accuracy"])


def test_a_whole_filter_does_not_come_back_and_is_not_called_recovered(rows):
    after = found(rows, method="l1", clean=handcrafted.CLEAN[0], erased=1.0)
    assert found(rows, method="attacked", erased=1.0)["edited"] == 1.0
    assert after["edited_exact"] == after["called"] == 0.0
    assert found(rows, method="recover", erased=1.0)["called"] == 0.0


def test_other_ways_are_tried_where_they_are_asked_for(rows):
    assert len([row for row in rows if row["method"] == "l2"]) == 1
    assert {row["clean"] for row in rows if row["method"] == "l1"} == set(handcrafted.CLEAN)


@pytest.mark.parametrize(("trigger", "side", "count"), [("first five pixels", 28, 5), ("3 x 3 pixels", 32, 9)])
def test_trigger_lies_in_the_image(trigger, side, count):
    pixels = handcrafted.pixels_of(trigger, side)
    assert len(set(pixels)) == count
    assert max(pixels) < side * side


@pytest.mark.slow
def test_figure_reads_its_own_table():
    check_figure(figure19, table(figure19))
