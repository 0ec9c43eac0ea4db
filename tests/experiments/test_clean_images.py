"""Where clean images come from in the figures about backdoors, and what doing nothing gives."""

import pytest
import torch

from netpurify import data
from netpurify.experiments.figures import figure08, figure16
from netpurify.experiments.figures.trials import backdoors, three_classes
from netpurify.experiments.figures.trials.three_classes import ThreeClasses

CELL = figure08.grid("quick")[-1] | {"p": 20, "steps": 40}


@pytest.fixture(autouse=True)
def no_download(monkeypatch):
    """CIFAR-10 is not bundled; noise of its shape stands for it, and the sample for all of MNIST."""
    real = data.load

    def load(name, *, split="train", root=None):
        if name != "cifar10":
            return real("mnist-sample", split=split, root=root)
        pixels = torch.full((300, 32, 32, 3), 100, dtype=torch.uint8)
        return data.Images(pixels, torch.arange(300) % 10, torch.arange(300), "cifar10", split)

    three_classes.load_classes.cache_clear()
    monkeypatch.setattr(data, "load", load)
    yield
    three_classes.load_classes.cache_clear()


@pytest.fixture
def attacked():
    return backdoors.victim(CELL, 0)


def inked(images):
    """How many images have all five pixels of the trigger."""
    return int((images[:, :5] == 1.0).all(1).sum())


def test_copies_of_the_training_images_carry_no_trigger(attacked):
    assert inked(attacked.clean("training", 99, 0)) == 0
    assert inked(attacked.clean("as trained on", 99, 0)) == 30
    assert torch.equal(attacked.clean("as trained on", 99, 0), attacked.poisoned.inputs)


def test_images_that_were_not_poisoned_are_the_others_of_the_training_set(attacked):
    kept = attacked.clean("not poisoned", 99, 0)
    assert len(kept) == 69
    everything = attacked.clean("training", 99, 0)
    places = [place for place in range(99) if place not in attacked.poisoned.indices.tolist()]
    assert torch.equal(kept, everything[places])


def test_images_outside_are_none_of_the_training_images():
    source = ThreeClasses("mnist-sample")
    inside, outside = source.draw((99, 99), torch.Generator().manual_seed(0))
    assert not set(inside.indices.tolist()) & set(outside.indices.tolist())


def test_other_classes_are_other_digits(attacked):
    drawn = attacked.clean("other classes", 9, 3)
    own = data.classes(data.load("mnist-sample", split="train"), (7, 8, 9))
    assert drawn.shape == (9, 784)
    every = {tuple(row.tolist()) for row in data.to_inputs(own)}
    assert all(tuple(row.tolist()) in every for row in drawn)
    assert torch.equal(drawn, attacked.clean("other classes", 9, 3))


def test_other_data_set_is_cut_or_padded_to_size(attacked):
    cut = attacked.clean("other data set", 3, 0)
    assert cut.shape == (3, 784)
    assert torch.allclose(cut, torch.full_like(cut, 100 / 255), atol=1e-12)
    padded = ThreeClasses("cifar10").elsewhere("other data set", 3, torch.Generator().manual_seed(0))
    assert padded.shape == (3, 1024)
    border = padded.reshape(3, 32, 32)[:, :2]
    assert torch.allclose(border, torch.full_like(border, (0.0 - 0.48) / 0.25))


def test_noise_is_drawn_by_the_seed(attacked):
    first, second = attacked.clean("noise", 4, 0), attacked.clean("noise", 4, 1)
    assert first.shape == (4, 784)
    assert 0.0 <= float(first.min()) < float(first.max()) <= 1.0
    assert not torch.equal(first, second)
    with pytest.raises(ValueError, match="other classes, other data set or noise; got 'mars'"):
        attacked.clean("mars", 4, 0)


def test_doing_nothing_keeps_the_network_or_returns_its_start(attacked):
    before, initial = backdoors.untouched(attacked)
    assert (before["method"], initial["method"]) == ("before", "initial weights")
    assert before["accuracy"] > initial["accuracy"]
    assert before == {
        "method": "before",
        **backdoors.NO_PURIFICATION,
        **backdoors.rates(attacked, attacked.training.trained),
    }


def test_named_rows_are_those_of_the_papers_settings_at_one_ratio():
    rows = {variant: backdoors.backdoor(CELL | {"variant": variant}, 0, counts=(9,)) for variant in ("paper", "mine")}
    origins = {variant: {row["origin"] for row in own} - {None} for variant, own in rows.items()}
    assert origins["paper"] == {"training", "other", "as trained on", "not poisoned", "other classes"}
    assert origins["mine"] == {"training", "other"}


def test_hidden_layers_have_the_papers_step_size():
    own = backdoors.victim(CELL, 0).training.trained
    other = backdoors.victim(CELL | {"hidden": CELL["gamma"] / CELL["k"]}, 0).training.trained
    apart = backdoors.victim(CELL | {"hidden": 0.5}, 0).training.trained
    weights = [network.state_dict()["hidden.0.weight"] for network in (own, other, apart)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.allclose(weights[0], weights[2])


def test_figure_16_needs_no_download_in_quick_mode():
    assert {cell["data"] for cell in figure16.grid("quick")} == {"mnist-sample"}
    rows = figure16.trial(CELL, 0)
    assert "other data set" not in {row["origin"] for row in rows}
    assert {row["clean"] for row in rows} == {None, *figure16.COUNTS}
