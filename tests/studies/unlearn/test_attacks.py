"""Attacks set aside: stamps depend on the image alone, covers keep labels, and known networks are not trained again."""

import math
from dataclasses import dataclass

import pytest
import torch

from netpurify.contaminate import Patch, Sinusoid, measure
from netpurify.errors import InputError
from netpurify.experiments.studies.defence.scenarios import ATTACKS, Scenario, images_of
from netpurify.experiments.studies.unlearn import attacks
from netpurify.experiments.studies.unlearn.attacks import (
    PATCH_COLOURS,
    SET_ASIDE,
    FamilyCover,
    InputAware,
    LowFrequencyPattern,
    NearMiss,
    Reflection,
    SeveralPatches,
    Steganographic,
    ToneFilter,
)
from netpurify.experiments.studies.unlearn.scenarios import CHOSEN_LATER, UnlearnScenario
from netpurify.network import FAMILIES

OWN = [InputAware(), Reflection(), LowFrequencyPattern(), SeveralPatches(), ToneFilter(), Steganographic()]
COVERS = [NearMiss(InputAware()), NearMiss(SeveralPatches()), FamilyCover(3)]
SPECIFIC = [InputAware(), Steganographic()]
SHAPES = [(1, 28, 28), (3, 32, 32)]


def named(one):
    return f"{type(one).__name__}-{type(one.trigger).__name__}" if isinstance(one, NearMiss) else type(one).__name__


@dataclass(frozen=True)
class Shade:
    """A family like those of ``netpurify.network``: images are darkened by a share drawn at random."""

    parameters: torch.Tensor

    @classmethod
    def draw(cls, generator, shape):
        assert len(shape) == 3
        return cls(torch.rand(1, generator=generator))

    def apply(self, images, parameters):
        return images * parameters


class Light(Shade):
    """The same, but brightened."""

    def apply(self, images, parameters):
        return 1 - (1 - images) * parameters


@pytest.fixture(autouse=True)
def families(monkeypatch):
    """Two families whose stamps can be told apart, whatever the library's own are."""
    monkeypatch.setattr(attacks, "FAMILIES", {"shade": Shade, "light": Light})


def pictures(shape=(3, 32, 32), count=12, seed=7, dtype=torch.float32):
    """Smooth random pictures, so that coarse contents differ."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, shape[0], 5, 5, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=shape[1:], mode="bilinear", align_corners=True)
    return (255 * smooth).round().div(255).to(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("trigger", [*OWN, *COVERS], ids=named)
def test_stamps_keep_shape_dtype_and_range_and_leave_all_else_alone(trigger, dtype, shape):
    images = pictures(shape, dtype=dtype)
    before, drawn = images.clone(), torch.random.get_rng_state()
    stamped = trigger.stamp(images)
    assert (stamped.shape, stamped.dtype) == (images.shape, dtype)
    assert 0 <= stamped.min() <= stamped.max() <= 1
    assert (stamped != images).flatten(1).any(1).all()
    assert torch.equal(images, before)
    assert torch.equal(torch.random.get_rng_state(), drawn)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("trigger", [*OWN, *COVERS], ids=named)
def test_an_image_is_stamped_alike_in_any_batch_and_order(trigger, shape):
    images = pictures(shape)
    stamped = trigger.stamp(images)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    assert torch.equal(trigger.stamp(images[order]), stamped[order])
    assert torch.equal(torch.cat([trigger.stamp(image[None]) for image in images]), stamped)
    assert torch.equal(trigger.stamp(images.contiguous(memory_format=torch.channels_last)), stamped)
    assert trigger.stamp(images[:0]).shape == (0, *shape)


@pytest.mark.parametrize("trigger", [*OWN, *COVERS], ids=named)
@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(2, 784), r"floating point \[n, c, h, w\], from 16 x 16; got torch\.float32 \[2, 784\]; convert"),
        (torch.zeros(2, 1, 28, 28).byte(), r"got torch\.uint8"),
        (torch.zeros(2, 3, 8, 32), r"got torch\.float32 \[2, 3, 8, 32\]"),
        ([0.0], "got list"),
        (torch.full((2, 1, 28, 28), 1.1), r"must lie in \[0, 1\]; got values from 1\.1 to 1\.1; scale them"),
        (torch.full((2, 1, 28, 28), math.nan), "got values from nan"),
    ],
)
def test_what_is_no_image_is_refused(trigger, images, message):
    with pytest.raises(InputError, match=message):
        trigger.stamp(images)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("trigger", SPECIFIC, ids=named)
def test_what_depends_on_the_image_differs_between_images_and_is_stable(trigger, shape):
    images = pictures(shape, count=64) * 0.5 + 0.25  # away from the ends, so that nothing is clipped
    noise = (torch.rand(images.shape, generator=torch.Generator().manual_seed(2)) - 0.5) * 4 / 255
    patterns, noisy = own_pattern(trigger, images), own_pattern(trigger, images + noise)
    different = (patterns[:, None] != patterns[None]).any(2)
    assert different.double().mean() > 0.75
    assert (patterns == noisy).double().mean() > 0.9


def own_pattern(trigger, images):
    """What is drawn for each image, [n, d]: the patch on grey, or the signs of the change."""
    if isinstance(trigger, InputAware):
        return trigger.place(torch.full_like(images, 0.5), trigger.keys(images)).flatten(1)
    return (trigger.stamp(images) - images).sign().flatten(1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_input_aware_patch_is_the_images_own_and_the_covers_is_another_images(shape):
    trigger, images = InputAware(), pictures(shape, count=200)
    keys, others = trigger.keys(images), trigger.cover_keys(images)
    assert len(keys.unique()) == 8
    assert (keys != others).all()
    assert len(((others - keys) % 8).unique()) == 7
    assert torch.equal(trigger.keys(trigger.stamp(images)), keys)
    assert torch.equal(trigger.keys(NearMiss(trigger).stamp(images)), keys)
    assert (NearMiss(trigger).stamp(images) != trigger.stamp(images)).flatten(1).any(1).all()
    patches = torch.cat([trigger.place(torch.full((1, *shape), 0.5), torch.tensor([key])) for key in range(8)])
    assert len(patches.flatten(1).unique(dim=0)) == 8
    assert torch.equal((patches != 0.5).flatten(1).sum(1), torch.full((8,), 9 * shape[0]))


def test_content_is_compared_otherwise_with_another_seed():
    images = pictures(count=64)
    assert not torch.equal(InputAware(0).keys(images), InputAware(1).keys(images))
    for kind in (Reflection, LowFrequencyPattern, Steganographic):
        assert not torch.equal(kind(0).stamp(images), kind(1).stamp(images))


def test_a_reflection_is_one_smooth_structured_scene_for_all_images():
    black, white = torch.zeros(1, 3, 32, 32), torch.ones(1, 3, 32, 32)
    scene = Reflection(4, strength=0.25).stamp(black) / 0.25
    assert torch.allclose(Reflection(4, strength=0.25).stamp(white), 0.75 + 0.25 * scene, atol=1e-6)
    assert scene.std() > 0.1
    steps = (scene[..., 1:] - scene[..., :-1]).abs()
    assert steps.mean() < 0.05 < steps.max()
    assert torch.equal(Reflection(strength=0.0).stamp(white), white)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_low_frequency_pattern_has_low_frequencies_only_and_its_bound(shape):
    grey = torch.full((1, *shape), 0.5, dtype=torch.float64)
    pattern = (LowFrequencyPattern(amplitude=0.1).stamp(grey) - grey)[0]
    assert pattern.abs().max() == pytest.approx(0.1)
    side = shape[1]
    places = torch.arange(side, dtype=torch.float64)
    cosines = torch.cos(math.pi / side * (places + 0.5) * places[:, None])
    spectrum = (cosines @ pattern @ cosines.T).abs()
    low = spectrum[:, :5, :5]
    assert spectrum.square().sum() - low.square().sum() < 1e-20 * spectrum.square().sum()
    assert low[:, 0, 0].max() < 1e-9
    assert (low > 0.05 * low.max()).sum() >= 8 * shape[0]  # no single wave


def test_all_four_patches_are_the_trigger_and_covers_have_some():
    images = torch.full((200, 3, 32, 32), 0.5)
    images[:, 0, 16, :8] = pictures(count=200)[:, 0, 16, :8]  # tells the images apart
    corners = [(2, 2), (2, 28), (28, 2), (28, 28)]

    def shown(stamped):
        return torch.stack([
            (stamped[:, :, row : row + 2, column : column + 2] == torch.tensor(colour)[:, None, None]).flatten(1).all(1)
            for (row, column), colour in zip(corners, PATCH_COLOURS, strict=True)
        ], 1)  # fmt: skip

    stamped, covered = SeveralPatches().stamp(images), NearMiss(SeveralPatches()).stamp(images)
    assert shown(stamped).all()
    assert (stamped != images).any(1).sum() == 200 * 16
    assert set(shown(covered).sum(1).tolist()) == {1, 2, 3}
    grey = SeveralPatches().stamp(torch.zeros(1, 1, 28, 28))
    assert grey[0, 0, 2, 2].item() == pytest.approx(sum(PATCH_COLOURS[0]) / 3)
    assert len({round(sum(colour), 3) for colour in PATCH_COLOURS}) == 4


def test_a_filter_bends_the_curves_of_the_colours_and_keeps_shapes():
    tone = ToneFilter()
    ramp = torch.linspace(0, 1, 32).expand(1, 3, 32, 32)
    toned = tone.stamp(ramp)
    assert (toned.diff(dim=3) >= 0).all()
    assert not torch.allclose(toned[:, 0], toned[:, 2], atol=0.02)
    plain = ToneFilter(gamma=(1.0, 1.0, 1.0), black=(0.0, 0.0, 0.0), white=(1.0, 1.0, 1.0), saturation=1.0)
    assert torch.allclose(plain.stamp(pictures()), pictures(), atol=1e-6)
    assert torch.allclose(tone.stamp(ramp[:, :1])[:, 0], toned.mean(1), atol=1e-6)
    with pytest.raises(InputError, match="1 or 3 channels; got 2; convert them"):
        tone.stamp(torch.zeros(1, 2, 28, 28))


def test_a_steganographic_pattern_is_faint():
    images = pictures() * 0.5 + 0.25
    change = Steganographic().stamp(images) - images
    assert torch.allclose(change.abs(), torch.tensor(10 / 255), atol=1e-6)
    assert change.mean().abs() < 1e-6


def test_a_family_cover_draws_for_each_image_from_every_family():
    images = pictures(count=40) * 0.5 + 0.25
    stamped = FamilyCover(0).stamp(images)
    darker = (stamped < images).flatten(1).all(1)
    assert 5 < darker.sum() < 35
    assert (stamped[~darker] > images[~darker]).all()
    shares = (stamped[darker] / images[darker]).flatten(1)
    assert len(shares[:, 0].unique()) == len(shares)
    assert not torch.equal(FamilyCover(1).stamp(images), stamped)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_family_cover_works_with_every_family_of_the_library(shape, monkeypatch):
    images = pictures(shape)
    for name, family in FAMILIES.items():
        monkeypatch.setattr(attacks, "FAMILIES", {name: family})
        stamped = FamilyCover(0).stamp(images)
        assert (stamped.shape, stamped.dtype) == (images.shape, images.dtype)
        assert torch.equal(FamilyCover(0).stamp(images.flip(0)), stamped.flip(0))


def poisoned(attack, seed=0):
    scenario = UnlearnScenario("sample_cnn", attack, seed)
    images, labels = images_of("mnist-sample", "train")
    images, labels = images[:1000], labels[:1000]
    return scenario, images, labels, scenario.poisoned(images, labels)


@pytest.mark.parametrize("attack", SET_ASIDE)
def test_poisoned_images_are_stamped_covers_keep_their_label_and_the_rest_is_as_it_was(attack):
    scenario, images, labels, dirty = poisoned(attack)
    made = SET_ASIDE[attack]
    assert len(dirty.indices) == round(1000 * made.ratio)
    assert len(dirty.covers) == round(1000 * made.cover_ratio)
    assert torch.equal(dirty.inputs[dirty.indices], scenario.trigger.stamp(images[dirty.indices]))
    if made.cover is not None:
        assert torch.equal(dirty.inputs[dirty.covers], made.cover.stamp(images[dirty.covers]))
    assert torch.equal(dirty.labels[dirty.covers], labels[dirty.covers])
    rest = torch.ones(1000, dtype=torch.bool)
    rest[torch.cat([dirty.indices, dirty.covers])] = False
    assert torch.equal(dirty.inputs[rest], images[rest])
    assert torch.equal(dirty.labels[rest], labels[rest])
    if made.target == "class" and made.source == "other":
        assert (dirty.labels[dirty.indices] == scenario.target).all()
        assert (labels[dirty.indices] != scenario.target).all()


def test_all_to_all_gives_each_poisoned_image_the_next_class():
    scenario, _, labels, dirty = poisoned("all-to-all")
    assert (scenario.target, scenario.trigger) == ("next", Patch())
    assert torch.equal(dirty.labels[dirty.indices], (labels[dirty.indices] + 1) % 10)


@pytest.mark.parametrize("seed", range(3))
def test_clean_label_changes_no_label(seed):
    scenario, _, labels, dirty = poisoned("clean-label", seed)
    assert isinstance(scenario.trigger, Sinusoid)
    assert torch.equal(dirty.labels, labels)
    assert (labels[dirty.indices] == scenario.target).all()


def test_what_is_set_aside_is_every_new_attack_the_warp_vgg_and_other_seeds():
    assert not set(ATTACKS) & set(SET_ASIDE)
    known = {"none", "patch", "blended", "sig"}
    for chosen in ("sample_cnn", "mnist_cnn", "resnet", "vgg"):
        for attack in (*ATTACKS, *SET_ASIDE):
            for seed in range(3):
                free = chosen != "vgg" and attack in known and seed == 0
                free |= (chosen, attack, seed) in CHOSEN_LATER
                assert UnlearnScenario(chosen, attack, seed).set_aside == (not free)


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_of_the_defence_study_are_the_same(attack):
    images, labels = images_of("mnist-sample", "train")
    ours, theirs = (kind("sample_cnn", attack, 1) for kind in (UnlearnScenario, Scenario))
    assert (ours.target, ours.trigger) == (theirs.target, theirs.trigger)
    assert torch.equal(ours.clean(50)[0], theirs.clean(50)[0])
    found, expected = (one.poisoned(images[:500], labels[:500]) for one in (ours, theirs))
    assert (found is None) == (expected is None)
    if found is not None:
        assert torch.equal(found.inputs, expected.inputs)
        assert torch.equal(found.labels, expected.labels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("lenet", "patch", 0), "the network must be one of sample_cnn, .*; got 'lenet'"),
        (("vgg", "ghost", 0), "the attack must be one of none, .*, adaptive; got 'ghost'"),
        (("vgg", "patch", 3), r"the seed must be one of 0 \.\. 2, or any other of a healthy network; got 3"),
    ],
)
def test_unknown_scenarios_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        UnlearnScenario(*settings)


@pytest.mark.slow
def test_a_network_of_the_defence_study_is_not_trained_again(tmp_path):
    theirs = Scenario("sample_cnn", "patch", 0).train(tmp_path)
    ours = UnlearnScenario("sample_cnn", "patch", 0).train(tmp_path)
    assert ours.digest == theirs.digest
    assert len(list(tmp_path.glob("*.safetensors"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["reflection", "filter"])
def test_an_attack_works_on_a_small_network(attack, tmp_path):
    scenario = UnlearnScenario("sample_cnn", attack, 0)
    trained = scenario.train(tmp_path)
    images, labels = images_of("mnist-sample", "test")
    rates = measure(trained.model, images, labels, trigger=scenario.trigger, target=scenario.target)
    assert rates.accuracy > 0.9
    assert rates.asr > 0.8
