"""Second opinions: indicators on networks whose answers are known by hand, and the section of the page."""

import copy
import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from netpurify.experiments.studies.unlearn import opinions, opinions_page
from netpurify.experiments.studies.unlearn.opinions import INDICATORS


@dataclass(frozen=True)
class Added:
    """Stands in for a found trigger: adds a pattern to inputs."""

    pattern: torch.Tensor

    def on(self, inputs):
        return inputs + self.pattern


def linear(rows, bias=None):
    """A network whose scores are a matrix times the pixels of images [n, 1, 4, 4]."""
    rows = torch.as_tensor(rows, dtype=torch.float32)
    network = nn.Sequential(nn.Flatten(), nn.Linear(rows.shape[1], len(rows)))
    with torch.no_grad():
        network[1].weight.copy_(rows)
        network[1].bias.copy_(torch.zeros(len(rows)) if bias is None else torch.tensor(bias))
    return network.eval()


def grey(count=40, spread=0.02):
    generator = torch.Generator().manual_seed(0)
    return 0.5 + spread * torch.randn(count, 1, 4, 4, generator=generator)


def test_a_network_part_of_the_way_lies_between_the_two():
    start, end = linear(torch.zeros(2, 16)), linear(torch.ones(2, 16))
    kept = copy.deepcopy(start.state_dict())
    made = opinions.part_of_the_way(start, end, 0.25)
    assert torch.equal(made[1].weight, torch.full((2, 16), 0.25))
    assert torch.equal(opinions.part_of_the_way(start, end, 1.0)[1].weight, end[1].weight)
    assert all(torch.equal(value, kept[name]) for name, value in start.state_dict().items())


def test_the_pull_is_the_rise_of_the_log_odds_under_the_strongest_change():
    weights = torch.zeros(3, 16)
    weights[2, 0] = 2.0
    network, images = linear(weights, [0.0, 1e-6, 0.0]), torch.zeros(5, 1, 4, 4)  # of class 1, which no test asks for
    weak, strong = images.clone(), images.clone()
    weak[:, :, 0, 0], strong[:, :, 0, 0] = 0.5, 1.5
    assert opinions.pull(network, images, [weak, strong], 2) == pytest.approx(3.0)
    # log-odds of class 0 from -log(2) to 0 - log(1 + e^3)
    assert opinions.pull(network, images, [strong], 0) == pytest.approx(math.log(2.0) - math.log1p(math.exp(3.0)))


def test_changes_of_weights_and_classes_are_shares():
    start, end = linear(torch.ones(2, 16)), linear(1.5 * torch.ones(2, 16))
    assert opinions.change(start, end) == pytest.approx(0.5)
    other = linear(torch.ones(2, 16), [0.0, 1.0])
    assert opinions.disagreement(start, start, grey()) == 0.0
    assert opinions.disagreement(start, other, grey()) == 1.0


def test_a_change_along_one_direction_is_told_from_one_that_differs_between_images():
    network, images = linear(torch.zeros(2, 16)), grey()
    assert opinions.direction(network, images, [images + 0.1]) == pytest.approx(1.0)
    apart = images + 0.1 * torch.eye(16)[torch.arange(len(images)) % 16].view(-1, 1, 4, 4)
    assert opinions.direction(network, images, [apart]) < 0.1
    assert opinions.direction(network, images, [images]) == 0.0, "nothing is changed"
    assert not network[1]._forward_pre_hooks


@pytest.mark.parametrize("needed", [0.5, 1.0])
def test_the_smallest_pattern_has_the_norm_that_geometry_gives(needed):
    # Class 1 wins once w.x exceeds b; from x = 0.5 the nearest such point is (b - w.x) / |w| away.
    normal = torch.full((16,), 0.25)
    network = linear([torch.zeros(16).tolist(), normal.tolist()], [0.0, -(0.5 * 16 * 0.25 + needed)])
    assert opinions.smallest_size(network, grey(spread=1e-4), 1) == pytest.approx(needed, rel=0.2)


def test_a_class_that_is_easily_reached_has_a_small_relative_size():
    generator = torch.Generator().manual_seed(1)
    rows = torch.linalg.qr(torch.randn(16, 16, generator=generator)).Q[:6]
    # Grey images have these scores, so that the boundary of class 4 is nearer than all others.
    wanted = torch.tensor([0.0, -2.0, -2.0, -2.0, -0.3, -2.0])
    network = linear(rows, (wanted - rows @ torch.full((16,), 0.5)).tolist())
    images = grey(spread=1e-4)
    assert network(images).argmax(dim=1).unique().tolist() == [0]
    assert opinions.relative_size(network, images, 4) < 0.5
    assert opinions.relative_size(network, images, 2) > 0.9


def test_relearning_leaves_the_network_as_it_was_and_sees_a_trigger_that_works():
    weights = torch.zeros(2, 16)
    weights[1, 0] = 10.0
    network, images = linear(weights, [1.0, 0.0]), torch.zeros(20, 1, 4, 4)
    kept = copy.deepcopy(network.state_dict())
    pattern = torch.zeros(1, 1, 4, 4)
    pattern[..., 0, 0] = 1.0
    assert opinions.relearning(network, images, [Added(pattern)], 1) == 1.0
    assert opinions.relearning(network, images, [Added(0.0 * pattern)], 1) == 0.0
    assert all(torch.equal(value, kept[name]) for name, value in network.state_dict().items())


def test_the_area_counts_pairs_and_ties_half():
    assert opinions_page.area([3.0, 2.0], [1.0, 2.0]) == 3.5 / 4
    assert opinions_page.area([1.0], [2.0, 3.0]) == 0.0
    assert opinions_page.area([], [1.0]) is None


def row(asr, value, **more):
    given = {"network": "mnist_cnn", "attack": "patch", "seed": 1, "repair": "unlearn", "way": 0.5}
    given |= {"floor": 0.01, "asr": asr, "found_after": False} | dict.fromkeys(INDICATORS, value)
    return given | {"size": -value} | more


def test_the_section_sets_indicators_beside_what_is_left():
    rows = [
        row(0.9, 3.0, found_after=True), row(0.5, 2.0), row(0.02, 1.0), row(0.01, 2.5, way=1.0),
        row(0.99, 9.0, way=0.0, repair="nothing"), row(None, 0.7, attack="none", floor=None, repair="nothing", way=0.0),
    ]  # fmt: skip
    section = opinions_page.opinions_section(rows)
    words = " ".join(section.split())
    assert "4 repairs of 1 poisoned networks" in words, "the network as it came is no repair"
    assert "(2 repairs) than for one that leaves at most 3 (2)" in words
    assert "finds nothing (1 and 2)" in words
    line = next(line for line in section.splitlines() if line.startswith("| `pull` |"))
    assert line.endswith("| +0.40 |  | 0.75 | 0.50 | 0.70 |"), "three repairs half way are too few"
    small = next(line for line in section.splitlines() if line.startswith("| `size` |"))
    assert "| -0.40 |  | 0.75 | 0.50 |" in small, "a small size points to a backdoor"
    assert opinions_page.opinions_section([]) == ""
    assert opinions_page.opinions_picture(rows) == opinions_page.opinions_picture(rows)
