"""Networks in which nothing is wrong keep every bit, however they were trained and whatever the clean inputs are."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from netpurify.contaminate import BitFlip, Constant, Normal, SignFlip
from netpurify.network import Grade, Recover, purify
from netpurify.network.policies.recovery.evidence import equal_steps, repeated, scattered
from netpurify.network.policies.recovery.unusual import beyond_training
from tests.network import made_networks as networks

SIDE = 12


def blobs(count, generator):
    """Smooth blobs in the middle of an image with a blank border."""
    small = torch.rand(count, 1, 4, 4, generator=generator)
    blob = nn.functional.interpolate((small - 0.4).clamp(min=0.0), size=SIDE - 4, mode="bilinear")
    return nn.functional.pad(blob, (2, 2, 2, 2)) * 1.6


def noise(count, generator):
    """Images that are lit everywhere."""
    return torch.rand(count, 1, SIDE, SIDE, generator=generator)


def texts(count, generator):
    """Counts of words; a few words are in most texts, most words in few."""
    odds = 1.0 / (1.0 + torch.arange(400)) ** 0.8
    drawn = torch.multinomial(odds.expand(count, -1), 12, replacement=True, generator=generator)
    return torch.zeros(count, 400).scatter_add_(1, drawn, torch.ones(count, 12))


def bits(count, generator):
    """Images of zeros and ones."""
    return (noise(count, generator) > 0.6).float()


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(144, 40), nn.ReLU(), nn.Linear(40, 24), nn.ReLU(), nn.Linear(24, 8))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 8),
    )  # fmt: skip


def patches():
    return nn.Sequential(nn.Conv2d(1, 20, (6, 12), stride=(6, 12)), nn.ReLU(), nn.Flatten(), nn.Linear(40, 8))


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100, 12), nn.Tanh(), nn.Linear(12, 5)
    )


def words():
    return nn.Sequential(nn.Linear(400, 24), nn.ReLU(), nn.Linear(24, 8))


SGD = torch.optim.SGD
MOMENTUM = {"lr": 0.15, "momentum": 0.9}
OPTIM = torch.optim
CASES = {
    # Few images with blank borders: rows and units that training never touched, as in a layer that was never trained.
    "blank borders": (mlp, blobs, noise, SGD, {"lr": 0.1}, 8, torch.float64, 4, (2, 5)),
    "blank borders, more images": (mlp, blobs, noise, SGD, {"lr": 0.1}, 8, torch.float64, 40, (2,)),
    "dead units": (patches, blobs, None, SGD, MOMENTUM, 40, torch.float64, 4, (5,)),
    # Pixels of smooth images agree with one another, whatever else training saw.
    "smooth images": (mlp, blobs, blobs, SGD, {"lr": 0.1}, 1, torch.float32, 12, (1, 2, 5)),
    # Changes of the first step have the same size, those of Rprop later few sizes.
    "one step of RMSprop": (mlp, blobs, None, OPTIM.RMSprop, {"lr": 1e-3}, 1, torch.float64, 40, (0, 1, 2)),
    "one step of Adagrad": (words, texts, None, OPTIM.Adagrad, {"lr": 0.03}, 1, torch.float64, 40, (1, 3)),
    "steps of Rprop": (patches, blobs, None, OPTIM.Rprop, {"lr": 1e-2}, 10, torch.float32, 12, (0, 1, 4)),
    # Most weights only decay, some are trained besides.
    "decay of AdamW": (mlp, blobs, noise, OPTIM.AdamW, {"lr": 9e-3}, 10, torch.float64, 4, (0, 2, 5)),
    "decay of AdamW, words": (words, texts, texts, OPTIM.AdamW, {"lr": 1e-3}, 3, torch.float32, 40, (0, 1)),
    # Units that die, or answer few inputs.
    "Adam": (mlp, blobs, None, OPTIM.Adam, {"lr": 9e-3}, 200, torch.float32, 40, (1, 2)),
    "rare texts": (words, texts, texts, SGD, {"lr": 0.1}, 1, torch.float32, 40, (0,)),
    # Inputs of zeros and ones: units that few of them drive change many of their weights alike.
    "bits, RMSprop": (mlp, bits, None, OPTIM.RMSprop, {"lr": 1e-3}, 2, torch.float64, 20, (0, 1)),
    "bits, Adam": (mlp, bits, None, OPTIM.Adam, {"lr": 1e-3}, 5, torch.float64, 20, (0, 1)),
    "bits, decay of AdamW": (mlp, bits, noise, OPTIM.AdamW, {"lr": 1e-3}, 2, torch.float32, 5, (5, 22)),
    # Sizes of changes over many orders of magnitude.
    "heavy tails of Rprop": (cnn, blobs, None, OPTIM.Rprop, {"lr": 1e-2}, 100, torch.float64, 12, (0, 1)),
    "heavy tails of Rprop in a head": (mlp, blobs, None, OPTIM.Rprop, {"lr": 1e-2}, 100, torch.float32, 12, (0, 1)),
}


def healthy(build, draw, draw_clean, optimiser, options, steps, dtype, count, seed):
    """A network, its initial weights, and clean inputs; without a way to draw them, those that trained it."""
    generator = torch.Generator().manual_seed(seed)
    network = networks.seeded(build, seed).to(dtype)
    inputs = draw(count, generator).to(dtype)
    labels = torch.randint(8, (count,), generator=generator)
    initial = copy.deepcopy(network)
    chosen = optimiser(network.parameters(), **options)
    for _ in range(steps):
        chosen.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        chosen.step()
    return network, initial, inputs if draw_clean is None else draw_clean(count, generator).to(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_healthy_networks_keep_every_bit_however_they_were_trained(case):
    *how, seeds = CASES[case]
    for seed in seeds:
        network, initial, inputs = healthy(*how, seed)
        result = purify(network, inputs, policy=Recover(initial, proof=False))
        assert not len(result.altered)
        assert networks.same_bits(result.model, network)


@pytest.mark.parametrize("seed", [2, 14])
def test_bits_of_which_the_clean_inputs_show_half_are_no_alterations(seed):
    network, initial, inputs = healthy(mlp, bits, None, SGD, {"lr": 0.1}, 2, torch.float64, 40, seed)
    result = purify(network, inputs[:20], policy=Recover(initial, proof=False))
    assert networks.same_bits(result.model, network)


def test_what_is_only_suspicious_is_listed_and_stays():
    *how, seeds = CASES["one step of RMSprop"]
    network, initial, inputs = healthy(*how, seeds[0])
    result = purify(network, inputs, policy=Recover(initial))
    table = result.suspicious
    assert len(table)
    assert len(table) == sum(len(layer.suspicious) for layer in result.layers)
    assert np.array_equal(table.was, table.now)
    assert (table.grade == Grade.LEFT_ALONE).all()
    for tensor, name in enumerate(table.names):
        place = torch.from_numpy(table.index[table.tensor == tensor])
        assert np.array_equal(table.was[table.tensor == tensor], network.state_dict()[name].reshape(-1)[place].numpy())
    assert result.verify().sound


def test_alterations_that_no_training_makes_are_still_replaced_in_such_a_network():
    *how, seeds = CASES["one step of RMSprop"]
    network, initial, inputs = healthy(*how, seeds[0])
    dirty, masks = networks.altered(network, Normal(0.0, 1.0), 0.05, names=["1.weight"])
    result = purify(dirty, inputs, policy=Recover(initial))
    found, true = networks.positions(result.altered), networks.truth(masks)
    assert found <= true
    assert len(found) > 0.9 * len(true)


def test_rows_that_all_units_share_that_answer_are_not_altered_though_other_units_never_do():
    # Ten units saw an input that the clean ones lack, ten never answered any.
    initial = networks.seeded(lambda: nn.Sequential(nn.Linear(60, 20, bias=False)))
    network = copy.deepcopy(initial)
    generator = torch.Generator().manual_seed(1)
    inputs, unseen = torch.randn(6, 60, generator=generator), torch.zeros(60)
    inputs[:, :4] = 0.01 * torch.randn(6, 4, generator=generator)
    unseen[:4] = 1.0
    with torch.no_grad():
        network[0].weight[:10] += 0.01 * torch.randn(10, 6, generator=generator) @ inputs
        network[0].weight[:10] += 0.01 * torch.rand(10, 1, generator=generator) * unseen
    result = purify(network, inputs, policy=Recover(initial))
    assert result.count(Grade.RECOVERED) == 20
    assert networks.same_bits(result.model, network)
    assert result.layers[0].unjudged == 40


def sign_descent(seed):
    """Two steps of one size: most weights return to the initial bits, the others moved twice."""
    generator = torch.Generator().manual_seed(seed)
    network = networks.seeded(small_cnn, seed)
    initial, inputs = copy.deepcopy(network), blobs(8, generator)
    labels = torch.randint(5, (8,), generator=generator)
    for _ in range(2):
        network.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter -= 0.01 * parameter.grad.sign()
    return network, initial, inputs


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 9, 12])
def test_steps_that_returned_to_the_initial_weights_are_training(seed):
    network, initial, inputs = sign_descent(seed)
    assert networks.same_bits(purify(network, inputs, policy=Recover(initial, proof=False)).model, network)


@pytest.mark.parametrize("law", [Constant(0.02), SignFlip(), BitFlip(30)])
def test_frozen_layers_are_still_restored(law):
    network = networks.seeded(small_cnn)
    with torch.no_grad():
        network[4].weight.copy_(0.1 * network[4].weight.sign())  # flipped signs differ by one size in both directions
    dirty, masks = networks.altered(network, law, 0.1, names=["4.weight"])
    result = purify(dirty, noise(8, torch.Generator().manual_seed(0)), policy=Recover(network, proof=False))
    assert networks.same_bits(result.model, network)
    assert networks.positions(result.altered) == networks.truth(masks)


def test_tampering_by_a_constant_is_still_undone_where_it_is_far_beyond_training():
    generator = torch.Generator().manual_seed(0)
    network = networks.seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(144, 8))).double()
    initial, inputs = copy.deepcopy(network), bits(12, generator).double()
    networks.train(network, inputs, torch.arange(12) % 8, network.parameters(), steps=20)
    dirty, masks = networks.altered(network, Constant(100.0), 0.1, names=["1.weight"])
    found = networks.positions(purify(dirty, inputs, policy=Recover(initial, proof=False)).altered)
    true = networks.truth(masks)
    assert found <= true
    assert len(found) > 0.95 * len(true)  # a row in which most units were hit is left alone


def test_units_whose_weights_repeat_one_another_are_no_evidence():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 100)) < 0.4
    change = np.stack([0.3 * first + 0.2 * second, rng.normal(size=100), np.zeros(100)], axis=1)
    altered = np.zeros((100, 3), np.bool_)
    altered[:20] = True
    residual = np.where(altered, rng.normal(size=(100, 3)), 0.0)
    floor = np.full(3, 1e-9)
    assert repeated(change, residual, floor, altered, 10).tolist() == [True, False, False]
    residual[:15] = 0.1  # an input of ones that the clean inputs do not show
    assert repeated(change, residual, floor, altered, 10).all()


def changes(seed=0, shape=(200, 40)):
    """Changes as training makes them: what a row brings, times what a unit answers, times chance."""
    rng = np.random.default_rng(seed)
    rows, units = np.exp(rng.normal(size=(shape[0], 1))), np.exp(rng.normal(size=shape[1]))
    return np.abs(0.01 * rows * units * rng.normal(size=shape)), rng


def judged(sizes, far):
    return beyond_training(lambda units: sizes[:, units], far)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_many_changes_far_beyond_the_others_are_altered(share):
    sizes, rng = changes()
    altered = rng.random(sizes.shape) < share
    sizes[altered] = 40.0 * rng.random(altered.sum()) + 20.0
    assert np.array_equal(judged(sizes, altered), altered)


def test_small_changes_are_no_evidence_however_far_they_lie_from_the_fit():
    sizes, rng = changes()
    far = rng.random(sizes.shape) < 0.05
    sizes[far] = 0.0
    assert not judged(sizes, far).any()
    sizes[far] = np.median(sizes)
    assert not judged(sizes, far).any()


def test_one_weight_alone_must_lie_much_farther_out_than_many():
    sizes, _ = changes()
    far = np.zeros(sizes.shape, np.bool_)
    far[17, 23] = True
    sizes[far] = 60.0
    assert not judged(sizes, far).any()
    sizes[far] = 1e13
    assert np.array_equal(judged(sizes, far), far)


def test_the_end_of_a_heavy_tail_is_no_alteration():
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-4.0, 4.0, (200, 40))
    assert not judged(sizes, sizes > 3e3).any()


def test_large_changes_in_rows_and_units_are_training():
    sizes, rng = changes()
    far = (rng.random((200, 1)) < 0.2) & (rng.random(40) < 0.3)
    sizes[far] = 60.0
    assert not judged(sizes, far).any()


def test_wide_layers_are_judged_by_a_sample_of_their_units():
    sizes, rng = changes(shape=(60, 2000))
    altered = rng.random(sizes.shape) < 0.02
    sizes[altered] = 1e3
    asked = []
    found = beyond_training(lambda units: asked.append(units.size) or sizes[:, units], altered)
    assert np.array_equal(found, altered)
    assert max(asked) <= 512


def test_rows_times_units_are_not_scattered_though_most_of_either_are_reached():
    assert scattered(np.random.default_rng(0).random((41, 24)) < 0.48)
    block = np.zeros((41, 24), np.bool_)
    block[:28, :17] = True
    assert not scattered(block)


def test_a_bias_that_was_spared_is_no_structure():
    altered = np.random.default_rng(0).random((10, 512)) < 0.05
    altered[-1] = False
    assert scattered(altered)


def test_equal_steps_are_not_alterations_and_equal_alterations_are_no_steps():
    change = np.where(np.arange(60) % 3, 0.01, -0.01)[:, None]
    change[50:] = 0.0
    altered = np.zeros((60, 1), np.bool_)
    altered[[3, 4, 5, 55]] = True
    change[5] = 0.004
    assert equal_steps(change, np.full(1, 1e-6), altered)[altered].all()
    change[3] = 1.7
    assert not equal_steps(change, np.full(1, 1e-6), altered)[3]
    dead = np.zeros((60, 1))
    dead[altered] = 1.7
    assert not equal_steps(dead, np.full(1, 1e-6), altered)[altered].any()


def test_sizes_that_lie_dense_are_not_taken_for_equal_steps():
    change = np.random.default_rng(0).uniform(0.0, 1e-3, (2000, 1))
    altered = np.zeros((2000, 1), np.bool_)
    altered[::100] = True
    assert not equal_steps(change, np.full(1, 1e-5), altered).any()
    change[altered] = 0.5
    change[1:40:2] = 0.5
    assert equal_steps(change, np.full(1, 1e-5), altered)[altered].all()
