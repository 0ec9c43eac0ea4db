"""I-BAU, FT-SAM, NAD and RNP, each against steps computed by hand."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from netpurify.contaminate import measure
from netpurify.errors import InputError
from netpurify.experiments.studies.defence import implicit_unlearning
from netpurify.experiments.studies.defence.attention_distillation import AttentionDistillation, attention, layers
from netpurify.experiments.studies.defence.baseline import CleanData
from netpurify.experiments.studies.defence.implicit_unlearning import ImplicitUnlearning, hypergradient
from netpurify.experiments.studies.defence.networks import build
from netpurify.experiments.studies.defence.reconstructive_pruning import ReconstructivePruning
from netpurify.experiments.studies.defence.scenarios import Scenario, images_of
from netpurify.experiments.studies.defence.sharpness_aware import SharpnessAware, climb
from tests.toys import victims

QUICK = [
    ImplicitUnlearning(rounds=2, batch=16), SharpnessAware(epochs=2, batch=16),
    AttentionDistillation(teaching_epochs=1, epochs=2, batch=16),
    ReconstructivePruning(unlearning_epochs=2, recovering_epochs=2, batch=16),
]  # fmt: skip


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("baseline", QUICK, ids=lambda it: it.name)
def test_the_network_is_untouched_its_modes_are_kept_and_nothing_global_is_drawn(baseline, trained, clean):
    trained = copy.deepcopy(trained)
    trained[1].train()
    before, modes = victims.state(trained), [module.training for module in trained.modules()]
    drawn = torch.random.get_rng_state()
    repaired = baseline.repair(trained, clean)
    assert victims.same(victims.state(trained), before)
    assert [module.training for module in repaired.modules()] == modes
    assert all(value.grad is None and value.requires_grad for value in repaired.parameters())
    assert not any(module._forward_hooks for module in repaired.modules())
    assert torch.equal(torch.random.get_rng_state(), drawn)
    own = {value.data_ptr() for value in trained.parameters()}
    assert own.isdisjoint(value.data_ptr() for value in repaired.parameters())


@pytest.mark.parametrize("baseline", QUICK, ids=lambda it: it.name)
def test_the_same_seed_gives_the_same_bits(baseline, trained, clean):
    first, again = (victims.state(baseline.repair(trained, replace(clean, seed=5))) for _ in range(2))
    assert victims.same(first, again)


@pytest.mark.parametrize("baseline", QUICK[:3], ids=lambda it: it.name)
def test_another_seed_gives_another_draw(baseline, trained, clean):
    first, other = (victims.state(baseline.repair(trained, replace(clean, seed=seed))) for seed in (5, 6))
    assert not victims.same(first, other)


def test_all_four_use_labels_and_clean_images_alone():
    assert {it.name: (it.labels, it.data, it.initial) for it in QUICK} == dict.fromkeys(
        ("I-BAU", "FT-SAM", "NAD", "RNP"), (True, True, False)
    )


# ---- I-BAU


def _bilevel():
    """A smooth network of 23 weights, an inner loss with one minimum, an outer loss, and where the inner is least."""
    drawn = generator()
    network = nn.Sequential(nn.Flatten(), victims.perceptron(0, 4, 3)[1], nn.Tanh(), victims.perceptron(1, 3, 2)[1])
    network = network.double()
    with torch.no_grad():
        for value in network.parameters():
            value.mul_(2.0)  # so that the second derivatives matter
    images = torch.randn(6, 1, 2, 2, generator=drawn, dtype=torch.float64)
    labels = torch.arange(6) % 2
    baseline = ImplicitUnlearning(penalty=0.5)

    def inner(pattern):
        return baseline.objective(network, pattern, images, labels)

    def outer(pattern):
        return nn.functional.cross_entropy(network(images + 2.0 * pattern), labels.flip(0))

    def least():
        pattern = torch.zeros(1, 1, 2, 2, dtype=torch.float64)
        for _ in range(150):
            pattern.requires_grad_()
            (slope,) = torch.autograd.grad(inner(pattern), pattern)
            pattern = pattern.detach() - 0.5 * slope
        return pattern

    return network, inner, outer, least


def test_the_hypergradient_is_the_slope_of_the_outer_loss_along_the_moving_minimum():
    network, inner, outer, least = _bilevel()
    parameters = list(network.parameters())
    found = hypergradient(outer, inner, least(), parameters, step=0.5, iterations=100)
    blind = torch.autograd.grad(outer(least()), parameters)
    for number in range(3):
        directions = [torch.randn(value.shape, generator=generator(number)).double() for value in parameters]
        sides = []
        for width in (1e-4, -2e-4):
            with torch.no_grad():
                for value, direction in zip(parameters, directions, strict=True):
                    value.add_(direction, alpha=width)
            sides.append(outer(least()).item())
        with torch.no_grad():
            for value, direction in zip(parameters, directions, strict=True):
                value.add_(direction, alpha=1e-4)
        expected = (sides[0] - sides[1]) / 2e-4
        along = sum((slope * direction).sum() for slope, direction in zip(found, directions, strict=True))
        without = sum((slope * direction).sum() for slope, direction in zip(blind, directions, strict=True))
        assert along.item() == pytest.approx(expected, rel=1e-5)
        assert abs(without.item() - expected) > 1e-3


@pytest.mark.parametrize("iterations", [1, 5])
def test_the_hypergradient_stops_after_the_stated_iterations(iterations):
    network, inner, outer, least = _bilevel()
    parameters, pattern = list(network.parameters()), least()
    hessian = torch.autograd.functional.hessian(inner, pattern).reshape(4, 4)
    direct = torch.autograd.functional.jacobian(outer, pattern).reshape(4)
    jacobian = torch.eye(4, dtype=torch.float64) - 0.3 * hessian
    vector = sum(torch.linalg.matrix_power(jacobian, power) @ direct for power in range(iterations))
    here = pattern.clone().requires_grad_()
    (slope,) = torch.autograd.grad(inner(here), here, create_graph=True)
    mixed = torch.autograd.grad((slope.reshape(4) * vector).sum(), parameters)
    plain = torch.autograd.grad(outer(pattern), parameters)
    found = hypergradient(outer, inner, pattern, parameters, step=0.3, iterations=iterations)
    for one, own, through in zip(found, plain, mixed, strict=True):
        assert torch.allclose(one, own - 0.3 * through, rtol=1e-10, atol=1e-12)


def test_the_pattern_leads_away_from_the_networks_own_classes_and_is_cut(clean):
    network, baseline = victims.perceptron(0, 784, 10), ImplicitUnlearning(radius=1e9, penalty=0.01)
    weight, bias = network[1].weight.detach(), network[1].bias.detach()
    expected = torch.zeros(784)
    for images in clean.images.split(20):
        flat = images.flatten(1)
        own = nn.functional.one_hot((flat @ weight.T + bias).argmax(1), 10)
        errors = ((flat + expected) @ weight.T + bias).softmax(1) - own
        expected = expected - 10.0 * (2 * 0.01 * expected - (errors @ weight).mean(0))
    found = baseline.pattern(network, clean.images.split(20))
    assert found.shape == (1, 1, 28, 28)
    assert torch.allclose(found.reshape(-1), expected, rtol=0.0, atol=1e-5)
    cut = replace(baseline, radius=0.5).pattern(network, clean.images.split(20)).reshape(-1)
    assert torch.allclose(cut, expected * 0.5 / expected.norm(), rtol=0.0, atol=1e-6)


def test_i_bau_puts_the_pattern_on_one_image_at_least_and_takes_adams_step(trained, clean):
    baseline = ImplicitUnlearning(rounds=1, rate=1e-3)
    network, draws = copy.deepcopy(trained), generator()
    order = torch.randperm(40, generator=draws)
    carrier = order[torch.randperm(40, generator=draws)[0]]
    pattern = baseline.pattern(network, [clean.images[order]])

    def outer(added):
        return nn.functional.cross_entropy(
            network(torch.stack([image + added[0] if n == carrier else image for n, image in enumerate(clean.images)])),
            clean.labels,
        )

    def inner(added):
        return baseline.objective(network, added, clean.images, clean.labels)

    slopes = hypergradient(outer, inner, pattern, list(network.parameters()), step=0.1, iterations=5)
    repaired = baseline.repair(trained, clean)
    for before, after, slope in zip(trained.parameters(), repaired.parameters(), slopes, strict=True):
        steep = slope.abs() > 1e-4
        assert torch.allclose((after - before)[steep], -1e-3 * slope[steep].sign(), rtol=1e-2, atol=0.0)
    buffers = dict(trained.named_buffers())
    assert all(torch.equal(value, buffers[name]) for name, value in repaired.named_buffers())


def test_i_bau_finds_the_pattern_on_the_first_batch_and_unlearns_it_on_all(trained, clean, monkeypatch):
    baseline, seen = ImplicitUnlearning(rounds=1, batch=20), []

    def spy(outer, inner, pattern, parameters, **settings):
        seen.append((pattern, outer(pattern).item(), inner(pattern).item(), settings))
        return [torch.zeros_like(value) for value in parameters]  # no step, so that the network stays as it is

    monkeypatch.setattr(implicit_unlearning, "hypergradient", spy)
    baseline.repair(trained, clean)
    draws = generator()
    batches = torch.randperm(40, generator=draws).split(20)
    pattern = baseline.pattern(trained, [clean.images[drawn] for drawn in batches])
    first = nn.functional.cross_entropy(trained(clean.images[batches[0]] + pattern), clean.labels[batches[0]]).item()
    assert len(seen) == 2
    for drawn, (found, outer, inner, settings) in zip(batches, seen, strict=True):
        assert torch.allclose(found, pattern)
        assert inner == pytest.approx(0.001 * pattern.square().sum().item() - first, rel=1e-4)
        images = clean.images[drawn]
        images[torch.randperm(20, generator=draws)[0]] += pattern[0]
        expected = nn.functional.cross_entropy(trained(images), clean.labels[drawn]).item()
        assert outer == pytest.approx(expected, rel=1e-4)
        assert settings == {"step": 0.1, "iterations": 5}


# ---- FT-SAM


def test_the_climb_by_hand():
    weights, slopes = [torch.tensor([3.0, -1.0]), torch.tensor([2.0])], [torch.tensor([1.0, 2.0]), torch.tensor([-1.0])]
    moves = climb(weights, slopes, 2.0)
    scale = 2.0 / math.sqrt(9.0 + 4.0 + 4.0)
    assert torch.allclose(moves[0], torch.tensor([9.0 * scale, 2.0 * scale]))
    assert torch.allclose(moves[1], torch.tensor([-4.0 * scale]))
    flat = torch.cat([move / weight for move, weight in zip(moves, weights, strict=True)])
    assert flat.norm().item() == pytest.approx(2.0)


def test_ft_sam_takes_the_stated_steps(clean):
    network = victims.perceptron(0, 784, 10)
    weight = torch.cat([network[1].weight, network[1].bias[:, None]], 1).detach()
    inputs = torch.cat([clean.images.flatten(1), torch.ones(40, 1)], 1)
    target = torch.full((40, 10), 0.1 / 9).scatter(1, clean.labels[:, None], 0.9)

    def slope(at):
        return ((inputs @ at.T).softmax(1) - target).T @ inputs / 40

    speed = torch.zeros_like(weight)
    for rate in (0.01, 0.005):
        near = slope(weight)
        worst = weight + 2.0 * weight.square() * near / (weight * near).norm()
        assert (slope(worst) - near).norm() > 0.01 * near.norm()  # a plain step would be another
        speed = 0.9 * speed + slope(worst) + 0.5 * weight
        weight = weight - rate * speed
    repaired = SharpnessAware(epochs=2, decay=0.5).repair(network, clean)
    assert torch.allclose(repaired[1].weight, weight[:, :-1], rtol=0.0, atol=1e-6)
    assert torch.allclose(repaired[1].bias, weight[:, -1], rtol=0.0, atol=1e-6)


def test_ft_sam_gathers_statistics_at_the_weights_themselves(clean):
    network = victims.network(0, norm=True)
    repaired = SharpnessAware(epochs=1).repair(network, clean)
    network.train()(clean.images)
    assert torch.allclose(repaired[1].running_mean, network[1].running_mean, rtol=0.0, atol=1e-6)
    assert torch.allclose(repaired[1].running_var, network[1].running_var, rtol=1e-5)
    assert repaired[1].num_batches_tracked == 1


# ---- NAD


def test_the_attention_map_and_the_distance_by_hand():
    one = torch.tensor([[[[3.0, 0.0]], [[-4.0, 1.0]]]])  # two channels of one row
    other = torch.tensor([[[[0.0, 0.0]], [[0.0, 2.0]]]])
    length = math.sqrt(25.0**2 + 1.0)
    assert torch.allclose(attention(one, 2.0), torch.tensor([[[25.0 / length, 1.0 / length]]]))
    assert torch.allclose(attention(one, 1.0), torch.tensor([[[7.0, 1.0]]]) / math.sqrt(50.0))
    assert torch.allclose(attention(torch.cat([one, 5.0 * one]), 2.0), attention(one, 2.0).expand(2, 1, 2))
    apart = ((25.0 / length) ** 2 + (1.0 / length - 1.0) ** 2) / 2
    baseline = AttentionDistillation(betas=(2.0, 3.0, 7.0))
    assert baseline.distance([one] * 3, [other] * 3).item() == pytest.approx(12.0 * apart, rel=1e-5)
    assert baseline.distance([one, one], [other, one]).item() == pytest.approx(3.0 * apart, rel=1e-5)
    assert baseline.distance([one, one], [one, other]).item() == pytest.approx(7.0 * apart, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("resnet", (1, 3, 32, 32), ["block1", "block2", "block3"]),
        ("vgg", (1, 3, 32, 32), ["relu1", "relu3", "relu5"]),
        ("mnist_cnn", (1, 1, 28, 28), ["relu1", "relu2"]),
    ],
)
def test_the_last_activations_of_each_resolution_are_compared(name, shape, expected):
    assert layers(build(name, 0).eval(), torch.rand(shape, generator=generator()), 3) == expected


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "norm"])
def test_nad_takes_the_stated_steps(norm, clean):
    network = victims.network(0, norm=norm)
    teacher, student = copy.deepcopy(network).train(), copy.deepcopy(network).train()

    def step(one, loss):
        slopes = torch.autograd.grad(loss, list(one.parameters()))
        with torch.no_grad():
            for value, slope in zip(one.parameters(), slopes, strict=True):
                value.sub_(0.05 * (slope + 0.01 * value))

    def maps(one):
        squares = one[: 2 + norm](clean.images).square().sum(1)
        return squares / (squares.square().sum((1, 2), keepdim=True).sqrt() + 1e-6)

    step(teacher, nn.functional.cross_entropy(teacher(clean.images), clean.labels))
    apart = (maps(student) - maps(teacher.eval()).detach()).square().mean()
    assert apart > 0.0  # the teacher has taken a step, the student has not
    step(student, nn.functional.cross_entropy(student(clean.images), clean.labels) + 1000.0 * apart)
    baseline = AttentionDistillation(betas=(5.0, 1000.0), teaching_epochs=1, epochs=1, rate=0.05, decay=0.01)
    repaired = replace(baseline, batch=40).repair(network, clean)
    for found, expected in zip(repaired.parameters(), student.parameters(), strict=True):
        assert torch.allclose(found, expected, rtol=0.0, atol=1e-5)
    plain = replace(baseline, batch=40, betas=(0.0,)).repair(network, clean)
    assert not torch.allclose(plain[0].weight, student[0].weight, rtol=0.0, atol=1e-4)


def test_nad_slows_down_after_the_first_epochs(trained, clean):
    short = AttentionDistillation(teaching_epochs=1, epochs=2, late=2, late_rate=0.0)
    long, other = replace(short, epochs=4), replace(short, epochs=4, late=3)
    found, same, more = (dict(it.repair(trained, clean).named_parameters()) for it in (short, long, other))
    assert victims.same(found, same)
    assert not victims.same(found, more)


def test_nad_refuses_a_network_without_convolutions(clean):
    with pytest.raises(InputError, match="NAD compares maps of convolutions"):
        AttentionDistillation().repair(victims.perceptron(0, 784, 10), clean)


# ---- RNP


@pytest.mark.parametrize("clip", [1e9, 0.1])
def test_rnp_climbs_the_loss_with_clipped_slopes(clip, clean):
    network = victims.perceptron(0, 784, 10)
    weight = torch.cat([network[1].weight, network[1].bias[:, None]], 1).detach()
    inputs = torch.cat([clean.images.flatten(1), torch.ones(40, 1)], 1)
    speed = torch.zeros_like(weight)
    for rate in (0.01, 0.001):
        slope = ((inputs @ weight.T).softmax(1) - nn.functional.one_hot(clean.labels, 10)).T @ inputs / 40
        assert slope.norm() > 0.1
        speed = 0.9 * speed - slope * min(1.0, clip / slope.norm().item()) + 0.5 * weight
        weight = weight - rate * speed
    baseline = ReconstructivePruning(unlearning_epochs=2, milestone=1, decay=0.5, clip=clip, forgotten=-1.0)
    found = baseline.unlearned(network, clean, generator())
    assert torch.allclose(found[1].weight, weight[:, :-1], rtol=0.0, atol=1e-6)
    assert torch.allclose(found[1].bias, weight[:, -1], rtol=0.0, atol=1e-6)


def test_rnp_stops_once_the_images_are_forgotten(trained, clean):
    once, twice = ReconstructivePruning(unlearning_epochs=1), ReconstructivePruning(unlearning_epochs=2)
    satisfied = ReconstructivePruning(forgotten=1.0)
    first, stopped, on = (victims.state(it.unlearned(trained, clean, generator())) for it in (once, satisfied, twice))
    assert victims.same(first, stopped)
    assert not victims.same(first, on)
    still = [name for name, _ in trained.named_buffers() if torch.equal(first[name], trained.get_buffer(name))]
    assert not still  # BatchNorm learns too
    forgetful = ReconstructivePruning(unlearning_rate=0.1, batch=8).unlearned(trained, clean, generator())
    assert victims.hits(forgetful, clean) <= 0.2 * 40
    assert victims.hits(trained, clean) > 0.8 * 40


@pytest.mark.parametrize("wrong", [0, 1], ids=["right", "wrong"])
def test_rnp_takes_the_stated_step_of_the_masks(wrong, trained, clean):
    norm = isinstance(trained[1], nn.BatchNorm2d)
    clean = replace(clean, labels=clean.labels.roll(wrong))  # with wrong labels channels do harm, else they help
    baseline = ReconstructivePruning(recovering_epochs=1, recovering_rate=0.5)
    (found,) = baseline.masks(trained, clean, generator()).values()
    work = copy.deepcopy(trained).train()
    head, tail = work[: 1 + norm], work[1 + norm :]
    bias = head[-1].bias[:, None, None]
    mask = torch.ones(victims.WIDTH, requires_grad=True)
    scores = tail((head(clean.images) - bias) * mask[:, None, None] + bias)
    (slope,) = torch.autograd.grad(nn.functional.cross_entropy(scores, clean.labels), mask)
    assert (slope > 0.01).any() if wrong else (slope < -0.001).any()
    assert torch.allclose(found, (1.0 - 0.5 * 0.2 * slope).clamp(0.0, 1.0), rtol=0.0, atol=1e-6)


def test_rnp_prunes_the_channels_below_the_threshold_and_no_others(trained, clean):
    name = "1" if isinstance(trained[1], nn.BatchNorm2d) else "0"
    baseline = ReconstructivePruning(unlearning_rate=0.1)
    draws = generator()
    masks = baseline.masks(baseline.unlearned(trained, clean, draws), clean, draws)
    assert list(masks) == [name]
    mask = masks[name]
    assert mask.min() >= 0.0
    assert mask.max() <= 1.0
    threshold = mask.sort()[0][3].item()  # a channel at the threshold is pruned too
    assert threshold < mask.max()
    before = victims.state(trained)
    before[f"{name}.weight"][mask <= threshold] = 0.0
    repaired = replace(baseline, threshold=threshold).repair(trained, clean)
    assert victims.same(victims.state(repaired), before)  # biases and statistics are as they were


def test_rnp_refuses_a_network_without_channels(clean):
    with pytest.raises(InputError, match="RNP masks channels"):
        ReconstructivePruning().repair(victims.perceptron(0, 784, 10), clean)


# ---- on a poisoned network


@pytest.mark.slow
@pytest.mark.parametrize(
    "baseline", [ImplicitUnlearning(rate=1e-3), SharpnessAware(epochs=20), AttentionDistillation(epochs=20)],
    ids=lambda it: it.name,
)  # fmt: skip
def test_a_poisoned_network_keeps_its_accuracy(baseline, once, tmp_path):
    scenario = Scenario("sample_cnn", "blended", 0)
    network = once("labelled-baselines-blended", lambda: scenario.train(tmp_path).model)
    images, labels = images_of("mnist-sample", "test")
    repaired = baseline.repair(network, CleanData(*scenario.clean(200), None, 0))
    before, after = (
        measure(it, images, labels, trigger=scenario.trigger, target=scenario.target, batch=250)
        for it in (network, repaired)
    )
    assert before.accuracy > 0.95
    assert after.accuracy > before.accuracy - 0.03
    assert after.asr < before.asr + 0.02
