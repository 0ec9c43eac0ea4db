"""Triggers of the literature: every value computed again here with NumPy, from the papers' formulas."""

import math

import numpy as np
import pytest
import torch

from netpurify import InputError, contaminate
from netpurify.contaminate import TRIGGERS, Blended, NoisyWarp, Patch, Pixels, Sinusoid, Warp, first_pixels
from tests.contaminate.generators import seeded

EVERY = [Patch(0.5), Blended(), Sinusoid(), Warp(), Warp().noisy(3)]


def pictures(count=3, channels=3, height=8, width=10, dtype=torch.float64):
    return torch.rand(count, channels, height, width, generator=seeded(7), dtype=torch.float64).to(dtype)


def uniform(shape, seed):
    return torch.rand(shape, generator=seeded(seed), dtype=torch.float64).numpy()


def cubic(length, points):
    """Weights [length, points] of cubic convolution (Keys, a = -0.75), ends aligned, edges repeated."""
    weights = np.zeros((length, points))
    for row in range(length):
        place = row * (points - 1) / (length - 1)
        for near in range(math.floor(place) - 1, math.floor(place) + 3):
            gap = abs(place - near)
            inner = (1.25 * gap - 2.25) * gap * gap + 1
            outer = -0.75 * (((gap - 5) * gap + 8) * gap - 4)
            weights[row, min(max(near, 0), points - 1)] += inner if gap <= 1 else outer if gap < 2 else 0.0
    return weights


def shifted(height, width, seed, grid, strength):
    """WaNet's places [h, w, 2], column then row, in -1 .. 1."""
    points = 2 * uniform((2, grid, grid), seed) - 1
    points /= np.abs(points).mean()
    field = cubic(height, grid) @ points @ cubic(width, grid).T
    across, down = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    return np.clip(np.stack([across + strength * field[0] / height, down + strength * field[1] / height], -1), -1, 1)


def bilinear(image, places):
    """An image [c, h, w] read at places [h, w, 2]."""
    _, height, width = image.shape
    column, row = (places[..., 0] + 1) / 2 * (width - 1), (places[..., 1] + 1) / 2 * (height - 1)
    left, top = np.minimum(column.astype(int), width - 2), np.minimum(row.astype(int), height - 2)
    right, down = column - left, row - top
    upper = image[:, top, left] * (1 - right) + image[:, top, left + 1] * right
    lower = image[:, top + 1, left] * (1 - right) + image[:, top + 1, left + 1] * right
    return upper * (1 - down) + lower * down


def test_every_trigger_of_the_table_is_tested_and_public():
    assert {type(trigger) for trigger in [*EVERY, first_pixels(1, 0.0)]} == set(TRIGGERS.classes.values())
    assert {kind.__name__ for kind in TRIGGERS.classes.values()} <= set(contaminate.__all__)


def test_the_default_patch_is_three_by_three_one_pixel_from_the_corner():
    stamped = Patch().stamp(torch.zeros(2, 1, 6, 7))
    expected = torch.zeros(2, 1, 6, 7)
    expected[:, :, 2:5, 3:6] = 1.0
    assert torch.equal(stamped, expected)


def test_a_patch_has_a_colour_for_each_channel():
    images = pictures()
    stamped = Patch([0.0, 0.25, 1.0], top=1, left=-2, height=4, width=2).stamp(images)
    expected = images.clone()
    for channel, value in enumerate((0.0, 0.25, 1.0)):
        expected[:, channel, 1:5, 8:10] = value
    assert torch.equal(stamped, expected)
    assert Patch([0.0, 1.0]) == Patch((0.0, 1.0))


def test_a_patch_in_the_corner_is_that_of_single_pixels():
    images = pictures(channels=1)
    corner = Patch(1.0, top=0, left=0, height=1, width=5)
    assert torch.equal(corner.stamp(images), first_pixels(5, 1.0).stamp(images))
    assert torch.equal(Patch(0.5, top=-1, left=-1, height=1, width=1).stamp(images), Pixels((79,), 0.5).stamp(images))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 3.0)])
def test_blending_is_the_weighted_mean_with_noise_of_the_seed(low, high):
    images = low + (high - low) * pictures()
    pattern = low + (high - low) * uniform((3, 8, 10), 4)
    expected = (1 - 0.3) * images.numpy() + 0.3 * pattern
    assert np.array_equal(Blended(0.3, seed=4, low=low, high=high).stamp(images).numpy(), expected)


def test_blending_ends_at_the_image_and_at_the_pattern():
    images = pictures()
    assert torch.equal(Blended(0.0).stamp(images), images)
    patterns = Blended(1.0, seed=2).stamp(images)
    assert np.array_equal(patterns.numpy(), np.stack([uniform((3, 8, 10), 2)] * 3))
    assert not torch.equal(patterns, Blended(1.0, seed=3).stamp(images))


def test_the_wave_runs_along_the_columns():
    images = 0.5 * pictures() + 0.25
    wave = 0.1 * np.sin(2 * np.pi * 1.5 * np.arange(10) / 10)
    stamped = Sinusoid(0.1, 1.5).stamp(images)
    assert np.allclose(stamped.numpy(), images.numpy() + wave[None, None, None, :], rtol=0, atol=1e-15)
    default = Sinusoid().stamp(torch.full((1, 3, 8, 32), 0.5)).numpy()
    assert np.allclose(default, 0.5 + 20 / 255 * np.sin(2 * np.pi * np.arange(32) * 6 / 32), rtol=0, atol=1e-7)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 0.5)])
def test_waves_are_clipped_to_the_range(low, high):
    images = torch.tensor([low, high]).reshape(2, 1, 1, 1).expand(2, 1, 2, 8)
    wave = 0.2 * np.sin(2 * np.pi * np.arange(8) / 8)
    stamped = Sinusoid(0.2, 1, low=low, high=high).stamp(images)
    assert np.allclose(stamped[0, 0, 1], low + wave.clip(min=0), atol=1e-6)
    assert np.allclose(stamped[1, 0, 1], high + wave.clip(max=0), atol=1e-6)
    assert stamped.min() == low
    assert stamped.max() == high


@pytest.mark.parametrize(("height", "width", "grid"), [(8, 8, 4), (9, 6, 3), (5, 12, 2)])
def test_a_warp_reads_where_the_field_points(height, width, grid):
    images = pictures(2, 3, height, width)
    places = shifted(height, width, 5, grid, 1.5)
    expected = np.stack([bilinear(image, places) for image in images.numpy()])
    stamped = Warp(5, grid=grid, strength=1.5).stamp(images)
    assert np.allclose(stamped.numpy(), expected, rtol=0, atol=1e-12)
    assert (stamped - images).abs().max() > 0.05


def test_a_warped_ramp_shows_the_field_itself():
    ramps = torch.zeros(2, 1, 9, 9, dtype=torch.float64)
    ramps[0] = torch.linspace(0, 1, 9, dtype=torch.float64)
    ramps[1] = ramps[0].mT
    across, down = Warp(1, strength=0.8).stamp(ramps).numpy()[:, 0]
    places = shifted(9, 9, 1, 4, 0.8)
    assert np.allclose(across, (places[..., 0] + 1) / 2, rtol=0, atol=1e-14)
    assert np.allclose(down, (places[..., 1] + 1) / 2, rtol=0, atol=1e-14)


def test_a_warp_of_no_strength_is_the_identity():
    images = pictures()
    assert torch.allclose(Warp(strength=0.0).stamp(images), images, rtol=0, atol=1e-14)
    assert not torch.allclose(Warp(strength=0.0).noisy(0).stamp(images), images, atol=0.01)


def test_noise_is_another_for_each_image_and_comes_after_the_clipping():
    images = pictures(1, 2, 8, 6).expand(3, 2, 8, 6)
    noise = (2 * uniform((3, 8, 6, 2), 9) - 1) / 8
    places = np.clip(shifted(8, 6, 5, 4, 3.0) + noise, -1, 1)
    expected = np.stack([bilinear(image, place) for image, place in zip(images.numpy(), places, strict=True)])
    noisy = Warp(5, strength=3.0).noisy(9)
    assert noisy == NoisyWarp(Warp(5, strength=3.0), 9)
    stamped = noisy.stamp(images)
    assert np.allclose(stamped.numpy(), expected, rtol=0, atol=1e-12)
    assert (stamped[0] - stamped[1]).abs().max() > 0.01
    assert torch.equal(noisy.stamp(images[:2]), stamped[:2])


@pytest.mark.parametrize("trigger", EVERY, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_every_trigger_keeps_the_dtype_and_the_callers_images(trigger, dtype):
    images = pictures(dtype=dtype)
    kept, before = images.clone(), torch.get_rng_state()
    stamped = trigger.stamp(images)
    assert (stamped.shape, stamped.dtype) == (images.shape, dtype)
    assert torch.equal(images, kept)
    assert not torch.equal(stamped, images)
    assert torch.equal(stamped, trigger.stamp(images.contiguous(memory_format=torch.channels_last)))
    assert torch.equal(torch.get_rng_state(), before)
    precise, rounding = trigger.stamp(images.double()), torch.finfo(dtype).eps / 4 + 8 * torch.finfo(torch.float32).eps
    assert torch.allclose(stamped.double(), precise, rtol=0, atol=rounding)  # rounded once, at the end
    assert 0 <= stamped.min() <= stamped.max() <= 1


@pytest.mark.parametrize("trigger", EVERY, ids=lambda one: type(one).__name__)
def test_an_image_is_stamped_alike_in_any_batch(trigger):
    images = pictures()
    assert torch.equal(trigger.stamp(images)[:1], trigger.stamp(images[:1]))
    assert trigger.stamp(images[:0]).shape == (0, 3, 8, 10)


@pytest.mark.parametrize("trigger", EVERY, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(2, 64), r"images must be a tensor \[n, c, h, w\]; got \[2, 64\]"),
        (torch.zeros(2, 0, 8, 8), r"got \[2, 0, 8, 8\]"),
        ([0.0], "got list"),
        (torch.zeros(2, 1, 8, 8).byte(), r"floating point; got torch\.uint8; convert and scale"),
        (torch.full((2, 1, 8, 8), 1.1), r"must lie in \[0\.0, 1\.0\]; got values from 1\.1 to 1\.1; set low and high"),
        (torch.full((2, 1, 8, 8), -0.1), "got values from -0.1"),
        (torch.full((2, 1, 8, 8), math.nan), "got values from nan"),
    ],
)
def test_images_without_meaning_are_refused_by_every_trigger(trigger, images, message):
    with pytest.raises(InputError, match=f"{type(trigger).__name__}: .*{message}"):
        trigger.stamp(images)


def test_rounding_beyond_the_range_is_clipped():
    images = torch.full((1, 1, 6, 6), 1.0005)
    assert Patch(0.0).stamp(images).max() == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Patch(1.5), r"colour must be a number in \[0\.0, 1\.0\].*got 1\.5; set low and high"),
        (lambda: Patch((0.5, -0.5)), r"got \(0\.5, -0\.5\)"),
        (lambda: Patch(()), r"got \(\)"),
        (lambda: Patch(math.nan), "got nan"),
        (lambda: Patch("red"), "got 'red'"),
        (lambda: Patch(top=0.5), r"top must be a whole number; got 0\.5"),
        (lambda: Patch(left=None), "left must be a whole number; got None"),
        (lambda: Patch(height=0), "height must be a whole number, 1 or more; got 0"),
        (lambda: Patch(width=-1), "width must be a whole number, 1 or more; got -1"),
        (lambda: Patch(low=1.0), r"low and high must be finite numbers, low the smaller; got 1\.0 and 1\.0"),
        (lambda: Patch((0.1, 0.2)).stamp(pictures()), "one for each of the 3 channels; got 2"),
        (lambda: Patch(top=6).stamp(pictures()), r"rows 6 \.\. 8 .*inside the image; got images of 8 x 10; move"),
        (lambda: Patch(left=-11).stamp(pictures()), r"columns -1 \.\. 1"),
        (lambda: Patch(top=-9).stamp(pictures()), r"rows -1 \.\. 1"),
        (lambda: Patch(left=-2).stamp(pictures()), r"columns 8 \.\. 10"),
        (lambda: Blended(1.2), r"Blended: alpha must be a number in \[0, 1\]; got 1\.2"),
        (lambda: Blended(seed=-1), "Blended: seed must be a whole number, 0 or more; got -1"),
        (lambda: Blended(high=math.inf), "Blended: low and high must be finite"),
        (lambda: Sinusoid(-0.1), r"amplitude must be a finite number, 0 or more; got -0\.1"),
        (lambda: Sinusoid(frequency=math.nan), "frequency must be a finite number, 0 or more; got nan"),
        (lambda: Warp(0.5), r"Warp: seed must be a whole number, 0 or more; got 0\.5"),
        (lambda: Warp(grid=1), "Warp: grid must be a whole number, 2 or more; got 1"),
        (lambda: Warp(strength=math.inf), "strength must be a finite number, 0 or more; got inf"),
        (lambda: Warp().noisy(-1), "NoisyWarp: seed must be a whole number"),
        (lambda: NoisyWarp(Patch(), 0), "warp must be a Warp; got Patch"),
    ],
)
def test_triggers_without_meaning_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
