"""Poisoned training: torch's own optimiser as the judge, interruption, the cache."""

import copy
from threading import Thread

import pytest
import torch
from torch import nn
from torch.nn import functional

from netpurify import checkpoint
from netpurify.contaminate import Recipe, train
from netpurify.errors import CheckpointError, InputError
from netpurify.threads import one_torch_thread

RECIPE = Recipe(epochs=3, rate=0.05, batch=8)


def network():
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, 3)
        )


def images(count=28):
    generator = torch.Generator().manual_seed(1)
    return torch.rand(count, 1, 6, 6, generator=generator), torch.arange(count) % 3


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


class InterruptError(Exception):
    pass


def interrupt_after(epochs):
    def progress(done, *_):
        if done == epochs:
            raise InterruptError

    return progress


@pytest.mark.parametrize("schedule", ["one-cycle", "cosine"])
def test_steps_are_those_of_torch(schedule):
    inputs, labels = images(16)
    recipe = Recipe(epochs=4, rate=0.1, batch=16, decay=0.01, schedule=schedule)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    twin = copy.deepcopy(model)
    # All images in one batch, so that their order does not matter; torch's own schedules, without momentum's cycle.
    optimiser = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)
    for step in range(4):
        peak = 1.2  # 30 % of four steps
        rates = {
            "cosine": 0.05 * (1 + torch.cos(torch.tensor(torch.pi * step / 4)).item()),
            "one-cycle": 0.1 * (0.04 + 0.96 * (1 - torch.cos(torch.tensor(torch.pi * step / peak)).item()) / 2)
            if step < peak
            else 0.05 * (1 + torch.cos(torch.tensor(torch.pi * (step - peak) / (4 - peak))).item()),
        }
        optimiser.param_groups[0]["lr"] = rates[schedule]
        optimiser.zero_grad()
        functional.cross_entropy(twin(inputs), labels).backward()
        optimiser.step()
    found = train(model, inputs, labels, recipe=recipe, seed=0)
    torch.testing.assert_close(found.model[1].weight, twin[1].weight, rtol=1e-4, atol=1e-6)


def test_one_cycle_begins_low_peaks_and_ends_at_nothing():
    recipe = Recipe(rate=0.2)
    rates = [recipe.rate_at(step, 100) for step in range(101)]
    assert rates[0] == pytest.approx(0.2 / 25)
    assert max(rates) == rates[30] == pytest.approx(0.2)
    assert rates[100] == pytest.approx(0.0)


def test_learns_and_leaves_the_callers_network_and_chance_alone():
    model, (inputs, labels) = network(), images(30)
    inputs = inputs + labels[:, None, None, None].float()
    before, state = copy.deepcopy(model), torch.get_rng_state()
    found = train(model, inputs, labels, recipe=Recipe(epochs=30, rate=0.1, batch=10, flips=True), seed=0)
    assert found.losses[-1] < 0.2 < found.losses[0]
    assert (found.model(inputs).argmax(1) == labels).all()
    assert not found.model.training
    assert same(model, before)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("epochs", [1, 2])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bits(tmp_path, epochs):
    whole = train(network(), *images(), recipe=RECIPE, seed=3)
    with pytest.raises(InterruptError):
        train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path, progress=interrupt_after(epochs))
    seen = []
    found = train(
        network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path, progress=lambda done, *_: seen.append(done)
    )
    assert seen == list(range(epochs + 1, 4))
    assert same(found.model, whole.model)
    assert found.losses == whole.losses


def test_what_was_trained_is_read_and_anything_else_is_trained(tmp_path):
    first = train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path)
    again = train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path, progress=interrupt_after(1))
    assert same(first.model, again.model)
    assert len(list(tmp_path.iterdir())) == 1
    inputs, labels = images()
    others = [
        {"inputs": inputs + 0.01}, {"labels": 2 - labels}, {"seed": 4}, {"recipe": Recipe(epochs=3, rate=0.06, batch=8)}
    ]  # fmt: skip
    for changed in others:
        options = {"inputs": inputs, "labels": labels, "recipe": RECIPE, "seed": 3, **changed}
        with pytest.raises(InterruptError):
            train(network(), folder=tmp_path, progress=interrupt_after(1), **options)


def test_refusals():
    inputs, labels = images(4)
    with pytest.raises(InputError, match=r"fill a batch of 8; got 4"):
        train(network(), inputs, labels, recipe=RECIPE, seed=0)
    with pytest.raises(InputError, match="must not diverge"):
        train(network(), 1e30 * images()[0], images()[1], recipe=Recipe(epochs=2, rate=1e6, batch=8), seed=0)
    for options in ({"epochs": 0}, {"rate": 0.0}, {"momentum": 1.0}, {"schedule": "linear"}):
        with pytest.raises(InputError, match="must be"):
            Recipe(**options)


def test_what_the_network_cannot_take_is_refused():
    inputs, labels = images()
    for changed, said in [
        ({"labels": labels + 2}, "labels from 2 to 4"),
        ({"inputs": inputs.double()}, "of torch.float64"),
        ({"inputs": inputs[..., :5]}, r"images \[8, 1, 6, 5\]"),
    ]:
        with pytest.raises(InputError, match=said):
            train(network(), recipe=RECIPE, seed=0, **{"inputs": inputs, "labels": labels, **changed})
    with pytest.raises(InputError, match="none requires a gradient"):
        train(network().requires_grad_(requires_grad=False), inputs, labels, recipe=RECIPE, seed=0)
    with pytest.raises(InputError, match="some layers are lazy"):
        train(nn.Sequential(nn.Flatten(), nn.LazyLinear(3)), inputs, labels, recipe=RECIPE, seed=0)
    with pytest.raises(InputError, match="seed must be at most"):
        train(network(), inputs, labels, recipe=RECIPE, seed=1 << 62)


def test_another_network_that_began_with_the_same_weights_is_not_taken_for_it(tmp_path):
    train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path)
    other = network()
    other[4] = nn.Dropout(0.9)
    with pytest.raises(InputError, match="has another network"):
        train(other, *images(), recipe=RECIPE, seed=3, folder=tmp_path)


@pytest.mark.parametrize("damage", ["cut short", "flipped", "foreign", "empty"])
def test_what_is_damaged_is_refused_and_names_itself(tmp_path, damage):
    with pytest.raises(InterruptError):
        train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path, progress=interrupt_after(1))
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    checkpoint.save_weights({"other": torch.ones(1)}, file)
    bad = {"cut short": content[:-9], "flipped": flipped, "foreign": file.read_bytes(), "empty": b""}
    file.write_bytes(bad[damage])
    with pytest.raises(CheckpointError, match="delete it to begin anew") as caught:
        train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path)
    assert file.name in str(caught.value)
    file.unlink()
    assert len(train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path).losses) == 3


@pytest.mark.parametrize("count", [1, 2])
def test_threads_of_torch_are_those_of_the_recipe_and_are_given_back(count):
    """Also to a thread of Python that first uses torch while training limits it."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    inside, elsewhere = [], []

    def limit_elsewhere():
        with one_torch_thread():
            pass
        elsewhere.append(torch.get_num_threads())

    def progress(*_):
        inside.append(torch.get_num_threads())
        if count == 1:
            thread = Thread(target=limit_elsewhere)
            thread.start()
            thread.join()

    train(network(), *images(), recipe=Recipe(epochs=1, batch=8, threads=count), seed=0, progress=progress)
    with one_torch_thread():
        train(network(), *images(), recipe=Recipe(epochs=1, batch=8, threads=count), seed=0)
        inside.append(torch.get_num_threads())
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert (inside, elsewhere, after) == ([count, 1], [3] * (count == 1), 3)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("taken")
    with pytest.raises(CheckpointError, match="choose another place"):
        train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path / "file")


def test_two_runs_of_the_same_do_not_mix_their_states(tmp_path, monkeypatch):
    """Another run replaces the file while it is read, and then ends and takes it away."""
    whole = train(network(), *images(), recipe=RECIPE, seed=3)
    kept = []
    for epochs in (1, 2):
        with pytest.raises(InterruptError):
            train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path, progress=interrupt_after(epochs))
        (file,) = tmp_path.iterdir()
        kept.append(file.read_bytes())
    load, turns = checkpoint.load_weights, [lambda: file.write_bytes(kept[1]), file.unlink]

    def meanwhile(path):
        found = load(path)
        if turns:
            turns.pop(0)()
        return found

    monkeypatch.setattr(checkpoint, "load_weights", meanwhile)
    for _ in range(2):
        file.write_bytes(kept[0])
        found = train(network(), *images(), recipe=RECIPE, seed=3, folder=tmp_path)
        assert same(found.model, whole.model)
        assert found.losses == whole.losses
        (done,) = tmp_path.iterdir()
        done.unlink()
    assert not turns
