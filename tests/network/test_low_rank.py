"""Changes of low rank whose directions are not known: merged adapters, training on few samples."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from netpurify import Grade, Recover, purify, report
from netpurify.contaminate import Normal, contaminate
from netpurify.network import low_rank_alterations
from netpurify.network.policies.recovery.decomposition import decompose
from tests.network.made_networks import altered, largest_error, positions, same_bits, seeded, train, truth


def merged(units=160, fan_in=128, rank=4, seed=0, size=0.05):
    """Base and base + B A, in float32."""
    draw = torch.Generator().manual_seed(seed)
    base = torch.randn(units, fan_in, generator=draw) / fan_in**0.5
    delta = torch.randn(units, rank, generator=draw) @ torch.randn(rank, fan_in, generator=draw)
    return base, base + delta * (size * base.std() / delta.std())


def tampered(weights, share, seed=1):
    made = contaminate({"w": weights}, Normal(0.0, float(weights.std())), share=share,
                       generator=torch.Generator().manual_seed(seed))  # fmt: skip
    return made.state["w"], made.altered["w"]


@pytest.mark.parametrize(("rank", "share"), [(1, 0.01), (1, 0.1), (4, 0.001), (4, 0.2), (12, 0.05)])
def test_altered_entries_are_named_with_the_values_that_they_had(rank, share):
    base, true = merged(rank=rank)
    dirty, mask = tampered(true, share)
    found = low_rank_alterations(dirty, base)
    assert found.rank == rank
    expected = np.linalg.svd((true.double() - base.double()).numpy(), compute_uv=False)[:rank]
    assert found.singular_values == pytest.approx(expected, rel=1e-4)
    places = set(mask.reshape(-1).nonzero().reshape(-1).tolist())
    assert set(found.index.tolist()) <= places
    assert len(found.index) >= 0.99 * len(places)  # an alteration below rounding is none
    assert np.abs(found.expected - true.reshape(-1)[found.index].double().numpy()).max() < 1e-6
    assert (found.was == dirty.reshape(-1)[found.index].double().numpy()).all()
    assert (found.unjudged, found.examined) == (0, true.numel())


def test_missing_entries_are_rebuilt():
    base, true = merged()
    dirty = true.clone()
    dirty[3, 5], dirty[70, 9], dirty[11, 100] = torch.nan, torch.inf, 1e30
    found = low_rank_alterations(dirty, base)
    assert sorted(found.index.tolist()) == [3 * 128 + 5, 11 * 128 + 100, 70 * 128 + 9]
    assert np.abs(found.expected - true.reshape(-1)[found.index].double().numpy()).max() < 1e-6


def test_change_without_alterations_names_none():
    base, true = merged()
    found = low_rank_alterations(true, base)
    assert (found.rank, len(found.index), found.unjudged) == (4, 0, 0)
    assert found.gap > 1e4


def test_an_edit_of_rank_one_is_one_rank_more_and_not_an_alteration():
    base, true = merged(rank=4)
    draw = torch.Generator().manual_seed(5)
    edit = torch.randn(160, 1, generator=draw) @ torch.randn(1, 128, generator=draw)
    found = low_rank_alterations(true + 0.001 * edit, base)
    assert (found.rank, len(found.index)) == (5, 0)


def test_full_rank_zero_and_small_tensors_are_not_judged():
    base, true = merged()
    draw = torch.Generator().manual_seed(3)
    assert low_rank_alterations(base + 1e-3 * torch.randn(base.shape, generator=draw), base) is None
    spectrum = torch.diag(torch.arange(1, 129).double() ** -2.0)  # falls fast, but without a gap
    left, right = (torch.linalg.qr(torch.randn(size, 128, generator=draw).double())[0] for size in (160, 128))
    assert low_rank_alterations(base + 0.1 * (left @ spectrum @ right.T).float(), base) is None
    assert low_rank_alterations(base.clone(), base) is None
    assert low_rank_alterations(true[:40], base[:40]) is None
    assert low_rank_alterations(true[0], base[0]) is None
    assert low_rank_alterations(true.reshape(-1, 2), base) is None
    assert low_rank_alterations(torch.zeros(100, 100), torch.zeros(100, 100)) is None


def test_a_row_or_unit_that_differs_as_a_whole_is_not_called_altered():
    base, true = merged()
    for place in ((slice(None), 7), (9, slice(0, 60))):
        dirty = true.clone()
        dirty[place] += 0.1 * torch.randn(dirty[place].shape, generator=torch.Generator().manual_seed(2))
        found = low_rank_alterations(dirty, base)
        assert found is None or len(found.index) == 0


def test_rows_of_very_different_sizes_do_not_hide_the_low_rank():
    draw = torch.Generator().manual_seed(0)
    base = torch.randn(160, 128, generator=draw)
    sizes = torch.exp(torch.randn(160, 1, generator=draw))
    true = base + 0.02 * sizes * (torch.randn(160, 3, generator=draw) @ torch.randn(3, 128, generator=draw))
    dirty, mask = tampered(true, 0.05)
    found = low_rank_alterations(dirty, base)
    assert found.rank == 3
    assert set(found.index.tolist()) <= set(mask.reshape(-1).nonzero().reshape(-1).tolist())
    assert len(found.index) >= 0.98 * int(mask.sum())


def test_decomposition_of_an_exact_sum():
    draw = np.random.default_rng(0)
    low = draw.standard_normal((90, 3)) @ draw.standard_normal((3, 120))
    places = draw.random(low.shape) < 0.1
    found = decompose(low + 50.0 * places * draw.standard_normal(low.shape), 1e-9, draw)
    assert found.singular_values == pytest.approx(np.linalg.svd(low, compute_uv=False)[:3], rel=1e-9)
    assert (found.left * found.singular_values) @ found.right.T == pytest.approx(low, abs=1e-8)
    assert found.unexplained == places.sum()


def adapted_network():
    """A network whose middle layer got a merged adapter of rank 3, and its base."""
    base = seeded(lambda: nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 128), nn.ReLU(), nn.Linear(128, 4)))
    network = copy.deepcopy(base)
    draw = torch.Generator().manual_seed(4)
    with torch.no_grad():
        factors = torch.randn(128, 3, generator=draw), torch.randn(3, 96, generator=draw)
        network[2].weight += 0.002 * (factors[0] @ factors[1])
    return network, base


def test_purify_replaces_what_a_merged_adapter_cannot_have_made():
    network, base = adapted_network()
    inputs = torch.randn(400, 24, generator=torch.Generator().manual_seed(5))  # spans every direction of layer 2
    dirty, masks = altered(network, Normal(0.0, 0.1), 0.01, names=["2.weight"])
    result = purify(dirty, inputs, policy=Recover(base))
    layer = next(layer for layer in result.layers if layer.name == "2")
    assert layer.low_rank == 3
    assert layer.singular_values.shape == (3,)
    assert layer.count(Grade.LOW_RANK) == 128
    assert layer.uncertain == 128  # the directions were estimated, so nothing is certain
    assert "rank 3" in layer.reason
    assert positions(result.altered) <= truth(masks)
    assert len(result.altered) >= 0.98 * len(truth(masks))
    assert largest_error(result.model, network) < 1e-5
    record = report.record(result)
    written = next(one for one in record["layers"] if one["name"] == "2")
    assert written["low_rank"] == 3
    assert written["singular_values"] == pytest.approx(layer.singular_values.tolist())


def test_purify_leaves_every_bit_of_a_merged_adapter_that_nobody_altered():
    network, base = adapted_network()
    inputs = torch.randn(400, 24, generator=torch.Generator().manual_seed(5))
    result = purify(network, inputs, policy=Recover(base))
    assert same_bits(result.model, network)
    assert len(result.altered) == 0


def test_few_training_samples_are_enough_without_the_right_clean_inputs():
    network = seeded(lambda: nn.Sequential(nn.Linear(160, 100)))
    base = copy.deepcopy(network)
    samples, labels = seeded(lambda: (torch.randn(6, 160), torch.randint(0, 100, (6,))), seed=1)
    train(network, samples, labels, network.parameters(), steps=40, lr=0.1)
    dirty, masks = altered(network, Normal(0.0, 0.1), 0.02)
    other = torch.randn(20, 160, generator=torch.Generator().manual_seed(9))  # not what training saw
    result = purify(dirty, other, policy=Recover(base))
    (layer,) = result.layers
    assert layer.count(Grade.LOW_RANK) == 100
    assert layer.low_rank <= 6
    assert positions(result.altered) <= truth(masks)
    assert len(result.altered) >= 0.98 * len(truth(masks))
    assert largest_error(result.model, network) < 1e-4


@pytest.mark.parametrize("optimiser", ["Adam", "RMSprop", "Adagrad", "Rprop"])
@pytest.mark.parametrize("steps", [1, 5, 20])
def test_optimisers_that_rescale_steps_leave_no_low_rank(optimiser, steps):
    network = seeded(lambda: nn.Linear(160, 100))
    base = copy.deepcopy(network)
    samples, labels = seeded(lambda: (torch.randn(8, 160), torch.randint(0, 100, (8,))), seed=1)
    stepping = getattr(torch.optim, optimiser)(network.parameters(), lr=1e-3)
    for _ in range(steps):
        stepping.zero_grad()
        nn.functional.cross_entropy(network(samples), labels).backward()
        stepping.step()
    assert low_rank_alterations(network.weight, base.weight) is None


def test_steps_of_equal_size_are_no_low_rank():
    base, _ = merged()
    draw = torch.Generator().manual_seed(6)
    signs = torch.randn(160, 1, generator=draw).sign() @ torch.randn(1, 128, generator=draw).sign()
    steps = 0.01 * signs
    for row, unit in torch.randint(0, 128, (40, 2), generator=draw).tolist():
        steps[row, unit] *= 0.5  # a step that was taken back, as Rprop does: not an alteration
    assert low_rank_alterations(base + steps, base) is None


def test_changes_of_some_rows_in_some_units_are_no_alterations():
    base, true = merged()
    draw = torch.Generator().manual_seed(7)
    rows, units = torch.randperm(160, generator=draw)[:25], torch.randperm(128, generator=draw)[:25]
    dirty = true.clone()
    dirty[rows[:, None], units] += 0.02 * torch.randn(
        25, 25, generator=draw
    )  # one more input, in the units that respond
    found = low_rank_alterations(dirty, base)
    assert found is None or len(found.index) == 0


def test_the_tail_of_small_noise_is_no_alteration():
    base, true = merged()
    floor = 256.0 * torch.finfo(torch.float32).eps * float(base.abs().median())
    noisy = true + 0.3 * floor * torch.randn(true.shape, generator=torch.Generator().manual_seed(8))
    found = low_rank_alterations(noisy, base)  # some weights lie a little beyond the noise floor
    assert found is None or len(found.index) == 0
