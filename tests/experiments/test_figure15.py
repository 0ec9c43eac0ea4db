"""Figure 15: seven laws on one network, and where they break beta."""

import pytest
import torch

from netpurify.experiments.figures import figure15
from netpurify.experiments.figures.claims.own_statements import half_limit
from netpurify.experiments.figures.trials import many_units, seven_laws
from netpurify.paper import PatchCNN
from tests.experiments.own_figures import check_figure, table

CELL = {"n": 5, "m": 5, "k": 100, "p": 500, "gamma": 0.1, "steps": 500, "filters": 20, "copies": 12}


@pytest.fixture(scope="module")
def rows():
    found = seven_laws.by_seven_laws(CELL, 0, shares=(0.2, 0.65))
    return {(row["layer"], row["law"], row["eps"]): row for row in found}


@pytest.mark.parametrize("law", seven_laws.LAWS)
def test_below_the_limit_no_law_matters(rows, law):
    assert rows["W", law, 0.2]["exact"] == 1.0
    assert rows["beta", law, 0.2]["exact"] == 1.0


def test_beyond_it_laws_of_one_sign_break_beta_and_flipped_signs_do(rows):
    exact = {law: rows["beta", law, 0.65]["exact"] for law in seven_laws.LAWS}
    assert exact["N(0, 1)"] == exact["Cauchy"] == exact["3 bits"] == exact["bit flip"] == 1.0
    assert exact["constant 1"] == exact["sign flip"] == 0.0
    assert exact["N(1, 1)"] <= 0.2


def test_only_what_survives_every_rival_is_exact(rows):
    for (layer, *_), row in rows.items():
        if layer == "beta":
            assert row["exact"] <= min(row["shift"], row["own"])


def test_flipped_low_bits_are_no_alterations(rows):
    assert rows["W", "bit flip", 0.65]["altered"] < 0.35
    assert rows["W", "N(0, 1)", 0.65]["altered"] == pytest.approx(0.65, abs=0.03)
    assert 0.0 < rows["W", "bit flip", 0.65]["missing"] < 0.02


def test_copies_of_beta_are_the_network_itself():
    generator = torch.Generator().manual_seed(0)
    network = PatchCNN(m=2, k=3, p=8, generator=generator)
    inputs = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    many = many_units.copies_of_beta(network, 3)
    assert torch.allclose(many(inputs), network(inputs)[:, None].expand(4, 3))
    few = many_units.first_filters(network, 5)
    assert torch.equal(few.layers[0].weight, network.layers[0].weight[:5])


def test_half_limit_lies_between_points_of_the_grid():
    points = [{"eps": eps, "exact": share} for eps, share in ((0.2, 1.0), (0.4, 0.75), (0.6, 0.25))]
    assert half_limit(points) == pytest.approx(0.5)
    assert half_limit(points[:2]) == 1.0


def test_figure_reads_its_own_table():
    check_figure(figure15, table(figure15, copies=4, filters=5))
