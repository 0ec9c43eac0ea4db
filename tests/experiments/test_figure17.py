"""Figure 17: patches that overlap, have strides and padding."""

import pytest
import torch
from torch import nn

from netpurify.experiments.figures import figure17
from netpurify.experiments.figures.trials import overlapping
from netpurify.paper import PatchCNN
from tests.experiments.own_figures import check_figure, table

SIGNAL = {"inputs": "normal", "n": 5, "length": 600, "rows": 1, "columns": 200, "padding": 0, "p": 15, "steps": 100}


def test_convolution_is_the_papers_network_on_all_its_patches():
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(3, 1, 9, 8, generator=generator, dtype=torch.float64)
    patches = nn.functional.unfold(images, (4, 3), stride=2, padding=(1, 1)).transpose(1, 2)
    paper = PatchCNN(m=patches.shape[1], k=12, p=7, generator=generator)
    convolution = overlapping.ConvolutionSum((4, 3), 2, (1, 1), 7).load(paper)
    assert torch.allclose(convolution(images), paper(patches.flatten(1)))


def test_overlap_adds_rank_and_lowers_the_limit():
    apart, close = (overlapping.convolution(SIGNAL | {"stride": stride}, 0, shares=(0.5,))[0] for stride in (200, 25))
    assert (apart["m"], apart["rank"], close["m"], close["rank"]) == (3, 15, 17, 85)
    assert apart["exact"] > 0.9 > 0.1 > close["exact"]
    assert max(apart["outside"], close["outside"]) < 1e-10


def test_patches_that_span_everything_tell_nothing():
    (row,) = overlapping.convolution(SIGNAL | {"stride": 10}, 0, shares=(0.1,))
    assert row["rank"] == row["live"] == 200
    assert row["exact"] == row["predicted"] == row["called"] == 0.0


def test_padding_adds_patches():
    (row,) = overlapping.convolution(SIGNAL | {"stride": 100, "padding": 100}, 0, shares=(0.2,))
    assert (row["m"], row["rank"], row["exact"]) == (7, 35, 1.0)


@pytest.mark.slow
def test_figure_reads_its_own_table():
    check_figure(figure17, table(figure17))
