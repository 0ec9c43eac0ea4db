"""Triggers, poisoned data and attack rates: exact pixels, recorded draws, rates counted by hand, no traces left."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from netpurify import InputError
from netpurify.contaminate import Pixels, Rates, accuracy, first_pixels, measure, poison
from tests.contaminate.generators import seeded


def dataset(count=40, classes=4):
    images = torch.rand(count, 1, 3, 3, generator=seeded(11)) * 0.5
    return images, torch.arange(count) % classes


@dataclass(frozen=True)
class Stamps:
    """A trigger that does whatever a function does."""

    make: object

    def stamp(self, images):
        return self.make(images)


class Scripted:
    """Predicts, for images [n, 2] of (clean class, class under the trigger), the one that fits their mark."""

    def __init__(self, classes):
        self.classes = classes

    def __call__(self, images):
        chosen = torch.where(images[:, 2] > 0, images[:, 1], images[:, 0]).long()
        return nn.functional.one_hot(chosen, self.classes).float()


MARK = Pixels((2,), 1.0)


def script(clean, triggered):
    return torch.tensor([[one, other, 0.0] for one, other in zip(clean, triggered, strict=True)])


def test_pixels_are_counted_row_by_row_after_the_batch():
    images = torch.zeros(2, 2, 3, 4)
    stamped = Pixels((0, 5, 13), 0.75).stamp(images)
    expected = torch.zeros(2, 2, 3, 4)
    expected[:, 0, 0, 0] = expected[:, 0, 1, 1] = expected[:, 1, 0, 1] = 0.75
    assert torch.equal(stamped, expected)
    assert not images.any()
    turned = images.to(memory_format=torch.channels_last)
    assert torch.equal(Pixels((0, 5, 13), 0.75).stamp(turned), expected)


def test_first_pixels_are_the_first():
    assert first_pixels(5, 1.0) == Pixels((0, 1, 2, 3, 4), 1.0)
    stamped = first_pixels(5, 2.0).stamp(torch.ones(3, 8))
    assert stamped.tolist() == [[2.0] * 5 + [1.0] * 3] * 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int32], ids=str)
def test_stamps_keep_the_dtype(dtype):
    stamped = first_pixels(2, 200).stamp(torch.zeros(2, 3, dtype=dtype))
    assert stamped.dtype == dtype
    assert stamped.tolist() == [[200, 200, 0]] * 2


def test_an_expanded_batch_and_an_empty_one_are_stamped():
    assert Pixels([1], 1.0).stamp(torch.zeros(1, 3).expand(4, 3)).tolist() == [[0.0, 1.0, 0.0]] * 4
    assert Pixels([1], 1.0).stamp(torch.zeros(0, 1, 2, 2)).shape == (0, 1, 2, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pixels((), 1.0), "positions must name at least one coordinate"),
        (lambda: first_pixels(0, 1.0), "at least one coordinate"),
        (lambda: Pixels((3, -1), 1.0), r"whole numbers, 0 or more; got \(3, -1\)"),
        (lambda: Pixels((0.5,), 1.0), r"whole numbers, 0 or more; got \(0\.5,\)"),
        (lambda: Pixels((3, 1, 3), 1.0), r"positions must differ; got \(3, 1, 3\)"),
        (lambda: Pixels((3,), math.nan), "value must be a finite number; got nan"),
        (lambda: Pixels((9,), 1.0).stamp(torch.zeros(2, 1, 3, 3)), r"position 9 .*has 9 coordinates \[1, 3, 3\]"),
        (lambda: Pixels((0,), 1.0).stamp(torch.zeros(4)), r"images must be a tensor \[n, d\].*got \[4\]"),
        (lambda: Pixels((0,), 0.5).stamp(torch.zeros(2, 2).byte()), r"images are torch\.uint8, which cannot hold"),
        (lambda: Pixels((0,), 256).stamp(torch.zeros(2, 2).byte()), "cannot hold the value 256"),
        (lambda: Pixels((0,), 1e6).stamp(torch.zeros(2, 2).half()), "cannot hold the value 1000000"),
    ],
)
def test_pixels_without_meaning_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("source", ["all", "other"])
def test_the_recorded_indices_are_the_poisoned_images(source):
    images, labels = dataset()
    kept = images.clone(), labels.clone()
    trigger = first_pixels(2, 1.0)
    dirty = poison(images, labels, trigger, target=1, ratio=0.25, generator=seeded(3), source=source)
    assert len(dirty.indices) == 10
    assert torch.equal(dirty.indices, dirty.indices.unique())
    assert ((dirty.inputs != images).flatten(1).any(dim=1).nonzero().flatten()).equal(dirty.indices)
    assert torch.equal(dirty.inputs[dirty.indices], trigger.stamp(images[dirty.indices]))
    assert (dirty.labels[dirty.indices] == 1).all()
    rest = torch.ones(40, dtype=torch.bool).index_fill_(0, dirty.indices, False)
    assert torch.equal(dirty.labels[rest], labels[rest])
    assert torch.equal(images, kept[0])
    assert torch.equal(labels, kept[1])
    if source == "other":
        assert (labels[dirty.indices] != 1).all()


def test_all_draws_from_the_target_class_too():
    images, labels = dataset()
    dirty = poison(images, labels, MARK, target=1, ratio=1.0, generator=seeded())
    assert dirty.indices.tolist() == list(range(40))
    other = poison(images, labels, MARK, target=1, ratio=0.75, generator=seeded(), source="other")
    assert other.indices.tolist() == [number for number in range(40) if number % 4 != 1]


@pytest.mark.parametrize(
    ("count", "ratio", "poisoned"),
    [(10, 0.25, 3), (10, 0.05, 1), (10, 0.04, 0), (10, 0.34, 3), (6, 0.75, 5), (3, 0, 0)],
)
def test_halves_are_rounded_up(count, ratio, poisoned):
    images, labels = dataset(count)
    dirty = poison(images, labels, MARK, target=0, ratio=ratio, generator=seeded())
    assert len(dirty.indices) == poisoned


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), low=st.floats(0, 1), high=st.floats(0, 1))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_draw_repeats_and_a_larger_ratio_only_adds(seed, low, high):
    images, labels = dataset()
    low, high = sorted((low, high))
    less = poison(images, labels, MARK, target=0, ratio=low, generator=seeded(seed))
    again = poison(images, labels, MARK, target=0, ratio=low, generator=seeded(seed))
    more = poison(images, labels, MARK, target=0, ratio=high, generator=seeded(seed))
    assert torch.equal(less.indices, again.indices)
    assert set(less.indices.tolist()) <= set(more.indices.tolist())


def test_every_image_is_drawn_alike():
    images, labels = dataset(8)
    generator = seeded(17)
    counts = torch.zeros(8)
    for _ in range(2000):
        counts[poison(images, labels, MARK, target=0, ratio=0.25, generator=generator).indices] += 1
    assert counts.sum() == 4000
    assert (counts - 500).abs().max() < 4 * math.sqrt(500 * 0.75)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ratio": 1.5}, r"ratio must be a number in \[0, 1\]; got 1\.5"),
        ({"ratio": math.nan}, "got nan"),
        ({"ratio": 0.8, "source": "other"}, "asks for 32 whose label is not 1; 30 are available"),
        ({"source": "some"}, 'source must be "all", "other" or "target"; got \'some\''),
        ({"target": -1}, "target must be a class.*got -1"),
        ({"target": 1.0}, r"target must be a class.*got 1\.0"),
        ({"labels": torch.zeros(40, dtype=torch.uint8), "target": 256}, r"in 0 \.\. 255; got 256"),
        ({"labels": torch.zeros(40)}, r"labels must be integers; got torch\.float32"),
        ({"labels": torch.zeros(40).bool()}, r"labels must be integers; got torch\.bool"),
        ({"labels": torch.zeros(39).long()}, r"labels must be a tensor \[40\].*got \[39\]"),
        ({"labels": torch.zeros(40, 1).long()}, r"got \[40, 1\]"),
        ({"labels": [0] * 40}, "got list"),
        ({"inputs": torch.zeros(0, 3), "labels": torch.zeros(0).long()}, "at least one image; got none"),
        ({"inputs": torch.zeros(40)}, r"images must be a tensor \[n, d\]"),
        ({"generator": 5}, r"generator must be a torch\.Generator; got int"),
        ({"trigger": first_pixels(10, 1.0)}, "the image, which has 9 coordinates"),
        ({"trigger": Stamps(lambda images: images[:1])}, r"must keep images \[10, 1, 3, 3\].*got \[1, 1, 3, 3\]"),
        ({"trigger": Stamps(lambda images: images.double())}, r"got \[10, 1, 3, 3\], torch\.float64"),
        ({"trigger": Stamps(lambda _: None)}, "must return the stamped images; got NoneType"),
    ],
)
def test_poisoning_without_meaning_is_refused(changes, message):
    images, labels = dataset()
    given = {"inputs": images, "labels": labels, "trigger": MARK, "target": 1, "ratio": 0.25, "generator": seeded()}
    given |= changes
    with pytest.raises(InputError, match=message):
        poison(given.pop("inputs"), given.pop("labels"), given.pop("trigger"), **given)


@pytest.mark.parametrize("batch", [1, 3, 8, 1024])
def test_rates_are_those_counted_by_hand(batch):
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2])
    #                  clean: five of eight right   triggered: target 0
    images = script([0, 1, 1, 1, 0, 2, 2, 0], [0, 2, 0, 0, 1, 0, 1, 2])
    rates = measure(Scripted(3), images, labels, trigger=MARK, target=0, batch=batch)
    assert rates == Rates(accuracy=5 / 8, asr=3 / 6, asr_all=4 / 8, ra=2 / 6)
    assert accuracy(Scripted(3), images, labels, batch=batch) == 5 / 8


def test_attack_rates_are_nan_without_other_classes():
    rates = measure(Scripted(3), script([1, 1], [1, 2]), torch.tensor([1, 1]), trigger=MARK, target=1)
    assert math.isnan(rates.asr)
    assert math.isnan(rates.ra)
    assert (rates.accuracy, rates.asr_all) == (1.0, 0.5)


def test_nan_scores_choose_no_class():
    def broken(images):
        return torch.full((len(images), 3), math.nan)

    labels = torch.tensor([0, 1, 2])
    rates = measure(broken, torch.zeros(3, 4), labels, trigger=MARK, target=0)
    assert rates == Rates(accuracy=0.0, asr=0.0, asr_all=0.0, ra=0.0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64], ids=str)
def test_labels_of_any_integer_dtype(dtype):
    labels = torch.tensor([0, 1, 2, 2], dtype=dtype)
    rates = measure(Scripted(3), script([0, 1, 2, 1], [0, 0, 2, 0]), labels, trigger=MARK, target=0)
    assert rates == Rates(accuracy=0.75, asr=2 / 3, asr_all=0.75, ra=1 / 3)


class Restless(nn.Module):
    """Draws random numbers, notes how it was called and fails if asked to."""

    def __init__(self, *, fails=False):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
        self.fails = fails
        self.seen = []

    def forward(self, images):
        self.seen.append((self.training, self.body[1].training, torch.is_grad_enabled()))
        if self.fails and len(self.seen) == 2:
            raise RuntimeError("no more")
        return self.body(images) + 0.0 * torch.rand(1)


def restless(**options):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = Restless(**options)
    model.body[1].eval()
    return model


def test_modes_buffers_and_randomness_are_as_they_were():
    model, images, labels = restless(), torch.rand(10, 4, generator=seeded()), torch.arange(10) % 3
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    modes, before = [module.training for module in model.modules()], torch.get_rng_state()
    pictures = images.clone()
    measure(model, images, labels, trigger=Stamps(lambda given: given.add_(1.0)), target=0, batch=4)
    assert set(model.seen) == {(False, False, False)}
    assert len(model.seen) == 6
    assert [module.training for module in model.modules()] == modes
    assert modes == [True, True, True, False, True]
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    assert torch.equal(images, pictures)
    assert torch.is_grad_enabled()


def test_a_model_that_raises_gets_its_modes_back():
    model, before = restless(fails=True), torch.get_rng_state()
    modes = [module.training for module in model.modules()]
    with pytest.raises(RuntimeError, match="no more"):
        accuracy(model, torch.zeros(6, 4), torch.zeros(6).long(), batch=2)
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": torch.tensor([0, 1, 3])}, r"labels must lie in 0 \.\. 2, as the model gives 3.*from 0 to 3"),
        ({"labels": torch.tensor([0, -1, 2])}, "got labels from -1 to 2"),
        ({"labels": torch.zeros(3)}, "labels must be integers"),
        ({"target": 3}, r"target must be a class, a whole number in 0 \.\. 2; got 3"),
        ({"batch": 0}, "batch must be a whole number, 1 or more; got 0"),
        ({"inputs": torch.zeros(0, 3), "labels": torch.zeros(0).long()}, "at least one image"),
        ({"model": lambda images: images[:, :1]}, r"scores \[3, classes\], two classes or more; got \[3, 1\]"),
        ({"model": lambda images: images[:, 0]}, r"got \[3\]"),
        ({"model": lambda images: images[:2]}, r"got \[2, 3\]"),
        ({"model": lambda images: [images]}, "got list"),
        ({"model": lambda images: torch.zeros(len(images), 1 + len(images)), "batch": 2}, "got 3, then 2"),
    ],
)
def test_measuring_without_meaning_is_refused(changes, message):
    given = {"model": Scripted(3), "inputs": script([0, 1, 2], [0, 0, 0]), "labels": torch.tensor([0, 1, 2])}
    given |= {"trigger": MARK, "target": 0} | changes
    with pytest.raises(InputError, match=message):
        measure(given.pop("model"), given.pop("inputs"), given.pop("labels"), **given)
