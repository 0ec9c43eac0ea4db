"""Subsets and inputs: balanced, disjoint, recorded, repeatable; values that a wrong weight or order would miss."""

import numpy as np
import pytest
import torch

from netpurify import InputError, data


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def digits() -> data.Images:
    return data.load("mnist-sample")


@pytest.fixture
def colours() -> data.Images:
    pixels = torch.zeros(4, 2, 2, 3, dtype=torch.uint8)
    pixels[0, 0, 0, 0] = pixels[1, 0, 0, 1] = pixels[2, 0, 0, 2] = 255
    pixels[3] = 255
    return data.Images(pixels, torch.arange(4), torch.arange(4), "made", "train")


def test_classes_are_relabelled_in_the_order_given(digits):
    kept = data.classes(digits, [7, 0, 3])
    originals = digits.labels[torch.isin(digits.labels, torch.tensor([7, 0, 3]))]
    assert torch.tensor([7, 0, 3])[kept.labels].tolist() == originals.tolist()
    assert kept.labels.bincount().tolist() == [500, 500, 500]
    where = {index: place for place, index in enumerate(digits.indices.tolist())}
    assert torch.equal(kept.pixels[5], digits.pixels[where[int(kept.indices[5])]])


@pytest.mark.parametrize(("kept", "message"), [([], "at least one"), ([1, 1], "once"), ([0, 11], r"\[11\] have none")])
def test_classes_that_cannot_be_kept(digits, kept, message):
    with pytest.raises(InputError, match=message):
        data.classes(digits, kept)


def test_balanced_draw_is_recorded_and_repeatable(digits):
    three = data.classes(digits, [0, 1, 2])
    drawn = data.balanced(three, 99, generator=generator())
    assert drawn.labels.bincount().tolist() == [33, 33, 33]
    assert drawn.indices.unique().numel() == 99
    places = torch.searchsorted(three.indices, drawn.indices)
    assert torch.equal(three.pixels[places], drawn.pixels)
    assert torch.equal(three.labels[places], drawn.labels)
    assert torch.equal(drawn.indices, data.balanced(three, 99, generator=generator()).indices)
    assert not torch.equal(drawn.indices, data.balanced(three, 99, generator=generator(1)).indices)


def test_draw_leaves_the_global_generator_alone(digits):
    before = torch.get_rng_state()
    data.balanced(digits, 10, generator=generator())
    assert torch.equal(before, torch.get_rng_state())


def test_first_images_of_a_draw_are_balanced_too(digits):
    drawn = data.balanced(data.classes(digits, [4, 5, 6]), 21, generator=generator())
    assert drawn.labels.tolist() == [0, 1, 2] * 7


def test_remainder_goes_to_the_lowest_labels(digits):
    drawn = data.balanced(digits, 23, generator=generator())
    assert drawn.labels.bincount().tolist() == [3, 3, 3] + [2] * 7
    assert data.balanced(digits, 4, generator=generator()).labels.tolist() == [0, 1, 2, 3]


def test_drawn_subsets_are_disjoint(digits):
    subsets = data.draw(data.classes(digits, [0, 1, 2]), (700, 797), generator=generator())
    assert [len(subset) for subset in subsets] == [700, 797]
    assert torch.cat([subset.indices for subset in subsets]).unique().numel() == 1497
    assert subsets[0].labels.bincount().tolist() == [234, 233, 233]


@pytest.mark.parametrize("counts", [(5001,), (2500, 2501), (0,), (3, -1), (2.5,), ()])
def test_counts_that_cannot_be_drawn(digits, counts):
    with pytest.raises(InputError, match=r"class 0|at least 1"):
        data.draw(digits, counts, generator=generator())


def test_draw_needs_a_generator(digits):
    with pytest.raises(InputError, match="generator"):
        data.balanced(digits, 10, generator=None)  # pyright: ignore[reportArgumentType]


def test_every_image_is_equally_likely(digits):
    hits = torch.zeros(5000)
    ten = data.take(digits, range(5000))
    source = generator(3)
    for _ in range(200):
        hits[torch.searchsorted(ten.indices, data.balanced(ten, 1000, generator=source).indices)] += 1
    # Each image is drawn with probability 1/5: mean 40, standard deviation 5.7.
    assert hits.mean() == 40
    assert 5.3 < hits.std() < 6.1
    assert hits.min() > 12
    assert hits.max() < 68


def test_take_keeps_order_and_refuses_what_is_outside(digits):
    taken = data.take(digits, [5, 2, 5])
    assert taken.indices.tolist() == digits.indices[[5, 2, 5]].tolist()
    for positions in ([], [-1], [5000], [0.5], [[1]]):
        with pytest.raises(InputError, match="positions"):
            data.take(digits, positions)


def test_grey_weights(colours):
    grey = data.grey(colours)
    assert grey.pixels.shape == (4, 2, 2)
    assert grey.pixels.dtype == torch.float64
    assert grey.pixels[:, 0, 0].tolist() == [0.299, 0.587, 0.114, 1.0]
    assert torch.equal(data.to_inputs(grey), grey.pixels.reshape(4, 4))
    with pytest.raises(InputError, match="colour"):
        data.grey(grey)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_inputs_are_pixels_over_255_row_by_row(dtype):
    pixels = torch.arange(256, dtype=torch.uint8).reshape(1, 8, 32)
    images = data.Images(pixels, torch.zeros(1).long(), torch.zeros(1).long(), "made", "test")
    inputs = data.to_inputs(images, dtype=dtype)
    wanted = np.arange(256).astype(str(dtype).removeprefix("torch.")) / 255
    assert inputs.dtype == dtype
    assert np.array_equal(inputs.numpy()[0], wanted.astype(inputs.numpy().dtype))


def test_colour_inputs_interleave_channels(colours):
    assert data.to_inputs(colours)[1].tolist() == [0.0, 1.0, 0.0] + [0.0] * 9


def test_centred_inputs(colours):
    inputs = data.to_inputs(data.grey(colours), centre=(0.48, 0.25))
    assert inputs[0, 0].item() == pytest.approx((0.299 - 0.48) / 0.25, rel=1e-15)
    assert inputs[3, 3].item() == pytest.approx(2.08, rel=1e-15)


@pytest.mark.parametrize("centre", [(0.5, 0.0), (0.5, -1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_centre_that_cannot_be(colours, centre):
    with pytest.raises(InputError, match="scale"):
        data.to_inputs(colours, centre=centre)


def test_inputs_are_floats(colours):
    for make in (data.to_inputs, data.grey):
        with pytest.raises(InputError, match="float"):
            make(colours, dtype=torch.int64)


@pytest.mark.parametrize(
    ("pixels", "labels", "message"),
    [
        (torch.zeros(0, 2, 2, dtype=torch.uint8), torch.zeros(0).long(), "at least one image"),
        (torch.zeros(3, 2, 2, 4, dtype=torch.uint8), torch.zeros(3).long(), r"\[n, h, w, 3\]"),
        (torch.zeros(3, 2, 2, dtype=torch.int32), torch.zeros(3).long(), "uint8"),
        (torch.zeros(3, 2, 2, dtype=torch.uint8), torch.zeros(2).long(), "one for each of 3"),
        (torch.zeros(3, 2, 2, dtype=torch.uint8), torch.zeros(3), "int64"),
    ],
)
def test_images_that_do_not_fit_together(pixels, labels, message):
    with pytest.raises(InputError, match=message):
        data.Images(pixels, labels, torch.arange(len(pixels)), "made", "train")
