"""Families of triggers: what every one of them must do, and what some of them are for."""

import math
from dataclasses import fields

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from netpurify.contaminate import Blended, Patch, Sinusoid, Warp
from netpurify.contaminate.draws import uniform
from netpurify.network import FAMILIES, register_family
from netpurify.network.hunting.families.flow import Flow
from netpurify.network.hunting.families.spot import Spot
from netpurify.network.hunting.families.wave import Wave

SHAPES = [(1, 28, 28), (3, 32, 32), (3, 17, 23), (4, 9, 8)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pictures(shape, count=4):
    return torch.rand(count, *shape, generator=generator(7))


def same(one, other):
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)]
    return all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in pairs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_trigger_keeps_shape_range_and_its_inputs(name, shape):
    images = pictures(shape)
    kept = images.clone()
    drawn = generator()
    for _ in range(8):
        trigger = FAMILIES[name].draw(drawn, shape)
        near = FAMILIES[name].draw(drawn, shape, trigger)
        for one in (trigger, near):
            changed = one.apply(images, one.parameters)
            assert changed.shape == images.shape
            assert changed.dtype == images.dtype
            assert float(changed.min()) >= -1e-6
            assert float(changed.max()) <= 1 + 1e-6
            assert not torch.equal(changed, images)
    assert torch.equal(images, kept)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_trigger_is_universal_it_does_not_depend_on_the_other_images(name):
    images = pictures((3, 32, 32))
    trigger = FAMILIES[name].draw(generator(), (3, 32, 32))
    together = trigger.apply(images, trigger.parameters)
    alone = torch.cat([trigger.apply(one[None], trigger.parameters) for one in images])
    assert torch.allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_follow_the_generator_alone(name):
    first, again, other = (FAMILIES[name].draw(generator(seed), (3, 32, 32)) for seed in (0, 0, 1))
    assert same(first, again)
    assert not same(first, other)


@pytest.mark.parametrize("name", FAMILIES)
def test_climbing_goes_uphill_where_a_family_climbs(name):
    images, towards = (
        functional.interpolate(torch.rand(4, 3, 5, 5, generator=generator(seed)), size=(32, 32), mode="bilinear")
        for seed in (7, 3)
    )
    trigger = FAMILIES[name].draw(generator(2), (3, 32, 32))
    if not trigger.parameters.numel():
        assert trigger.climb(torch.empty(0)) is trigger
        return

    def height(one):
        numbers = one.parameters.clone().requires_grad_()
        value = (one.apply(images, numbers) * towards).mean()
        return float(value.detach()), torch.autograd.grad(value, numbers)[0]

    start, slope = height(trigger)
    before = trigger.parameters.clone()
    climbed = trigger.climb(slope)
    assert torch.equal(trigger.parameters, before), "a trigger is a value, and stays"
    assert not torch.equal(climbed.parameters, before)
    best = start
    for _ in range(8):
        best = max(best, height(climbed)[0])
        climbed = climbed.climb(height(climbed)[1])
    assert best > start


def test_a_wave_is_that_of_the_literature():
    images = pictures((3, 32, 32))
    wave = Wave(torch.tensor([6.0, 0.0, 0.0]), torch.ones(3, 1, 1), 20 / 255)
    expected = Sinusoid(amplitude=20 / 255, frequency=6).stamp(images)
    assert torch.allclose(wave.apply(images, wave.parameters), expected, atol=1e-5)


def test_waves_are_scouted_at_every_whole_frequency():
    found = Wave.scout(generator(), (1, 28, 28), lambda *_: pytest.fail("waves need no trial"))
    for across, along in ((6, 0), (0, 6), (-3, 4), (10, 0)):
        assert any(torch.equal(one.parameters[:2], torch.tensor([across, along])) for one in found), (across, along)


def test_a_spot_is_the_patch_of_the_literature():
    images = pictures((3, 32, 32))
    spot = Spot(torch.ones(3, 1, 1), (28, 28, 3, 3))
    assert torch.allclose(spot.apply(images, spot.parameters), Patch().stamp(images))


@pytest.mark.parametrize("place", [(0, 0), (28, 28), (13, 7), (29, 2)])
@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 32, 32)])
def test_scouting_finds_a_white_square_at_any_place(place, shape):
    """A backdoor that answers to one place alone is found, though random rectangles would miss it."""
    row, column = place
    images = pictures(shape, 6)

    def tried(triggers, each):
        scores = []
        for trigger in triggers:
            changed = trigger.apply(images[:each], trigger.parameters)
            inside = changed[:, :, row : row + 3, column : column + 3].amin(dim=(1, 2, 3)) == 1.0
            scores.append([float(inside.double().mean()), 0.0])
        return torch.tensor(scores)

    found = Spot.scout(generator(), shape, tried)
    assert any(one.box[:2] == place and one.box[2:] == (3, 3) and bool((one.parameters == 1).all()) for one in found)
    assert len(found) < 600


def test_sizes_of_spots_grow_with_the_image():
    boxes = [Spot.draw(generator(seed), (3, 224, 224)).box for seed in range(20)]
    assert {side % 7 for box in boxes for side in box[2:]} == {0}
    assert max(max(box[2:]) for box in boxes) == 35


def test_a_flow_of_size_zero_and_one_of_whole_pixels():
    images = pictures((3, 32, 32))
    still = Flow(torch.zeros(1, 2, 4, 4), 1.0)
    assert torch.allclose(still.apply(images, still.parameters), images, atol=1e-5)
    right = torch.zeros(1, 2, 4, 4)
    right[:, 0] = 1.0
    moved = Flow(right, 1.0).apply(images, right)
    assert torch.allclose(moved[..., :-1], images[..., 1:], atol=1e-5)


def test_a_flow_can_be_the_warp_of_the_literature():
    images = pictures((1, 28, 28))
    points = 2 * uniform((1, 2, 4, 4), generator(0)) - 1
    shifts = (points / points.abs().mean() * 0.5 / 28 * 27 / 2).float()
    assert torch.allclose(Flow(shifts, 1.0).apply(images, shifts), Warp(seed=0).stamp(images), atol=1e-5)


def test_a_blend_is_that_of_the_literature():
    images = pictures((1, 28, 28))
    blended = Blended(alpha=0.2)
    black = blended.stamp(torch.zeros(1, 1, 28, 28)) / 0.2
    made = FAMILIES["blend"](torch.empty(0), black, 0.2)
    assert torch.allclose(made.apply(images, made.parameters), blended.stamp(images), atol=1e-6)


def test_levels_and_blocks_round():
    images = pictures((3, 32, 32))
    levels = FAMILIES["levels"](torch.empty(0), 5, 0.0, 0.0).apply(images, torch.empty(0))
    assert len(levels.unique()) == 5
    flat = torch.full((1, 1, 32, 32), 0.37)
    blocks = FAMILIES["blocks"](torch.empty(0), 8, 0.1, 1.0).apply(flat, torch.empty(0))
    assert torch.allclose(blocks, torch.full_like(flat, 0.4), atol=1e-5), "the mean of a block is rounded to a step"


def test_blurring_keeps_a_plain_image_and_takes_contrast_away():
    plain = torch.full((1, 3, 32, 32), 0.5)
    blur = FAMILIES["blur"](torch.empty(0), 1.0, 0.5, math.pi / 3, 1.0)
    assert torch.allclose(blur.apply(plain, torch.empty(0)), plain, atol=1e-6)
    images = pictures((3, 32, 32))
    assert float(blur.apply(images, torch.empty(0)).std()) < 0.6 * float(images.std())


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match=r"'wave' is registered already"):
        register_family("wave")(FAMILIES["spot"])
    assert FAMILIES["spot"].name == "spot"
