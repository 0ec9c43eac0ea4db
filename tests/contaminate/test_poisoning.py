"""Poisoning beyond one target: all-to-all, clean labels, covers; draws of earlier versions to the bit."""

import math

import pytest
import torch
from torch import nn

from netpurify import InputError
from netpurify.contaminate import NextClass, Patch, Pixels, Rates, Warp, first_pixels, measure, poison
from tests.contaminate.generators import seeded

MARK, COVER = first_pixels(2, 1.0), Pixels((8,), 1.0)


def dataset(count=40, classes=4):
    images = torch.rand(count, 1, 3, 3, generator=seeded(11)) * 0.5
    return images, torch.arange(count) % classes


@pytest.mark.parametrize(
    ("source", "indices", "following"),
    [("all", [6, 11, 16, 20, 25, 30, 33, 37], 708009), ("other", [3, 8, 15, 20, 24, 30, 34, 38], 315166)],
)
def test_draws_are_those_of_published_tables(source, indices, following):
    images, labels = dataset()
    generator = seeded(5)
    dirty = poison(images, labels, MARK, target=1, ratio=0.2, generator=generator, source=source)
    assert dirty.indices.tolist() == indices
    assert torch.randint(10**6, (1,), generator=generator).item() == following
    assert (dirty.covers.dtype, dirty.covers.tolist()) == (torch.int64, [])
    covered = poison(images, labels, MARK, target=1, ratio=0.2, generator=seeded(5), source=source, cover=(COVER, 0.3))
    assert covered.indices.tolist() == indices


@pytest.mark.parametrize("source", ["all", "other"])
def test_next_gives_each_image_the_class_after_its_own(source):
    images, labels = dataset()
    kept = labels.clone()
    dirty = poison(images, labels, MARK, target="next", ratio=0.5, generator=seeded(3), source=source)
    alone = poison(images, labels, MARK, target=0, ratio=0.5, generator=seeded(3))
    assert torch.equal(dirty.indices, alone.indices)
    assert torch.equal(dirty.inputs, alone.inputs)
    following = {0: 1, 1: 2, 2: 3, 3: 0}
    expected = [following[one] if number in dirty.indices else one for number, one in enumerate(labels.tolist())]
    assert dirty.labels.tolist() == expected
    assert set(labels[dirty.indices].tolist()) == set(following)
    assert torch.equal(labels, kept)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64], ids=str)
@pytest.mark.parametrize(("classes", "expected"), [(None, [1, 2, 0, 2]), (3, [1, 2, 0, 2]), (10, [1, 2, 3, 2])])
def test_the_first_class_comes_after_the_last(dtype, classes, expected):
    labels = torch.tensor([0, 1, 2, 1], dtype=dtype)
    dirty = poison(torch.zeros(4, 3), labels, MARK, target=NextClass(classes), ratio=1.0, generator=seeded())
    assert (dirty.labels.dtype, dirty.labels.tolist()) == (dtype, expected)


def test_the_last_class_of_a_small_dtype_does_not_wrap_round():
    labels = torch.tensor([126, 127], dtype=torch.int8)
    dirty = poison(torch.zeros(2, 3), labels, MARK, target="next", ratio=1.0, generator=seeded())
    assert dirty.labels.tolist() == [127, 0]


def test_clean_labels_stamp_the_target_class_alone():
    images, labels = dataset()
    dirty = poison(images, labels, MARK, target=1, ratio=0.15, generator=seeded(3), source="target")
    assert len(dirty.indices) == 6
    assert (labels[dirty.indices] == 1).all()
    assert torch.equal(dirty.labels, labels)
    assert dirty.labels is not labels
    assert torch.equal(dirty.inputs[dirty.indices], MARK.stamp(images[dirty.indices]))
    assert (dirty.inputs != images).flatten(1).any(dim=1).nonzero().flatten().equal(dirty.indices)
    every = poison(images, labels, MARK, target=1, ratio=0.25, generator=seeded(), source="target")
    assert every.indices.tolist() == list(range(1, 40, 4))


@pytest.mark.parametrize("source", ["all", "other", "target"])
def test_covers_are_other_images_that_keep_their_label(source):
    images, labels = dataset()
    kept = images.clone()
    options = {"target": 1, "ratio": 0.15, "source": source}
    dirty = poison(images, labels, MARK, **options, generator=seeded(3), cover=(COVER, 0.51))
    bare = poison(images, labels, MARK, **options, generator=seeded(3))
    assert (len(dirty.indices), len(dirty.covers)) == (6, 20)
    assert torch.equal(dirty.covers, dirty.covers.unique())
    assert not set(dirty.covers.tolist()) & set(dirty.indices.tolist())
    assert torch.equal(dirty.labels, bare.labels)
    expected = bare.inputs.clone()
    expected[dirty.covers, 0, 2, 2] = 1.0
    assert torch.equal(dirty.inputs, expected)
    assert torch.equal(images, kept)


def test_covers_are_drawn_alike_from_all_that_is_left():
    images, labels = dataset(8)
    generator, counts = seeded(17), torch.zeros(8)
    for _ in range(2000):
        dirty = poison(images, labels, MARK, target=0, ratio=0.25, generator=generator, cover=(COVER, 0.25))
        counts[dirty.covers] += 1
    assert counts.sum() == 4000
    assert (counts - 500).abs().max() < 4 * math.sqrt(500 * 0.75)


def test_a_larger_share_only_adds_covers_up_to_all_that_is_left():
    images, labels = dataset()
    shares = [0.0, 0.1, 0.4, 0.75]
    drawn = [
        poison(images, labels, MARK, target=0, ratio=0.25, generator=seeded(2), cover=(COVER, share))
        for share in shares
    ]
    covers = [set(one.covers.tolist()) for one in drawn]
    assert [len(one) for one in covers] == [0, 4, 16, 30]
    assert covers[0] < covers[1] < covers[2] < covers[3] == set(range(40)) - set(drawn[0].indices.tolist())


def test_wanet_poisons_with_a_warp_and_covers_with_its_noise():
    images, labels = torch.rand(20, 3, 8, 8, generator=seeded(1)), torch.arange(20) % 4
    warp = Warp(4)
    dirty = poison(images, labels, warp, target="next", ratio=0.1, generator=seeded(), cover=(warp.noisy(6), 0.2))
    assert torch.equal(dirty.inputs[dirty.indices], warp.stamp(images[dirty.indices]))
    assert torch.equal(dirty.inputs[dirty.covers], warp.noisy(6).stamp(images[dirty.covers]))
    assert torch.equal(dirty.labels[dirty.covers], labels[dirty.covers])
    assert torch.equal(dirty.labels[dirty.indices], (labels[dirty.indices] + 1) % 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "last"}, "target must be a class.*got 'last'; give one of them, or \"next\""),
        ({"target": "next", "source": "target"}, r"source=.target. .*needs one class.*got target='next'.*name a class"),
        ({"target": NextClass(1)}, r"classes must be a whole number in 2 \.\. .*got 1"),
        ({"target": NextClass(4.0)}, r"got 4\.0"),
        ({"target": NextClass(3)}, r"labels must lie in 0 \.\. 2, as there are 3 classes; .*from 0 to 3"),
        ({"target": "next", "labels": torch.zeros(40).long()}, "got 1; give the number of classes"),
        ({"target": "next", "labels": torch.arange(40) - 1}, "got labels from -1 to 38"),
        ({"target": NextClass(257), "labels": torch.arange(40).byte()}, r"in 2 \.\. 256; got 257"),
        ({"source": "target", "ratio": 0.3}, "asks for 12 whose label is 1; 10 are available; lower the ratio$"),
        ({"cover": COVER}, r"cover must be a trigger and its share.*\(trigger, share\); got Pixels"),
        ({"cover": (COVER,)}, r"\(trigger, share\); got \(Pixels"),
        ({"cover": (COVER, 1.5)}, r"the cover's share must be a number in \[0, 1\]; got 1\.5"),
        (
            {"cover": (COVER, 0.8)},
            r"share 0\.8 of 40 images asks for 32; 30 are left beside the 10 poisoned ones; lower",
        ),
        ({"cover": (Patch(top=3), 0.5)}, r"rows 3 \.\. 5"),
    ],
)
def test_poisoning_without_meaning_is_refused(changes, message):
    images, labels = dataset()
    given = {"labels": labels, "target": 1, "ratio": 0.25, "generator": seeded()} | changes
    with pytest.raises(InputError, match=message):
        poison(images, given.pop("labels"), MARK, **given)


def scripted(images):
    """Gives images (clean class, class under the trigger, mark) the class that fits their mark, of three."""
    chosen = torch.where(images[:, 2] > 0, images[:, 1], images[:, 0]).long()
    return nn.functional.one_hot(chosen, 3).float()


@pytest.mark.parametrize("batch", [2, 1024])
def test_rates_of_all_to_all_are_those_counted_by_hand(batch):
    labels = torch.tensor([0, 0, 1, 1, 2, 2, 2, 0], dtype=torch.uint8)
    clean, triggered = [0, 1, 1, 1, 2, 0, 2, 0], [1, 0, 2, 1, 0, 0, 1, 2]
    images = torch.tensor([[one, other, 0] for one, other in zip(clean, triggered, strict=True)]).float()
    rates = measure(scripted, images, labels, trigger=Pixels((2,), 1.0), target="next", batch=batch)
    assert measure(scripted, images, labels, trigger=Pixels((2,), 1.0), target=NextClass(3), batch=batch) == rates
    with pytest.raises(InputError, match=r"NextClass\(classes=7\) needs that many classes; there are 3"):
        measure(scripted, images, labels, trigger=Pixels((2,), 1.0), target=NextClass(7), batch=batch)
    assert rates == Rates(accuracy=6 / 8, asr=4 / 8, asr_all=4 / 8, ra=2 / 8)


def test_a_target_that_is_no_class_is_not_measured():
    with pytest.raises(InputError, match="got 'last'"):
        measure(scripted, torch.zeros(2, 3), torch.zeros(2).long(), trigger=MARK, target="last")
