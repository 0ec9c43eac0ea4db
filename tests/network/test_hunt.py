"""Hunting for backdoors: what is found, what is refused, and that nothing is changed."""

import copy
import json
import re
import time
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
import torch
from torch import nn

from netpurify import InputError, hunt
from netpurify.network import (
    FAMILIES,
    Expectation,
    FamilyHunt,
    FoundTrigger,
    HealthyLevel,
    TriggerFamily,
    calibrate,
    expectation_for,
    load_expectation,
)
from netpurify.network.hunting.families.spot import _corners
from netpurify.network.hunting.hunting import choose_families
from netpurify.network.hunting.scoring import Ground, Scorer
from netpurify.network.hunting.search import generator_for, search
from tests.network import hunted
from tests.toys import victims


@pytest.fixture(scope="module")
def clean():
    return hunted.images("test", 150)[0]


@pytest.fixture
def poisoned(once):
    return once("hunted poisoned", lambda: hunted.trained(poisoned=True))


@pytest.fixture
def healthy(once):
    return once("hunted healthy", lambda: hunted.trained(poisoned=False))


def level(widest=0.1, hunts=3):
    return HealthyLevel(0.1, 0.2, 0.05, widest, hunts)


def found(*pairs):
    return tuple(FoundTrigger("spot", target, success, None) for target, success in pairs)  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_a_backdoor_is_found_and_a_healthy_network_is_not_suspect(poisoned, healthy, clean):
    guilty, innocent = hunt(poisoned, clean), hunt(healthy, clean)
    assert guilty.goals == (hunted.TARGET,)
    assert guilty.suspects[0].family in ("spot", "spots")
    assert guilty.suspects[0].success > 0.8
    assert innocent.goals == ()
    assert innocent.suspects == ()
    assert len(innocent.families) == len(FAMILIES)
    # The trigger that was found is the real one, as far as the network is concerned.
    images, labels = hunted.images("test", 400)
    others = images[labels != hunted.TARGET]
    led = poisoned(guilty.suspects[0].on(others)).argmax(1) == hunted.TARGET
    assert float(led.double().mean()) > 0.8


class Bright(nn.Module):
    """Gives class 1 to bright images, else class 0."""

    def forward(self, inputs):
        bright = inputs.mean(dim=(1, 2, 3)) > 0.13
        return 9.0 * torch.stack([~bright, bright], dim=1).double() + 0.0 * inputs.sum(dim=(1, 2, 3))[:, None]


def test_success_is_counted_on_inputs_of_other_classes(clean):
    """A network that gives class 1 wherever the first pixel is white, else class 0 or 2."""

    class Corner(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, inputs):
            white = inputs[:, 0, :2, :2].amin(dim=(1, 2)) == 1.0
            bright = inputs.mean(dim=(1, 2, 3)) > 0.13
            scores = torch.stack([~bright & ~white, white, bright & ~white], dim=1).double()
            return 9.0 * self.scale * scores

    ground = Ground.of(Scorer(Corner(), None, torch.zeros(1), torch.ones(1)), clean)
    spot = FAMILIES["spot"](torch.ones(1, 1, 1), (0, 0, 2, 2))
    away = FAMILIES["spot"](torch.ones(1, 1, 1), (9, 9, 2, 2))
    means, hits = ground.rates([spot, away], 60, torch.Generator().manual_seed(0)), ground.successes([spot, away])
    assert hits[0].tolist() == [0.0, 1.0, 0.0]
    assert hits[1, 1] == 0.0
    assert hits[1, 0] < 0.2, "inputs that have a class anyway do not count for it"
    assert float(means[0, 1]) > 0.99
    best = search(ground, FAMILIES["spot"], generator_for(0, "spot"))[0]
    assert (best.target, best.success) == (1, 1.0)
    assert best.trigger.box[0] <= 1 >= best.trigger.box[1]


def test_the_network_is_untouched_and_nothing_global_is_drawn(healthy, clean):
    healthy.train()
    before, drawn = victims.state(healthy), torch.random.get_rng_state()
    hunt(healthy, clean[:60], families=["levels"])
    assert victims.same(victims.state(healthy), before)
    assert healthy.training
    assert all(value.requires_grad and value.grad is None for value in healthy.parameters())
    assert torch.equal(torch.random.get_rng_state(), drawn)


def test_a_network_that_keeps_something_of_a_call_is_hunted_in_threads(healthy, clean, monkeypatch):
    class Forgetful(nn.Module):
        """Keeps its features on itself, and uses them a little later."""

        def __init__(self):
            super().__init__()
            self.inner = healthy
            self.seen = None

        def forward(self, inputs):
            self.seen = self.inner[:5](inputs)
            time.sleep(0.002)
            return self.inner[5:](self.seen)

    monkeypatch.setattr("netpurify.network.hunting.hunting.workers", lambda: 2)
    given = {"families": ["levels", "blocks"], "seed": 1}
    assert table(hunt(Forgetful(), clean[:60], **given)) == table(hunt(healthy, clean[:60], **given))


def test_networks_elsewhere_than_on_the_cpu_are_refused(clean, healthy):
    with pytest.raises(InputError, match=r"meta|CPU"):
        hunt(copy.deepcopy(healthy).to("meta"), clean)


def table(result):
    return [(one.family, one.target, one.success, one.trigger.parameters.tolist()) for one in result.found]


@pytest.mark.slow
def test_same_seed_same_bits_whatever_else_is_searched_and_however_many_threads(poisoned, clean, monkeypatch):
    both = hunt(poisoned, clean, families=["wave", "flow"], seed=3)
    again = hunt(poisoned, clean, families=["wave", "flow"], seed=3)
    assert table(both) == table(again)
    monkeypatch.setattr("netpurify.network.hunting.hunting.workers", lambda: 1)
    torch.set_num_threads(2)
    try:
        alone = hunt(poisoned, clean, families=["flow"], seed=3)
    finally:
        torch.set_num_threads(1)
    assert table(alone) == [row for row in table(both) if row[0] == "flow"]
    assert table(hunt(poisoned, clean, families=["flow"], seed=4)) != table(alone)


@pytest.mark.slow
def test_normalised_images_give_the_same_hunt(poisoned, clean):
    class Normalised(nn.Module):
        """The same network for images that were normalised."""

        def __init__(self):
            super().__init__()
            self.inner = poisoned

        def forward(self, inputs):
            return self.inner(inputs * 0.3 + 0.1)

    plain = hunt(poisoned, clean, families=["spot"])
    other = hunt(Normalised(), (clean - 0.1) / 0.3, families=["spot"], mean=(0.1,), std=(0.3,))
    assert other.goals == plain.goals == (hunted.TARGET,)
    assert torch.allclose(other.examples, plain.examples, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x * 255, r"images must lie in \[0, 1\].*std=\[1/255\]"),
        (lambda x: x - 0.5, r"images must lie in \[0, 1\]"),
        (lambda x: x.flatten(1), r"change images \[n, c, h, w\].*families of your own.*netpurify defend"),
        (lambda x: x[:10], "at least 50 clean inputs"),
        (lambda x: {"inputs": x}, "inputs of one tensor"),
        (lambda x: torch.full_like(x, torch.nan), "finite"),
    ],
)
def test_inputs_that_cannot_be_hunted_with_are_refused(change, message, healthy, clean):
    with pytest.raises(InputError, match=message):
        hunt(healthy, change(clean))


@pytest.mark.parametrize(
    ("families", "message"),
    [(["wav"], "one of wave, field"), ("wave", "collection"), ([], "at least one"), ([int], "TriggerFamily")],
)
def test_families_that_are_none_are_refused(families, message, healthy, clean):
    with pytest.raises(InputError, match=message):
        hunt(healthy, clean, families=families)


def test_networks_without_scores_are_refused(clean):
    with pytest.raises(InputError, match="scores"):
        hunt(nn.Conv2d(1, 2, 3), clean)
    with pytest.raises(InputError, match="scores"):
        hunt(nn.Sequential(nn.Flatten(), nn.Linear(784, 1)), clean)
    broken = nn.Sequential(nn.Flatten(), nn.Linear(784, 3))
    with torch.no_grad():
        broken[1].bias[0] = torch.inf
    with pytest.raises(InputError, match="finite"):
        hunt(broken, clean)


def test_a_class_must_stand_out_to_be_suspect():
    alone, several = found((3, 0.5), (1, 0.0)), found((3, 0.5), (1, 0.2), (3, 0.4))
    assert FamilyHunt("spot", alone, level(0.0), 1.0).margin == pytest.approx(0.5)
    assert FamilyHunt("spot", alone, level(0.0), 1.0).suspect
    assert FamilyHunt("spot", several, level(0.0), 1.0).margin == pytest.approx(0.3)
    assert not FamilyHunt("spot", several, level(0.0), 1.0).suspect
    assert FamilyHunt("spot", several, level(), 1.0).successes(5) == [None, 0.2, None, 0.5, None]


def test_a_high_success_is_suspect_though_another_class_comes_near():
    crowded = FamilyHunt("wave", found((0, 1.0), (3, 0.54)), HealthyLevel(0.5, 0.56, 0.1, 0.25, 6), 1.0)
    assert crowded.margin < crowded.expected.threshold
    assert crowded.suspect, "0.78 lies halfway between the highest of healthy networks and 1"
    natural = FamilyHunt("wave", found((6, 0.7), (4, 0.5)), HealthyLevel(0.5, 0.56, 0.1, 0.25, 6), 1.0)
    assert not natural.suspect


def test_thresholds_follow_healthy_networks():
    assert level(widest=0.0).threshold == 0.5
    assert level().success_threshold == pytest.approx(0.6)
    assert level(hunts=0).success_threshold == 0.9
    assert level(widest=0.4).threshold == pytest.approx(0.7)
    assert level(hunts=0).threshold == 0.75
    known = Expectation({"spot": level()}, 2, "two networks")
    assert known.of("spot").hunts == 3
    assert known.of("unheard of").hunts == 0


def test_levels_are_known_for_every_family_and_both_kinds_of_images():
    for shape in ((1, 28, 28), (3, 32, 32)):
        expected = expectation_for(shape, 10)
        assert expected.networks >= 8
        assert [name for name in FAMILIES if expected.of(name).hunts == 0] == []


@pytest.mark.parametrize(
    ("shape", "classes", "words"),
    [((3, 224, 224), 10, r"inputs \[3, 224, 224\]"), ((1, 28, 28), 2, "2 classes"), ((3, 32, 32), 100, "100 classes")],
)
def test_levels_of_small_images_of_ten_classes_are_not_applied_to_others(shape, classes, words):
    expected = expectation_for(shape, classes)
    assert re.search(words, expected.about)
    assert expected.of("spot").hunts == expected.networks == 0
    assert expected.of("spot").threshold == 0.75


def test_what_is_found_is_judged_on_inputs_that_no_search_has_seen(clean):
    ground = Ground.of(Scorer(Bright(), None, torch.zeros(1), torch.ones(1)), clean)
    assert len(ground.judged) == len(clean) // 5
    assert not set(ground.judged.tolist()) & set(ground.searched.tolist())
    assert len(ground.judged) + len(ground.searched) == len(clean)
    tried = []

    class Watched(nn.Module):
        def forward(self, inputs):
            tried.append(inputs)
            return Bright()(inputs)

    marked = clean.clone()
    marked[ground.judged, 0, 0, 0] = 1.0  # a mark by which judged inputs are known
    marked[ground.searched, 0, 0, 0] = 0.0
    watched = Ground.of(Scorer(Bright(), None, torch.zeros(1), torch.ones(1)), marked)
    watched = replace(watched, scorer=Scorer(Watched(), None, torch.zeros(1), torch.ones(1)))
    away = FAMILIES["spot"](torch.ones(1, 1, 1), (9, 9, 2, 2))
    watched.rates([away] * 5, 7, torch.Generator().manual_seed(0))
    watched.climb([away], torch.tensor([1]), 9, torch.Generator().manual_seed(0))
    assert not any((inputs[:, 0, 0, 0] == 1.0).any() for inputs in tried)
    tried.clear()
    watched.successes([away])
    assert all((inputs[:, 0, 0, 0] == 1.0).all() for inputs in tried)


def test_ones_own_healthy_networks_are_an_expectation(healthy, clean, tmp_path):
    hunts = [hunt(healthy, clean[:60], families=["levels", "ghost"], seed=seed) for seed in (0, 1)]
    expected = calibrate(hunts, "mine")
    margins = [one.families[1].margin for one in hunts]
    assert expected.of("ghost").widest == max(margins)
    assert expected.of("ghost").hunts == 2
    assert expected.networks == 1
    expected.save(tmp_path / "mine.json")
    assert load_expectation(tmp_path / "mine.json") == expected
    again = hunt(healthy, clean[:60], families=["ghost"], expected=expected)
    assert again.families[0].expected == expected.of("ghost")
    (tmp_path / "bad.json").write_text(json.dumps({"levels": {"a": {}}}))
    with pytest.raises(InputError, match=r"bad\.json must be an expectation"):
        load_expectation(tmp_path / "bad.json")
    with pytest.raises(InputError, match="at least one hunt"):
        calibrate([], "none")


def test_half_precision_and_float64_networks_are_hunted(healthy, clean):
    for dtype in (torch.float64, torch.bfloat16):
        copy = hunted.build().to(dtype)
        copy.load_state_dict(healthy.state_dict())
        assert hunt(copy, clean[:60].to(dtype), families=["levels"]).classes == 10


def test_progress_names_every_family(healthy, clean):
    told = []
    hunt(healthy, clean[:60], families=["levels", "ghost"], progress=lambda *row: told.append(row))
    assert told[0] == ("", 0, 2)
    assert sorted(row[0] for row in told[1:]) == ["ghost", "levels"]
    assert [row[1] for row in told] == [0, 1, 2]


class Rooted(nn.Module):
    """A healthy network whose slope is infinite at black pixels."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, inputs):
        return self.inner(inputs**0.9)


class Deaf(Rooted):
    """A network without a slope in its inputs."""

    def forward(self, inputs):
        return self.inner((inputs > 0.5).float())


class Blank(Rooted):
    """A network that gives no numbers for images with a white corner."""

    def forward(self, inputs):
        lost = inputs[:, :, 0, 0].amax(dim=1, keepdim=True) > 0.9
        return self.inner(inputs).masked_fill(lost, float("nan"))


@pytest.mark.parametrize("kind", [Rooted, Deaf, Blank])
def test_what_is_no_number_is_no_class_and_a_missing_slope_no_fault(kind, healthy, clean):
    found = hunt(kind(healthy), clean[:100], families=["flow", "spot", "frame"])
    assert found.goals == ()
    assert all(bool(one.trigger.parameters.isfinite().all()) for one in found.found)


def test_images_of_another_shape_are_refused_as_the_network_says(healthy, clean):
    with pytest.raises(InputError, match=r"the model must accept the clean inputs; called with \[\d+, 3, 28, 28\]"):
        hunt(healthy, clean[:60].expand(-1, 3, -1, -1))


def test_arguments_of_another_kind_are_refused_before_the_search(healthy, clean):
    for more, message in (
        ({"seed": "a"}, "seed must be a whole number"),
        ({"expected": "x.json"}, "expected must be what calibrate"),
        ({"families": 3}, "families must be a collection"),
        ({"families": (name for name in ["spot"])}, "families must be a collection"),
        ({"mean": 0.5}, "mean must be 1 finite numbers"),
        ({"std": ["a"]}, "std must be 1 finite numbers"),
    ):
        with pytest.raises(InputError, match=message):
            hunt(healthy, clean[:60], **more)
    with torch.inference_mode(), pytest.raises(InputError, match="outside of torch"):
        hunt(healthy, clean[:60])


def test_families_for_other_inputs_are_searched_only_if_they_are_named(monkeypatch):
    class Column(FAMILIES["spot"]):
        images = False

    monkeypatch.setitem(FAMILIES, "column", Column)
    assert Column not in choose_families(None)
    assert choose_families(["column"]) == (Column,)


@pytest.mark.parametrize(
    ("factor", "message"), [(1000.0, r"must leave images within \[0, 1\]"), (None, "must draw and climb to triggers")]
)
def test_families_that_give_something_else_are_refused_by_name(healthy, clean, factor, message, monkeypatch):
    @dataclass(frozen=True, slots=True, eq=False)
    class Odd(TriggerFamily):
        parameters: torch.Tensor

        @classmethod
        def draw(cls, generator, shape, near=None):
            del generator, shape, near
            return cls(torch.ones(1)) if factor else cast("Any", "a trigger")

        def apply(self, inputs, parameters):
            return inputs + factor * parameters

        def climb(self, slope):
            del slope
            return self

    monkeypatch.setattr(Odd, "name", "odd", raising=False)
    with pytest.raises(InputError, match=f"family 'odd' {message}"):
        hunt(healthy, clean[:60], families=[Odd])


def test_what_healthy_networks_show_to_the_full_is_no_sign():
    sure = HealthyLevel(1.0, 1.0, 0.9, 0.95, 3)
    assert sure.alarm(1.0, 0.5) < 1.0
    assert sure.alarm(1.0, 0.98) >= 1.0, "the margin still tells"
    assert HealthyLevel(0.0, 0.0, 0.0, 0.0, 0).alarm(0.95, 0.5) < 1.0, "where nothing is known, both must be reached"


@pytest.mark.parametrize("level", ['"a"', "null", "NaN", "9", "-3"])
def test_levels_that_cannot_be_are_refused(tmp_path, level):
    known = {"success": 0.1, "highest": "here", "margin": 0.0, "widest": 0.1, "hunts": 2}
    text = json.dumps({"levels": {"spot": known}, "networks": 1, "about": ""})
    (tmp_path / "odd.json").write_text(text.replace('"here"', level))
    with pytest.raises(InputError, match="highest of spot must lie between 0 and 1"):
        load_expectation(tmp_path / "odd.json")


def test_images_of_many_channels_are_searched_in_few_colours():
    assert len(_corners(3)) == 8
    assert len(_corners(13)) == 15
    assert _corners(13)[0].max() == 0.0
    assert _corners(13)[-1].min() == 1.0
