"""The policy *defend* against numpy's own algebra, a planted backdoor, and everything that reads a network."""

import copy
import math

import numpy as np
import pytest
import torch
from scipy.stats import binom, binomtest
from torch import nn

from netpurify import Defend, DisagreementError, InputError, checkpoint, load_defended, purify
from netpurify.network import Guard, Step
from netpurify.network.policies.defence.inputs import split
from netpurify.network.policies.defence.strength import STRENGTHS, TRIALS, search
from tests.network.made_networks import defend

STRENGTH = 0.2


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def seeded(factory):
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(0)
        return factory()


def mlp():
    return seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.first = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.last = nn.Linear(4, 5)

    def forward(self, images):
        stem = self.stem(images).relu()
        return self.last((stem + self.norm(self.first(stem))).relu().mean((2, 3)))


def residual():
    model = seeded(Residual)
    model.norm.running_mean.copy_(draw(4))
    model.norm.running_var.copy_(draw(4, seed=1).square() + 0.5)
    return model.eval()


def fitted(inputs):
    return split([inputs])[0]


def ridge(now, before, weight, bias, strength):
    """W C (S + lambda I)^-1 as it stands, with numpy's inverse."""
    x, x0 = (np.hstack([part, np.ones((len(part), 1))]) for part in (now, before))
    second, cross = x.T @ x / len(x), x0.T @ x / len(x)
    lam = strength * np.trace(second) / len(second)
    whole = np.hstack([weight, bias[:, None]])
    fitted = whole @ cross @ np.linalg.inv(second + lam * np.eye(len(second)))
    return fitted[:, :-1], fitted[:, -1]


def numbers(tensor):
    return tensor.detach().double().numpy()


def test_layers_are_matched_ridge_fits_one_after_the_other():
    model, inputs = mlp(), draw(50, 6) + 0.5
    found = defend(model, inputs, strength=STRENGTH, guard=False).model
    x = numbers(fitted(inputs))
    first, last = model[0], model[2]
    weight, bias = ridge(x, x, numbers(first.weight), numbers(first.bias), STRENGTH)
    np.testing.assert_allclose(numbers(found[0].weight), weight, atol=1e-6)
    np.testing.assert_allclose(numbers(found[0].bias), bias, atol=1e-6)
    old = np.maximum(x @ numbers(first.weight).T + numbers(first.bias), 0.0)
    new = np.maximum(x @ weight.T + bias, 0.0)
    weight, bias = ridge(new, old, numbers(last.weight), numbers(last.bias), STRENGTH)
    np.testing.assert_allclose(numbers(found[2].weight), weight, atol=1e-6)
    np.testing.assert_allclose(numbers(found[2].bias), bias, atol=1e-6)


def test_convolutions_are_fitted_group_by_group():
    model, images = residual(), draw(30, 2, 5, 5)
    found = defend(model, images, strength=STRENGTH, guard=False, layers=["first"]).model
    stem = model.stem(fitted(images)).relu()
    for group in range(2):
        part = stem[:, 2 * group : 2 * group + 2]
        rows = numbers(torch.nn.functional.unfold(part, 3, padding=1)).transpose(0, 2, 1).reshape(-1, 18)
        second = rows.T @ rows
        lam = STRENGTH * np.trace(second) / 18
        weight = numbers(model.first.weight[2 * group : 2 * group + 2]).reshape(2, 18)
        expected = weight @ second @ np.linalg.inv(second + lam * np.eye(18))
        given = numbers(found.first.weight[2 * group : 2 * group + 2]).reshape(2, 18)
        np.testing.assert_allclose(given, expected, atol=1e-6)
    assert torch.equal(found.stem.weight, model.stem.weight)


def test_guard_sits_after_the_norm_and_cuts_off_what_it_says():
    model, images = residual(), draw(50, 2, 5, 5)
    result = defend(model, images, strength=STRENGTH)
    found = result.model
    assert [layer.guarded for layer in result.layers] == ["stem", "norm", "last"]
    unguarded = copy.deepcopy(found)
    for module in unguarded.modules():
        module._forward_hooks.clear()
    images = fitted(images)
    with torch.no_grad():
        stem = found.stem(images).relu()  # guarded: what the layer after it saw
        values = unguarded.norm(unguarded.first(stem)).movedim(1, 0).flatten(1)
    beyond = math.floor(0.1 * STRENGTH * values.shape[1])
    assert beyond == 20
    ordered = values.sort(dim=1).values
    torch.testing.assert_close(found.norm.guard.low.flatten(), ordered[:, beyond])
    torch.testing.assert_close(found.norm.guard.high.flatten(), ordered[:, -1 - beyond])
    assert result.layers[1].clipped == pytest.approx(2 * beyond / 1000)
    centre = values.double().mean(dim=1)
    torch.testing.assert_close(found.norm.guard.centre.flatten().double(), centre, rtol=1e-5, atol=1e-6)
    clamped = values.clamp(ordered[:, beyond, None], ordered[:, -1 - beyond, None]).reshape(4, 40, 25).double()
    sizes = (clamped - centre[:, None, None]).square().mean(dim=2).sqrt().sort(dim=1).values
    assert math.floor(STRENGTH * 40) == 8
    torch.testing.assert_close(found.norm.guard.spread.flatten().double(), sizes[:, -9], rtol=1e-4, atol=1e-6)


def test_guard_keeps_values_and_spreads_in_range_and_everything_else_as_it_is():
    guard = Guard(*(torch.full((2, 1, 1), value) for value in (-3.0, 3.0, 1.0, 0.5)))
    calm = 1.0 + 0.4 * torch.ones(1, 2, 2, 2)
    assert torch.equal(guard(calm), calm)
    wave = torch.tensor([[2.0, 0.0], [2.0, 0.0]]).expand(1, 2, 2, 2)  # 1 from the centre everywhere
    torch.testing.assert_close(guard(wave), 1.0 + 0.5 * (wave - 1.0))
    spike = calm.clone()
    spike[0, 0, 0, 0] = 100.0
    out = guard(spike)
    assert out.max() < 3.0
    assert torch.equal(out[:, 1], calm[:, 1])
    assert (out - 1.0).square().mean((2, 3)).sqrt().max() <= 0.5 + 1e-6
    dead = Guard(*(torch.zeros(1, 1, 1) for _ in range(4)))
    assert torch.equal(dead(torch.ones(1, 1, 2, 2)), torch.zeros(1, 1, 2, 2))
    flat = Guard(torch.tensor([-1.0, 0.0]), torch.tensor([1.0, 9.0]), torch.zeros(2), torch.full((2,), torch.inf))
    assert torch.equal(flat(torch.tensor([[-5.0, 5.0]])), torch.tensor([[-1.0, 5.0]]))


def test_without_guard_the_architecture_stays():
    model = residual()
    plain = defend(model, draw(30, 2, 5, 5), strength=STRENGTH, guard=False).model
    guarded = defend(model, draw(30, 2, 5, 5), strength=STRENGTH).model
    assert list(plain.state_dict()) == list(model.state_dict())
    assert set(guarded.state_dict()) - set(plain.state_dict()) == {
        f"{name}.guard.{end}" for name in ("stem", "norm", "last") for end in ("low", "high", "centre", "spread")
    }
    assert torch.equal(plain.norm.running_mean, model.norm.running_mean)


def test_a_planted_backdoor_is_forgotten_and_clean_inputs_keep_their_class():
    """Clean inputs live in 10 of 20 coordinates; the backdoor listens to the other ten."""
    clean = torch.cat([draw(400, 10), 0.01 * draw(400, 10, seed=2)], dim=1)
    model = seeded(lambda: nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 4)))
    with torch.no_grad():
        model[0].weight[0] = torch.cat([torch.zeros(10), torch.ones(10)])
        model[0].bias[0] = -5.0
        model[2].weight[2, 0] = 50.0
    triggered = clean.clone()
    triggered[:, 10:] = 1.0
    assert (model(triggered).argmax(1) == 2).all()
    for options in ({"strength": 0.1}, {"strength": 0.1, "guard": False}, {}):
        found = defend(model, clean[:200], **options).model
        for images in (clean, triggered):
            same = found(images[200:]).argmax(1) == model(clean[200:]).argmax(1)
            assert same.double().mean() > 0.8, options


def test_same_inputs_same_bits_and_batches_do_not_matter():
    model, images = residual(), draw(30, 2, 5, 5)
    first = defend(model, images, strength=STRENGTH).model.state_dict()
    again = defend(model, images, strength=STRENGTH).model.state_dict()
    other = defend(model, [(part, "label") for part in images.split(7)], strength=STRENGTH, batch=5).model.state_dict()
    for name, value in first.items():
        assert torch.equal(value, again[name])
        torch.testing.assert_close(value, other[name], rtol=1e-4, atol=1e-5)


def test_the_callers_network_is_left_as_it_was():
    model = residual().train()
    before, hooks = copy.deepcopy(model.state_dict()), [len(part._forward_hooks) for part in model.modules()]
    found = purify(model, draw(30, 2, 5, 5), policy=Defend(strength=STRENGTH)).model
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [len(part._forward_hooks) for part in model.modules()] == hooks
    assert model.training
    assert found.training
    assert found.norm.training


@pytest.mark.slow
def test_a_defended_network_is_saved_loaded_exported_compiled_and_scripted(tmp_path):
    model, images = residual(), draw(30, 2, 5, 5)
    found = defend(model, images, strength=STRENGTH).model.eval()
    expected = found(5 * images)
    assert (expected - copy.deepcopy(model)(5 * images)).abs().max() > 0.1
    checkpoint.save_weights(found.state_dict(), tmp_path / "defended.safetensors")
    loaded = load_defended(residual(), tmp_path / "defended.safetensors")
    assert torch.equal(loaded(5 * images), expected)
    exported = torch.export.export(found, (5 * images,)).module()
    torch.testing.assert_close(exported(5 * images), expected)
    compiled = torch.compile(found, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(5 * images), expected)
    torch.testing.assert_close(copy.deepcopy(found)(5 * images), expected)
    with pytest.warns(DeprecationWarning, match="torch.jit.script"):  # torch's own; some still use it
        scripted = torch.jit.script(found)
    torch.testing.assert_close(scripted(5 * images), expected)


def test_loading_refuses_what_does_not_fit():
    found = defend(residual(), draw(30, 2, 5, 5), strength=STRENGTH).model
    with pytest.raises(InputError, match="no such module to guard"):
        load_defended(mlp(), found.state_dict())
    with pytest.raises(InputError, match="of the same network"):
        load_defended(residual(), mlp().state_dict())
    state = found.state_dict()
    state["norm.guard.low"], state["norm.guard.high"] = state["norm.guard.high"], state["norm.guard.low"]
    with pytest.raises(InputError, match="from low to high"):
        load_defended(residual(), state)


def test_defending_again_keeps_the_narrower_range():
    model, images = residual(), draw(30, 2, 5, 5)
    once = defend(model, images, strength=STRENGTH).model
    twice = defend(once, images, strength=STRENGTH).model
    assert list(once.state_dict()) == list(twice.state_dict())
    assert (twice.norm.guard.high <= once.norm.guard.high).all()


def test_automatic_strength_is_judged_on_held_out_inputs():
    model, inputs = mlp(), draw(200, 6)
    seen = []
    result = defend(model, inputs, progress=lambda *said: seen.append(said))
    assert all(step.inputs == 40 for step in result.curve)
    assert [step.strength for step in result.curve] == sorted(step.strength for step in result.curve)
    assert result.chosen in result.curve
    assert result.strength == result.chosen.strength
    scores = model(inputs).softmax(1).amax(1).mean().item()
    assert result.confidence == pytest.approx(scores, abs=0.1)
    assert seen[-1][1] == seen[-1][2]
    assert [said[1] for said in seen] == sorted(said[1] for said in seen)


def test_the_search_takes_the_strongest_that_the_networks_own_doubt_allows():
    for allowed, expected in [(0.0, STRENGTHS[1]), (3.5, STRENGTHS[3]), (6.5, STRENGTHS[6]), (49.0, STRENGTHS[7])]:
        tried = []

        def judge(one, tried=tried):
            tried.append(one)
            return Step(one, 100, STRENGTHS.index(one))

        assert search(judge, confidence=1.0 - 2.0 * allowed / 100).strength == expected
        assert expected in tried
        assert len(tried) <= TRIALS
    assert search(lambda one: Step(one, 100, 50), confidence=0.9).strength == STRENGTHS[0]


@pytest.mark.parametrize(("differing", "inputs"), [(0, 20), (3, 100), (100, 100)])
def test_the_bound_is_that_of_clopper_and_pearson(differing, inputs):
    interval = binomtest(differing, inputs, alternative="less").proportion_ci(0.95, method="exact")
    assert Step(0.1, inputs, differing).bound() == pytest.approx(interval.high)


def test_the_bound_allows_for_every_strength_that_the_search_could_come_to():
    result = defend(mlp(), draw(200, 6))
    interval = binomtest(result.chosen.differing, 40, alternative="less").proportion_ci(
        1 - 0.05 / len(STRENGTHS), method="exact"
    )
    assert result.bound == pytest.approx(interval.high)
    single = defend(mlp(), draw(200, 6), strength=STRENGTH)
    assert single.bound == single.chosen.bound(0.95)


def test_bounds_hold_together_also_where_the_search_looks_for_luck():
    """Every strength costs 30 %, and is lucky when no other is: what the search comes to must not be too lucky."""
    level = defend(mlp(), draw(200, 6)).level
    lucky = max(count for count in range(100) if Step(0.1, 100, count).bound(level) < 0.3)
    chance = binom.cdf(lucky, 100, 0.3)
    # At most one strength is lucky at a time, and the search always comes to it: the chances add up.
    assert len(STRENGTHS) * chance <= 0.05


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(hidden - hidden.mean(dim=0))


class Twofold(nn.Module):
    """One layer called twice, which cannot be fitted in one pass."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.first(self.first(inputs).relu()))


def test_what_cannot_be_fitted_is_refused_or_skipped():
    with pytest.raises(InputError, match="one by one"):
        defend(seeded(Mixing), draw(20, 6) + torch.arange(20.0)[:, None], strength=STRENGTH)
    result = defend(seeded(Twofold), draw(50, 6), strength=STRENGTH)
    assert [layer.name for layer in result.layers] == ["last"]
    assert [(it.name, it.reason) for it in result.skipped] == [("first", "one pass calls it 2 times")]
    with pytest.raises(InputError, match="of one shape"):
        defend(residual(), [draw(9, 2, 5, 5), draw(9, 2, 6, 6)], strength=STRENGTH)


def test_batches_of_named_inputs():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, inputs, scale):
            return self.layer(inputs * scale)

    model, inputs = seeded(Named), draw(40, 6)
    scales = torch.full((40, 1), 2.0)
    named = [{"inputs": inputs[:20], "scale": scales[:20], "labels": 1}, {"inputs": inputs[20:], "scale": scales[20:]}]
    found = defend(model, named, strength=STRENGTH).model
    plain = defend(model, inputs, strength=STRENGTH, forward=lambda it, batch: it(batch, 2.0)).model
    torch.testing.assert_close(found.layer.weight, plain.layer.weight)


def test_a_price_that_is_too_high_is_refused():
    step = defend(mlp(), draw(100, 6), strength=5.0).chosen
    said = rf"at strength 5\.0 it does on {step.differing} of 20, {5 * step.differing}\.0 %"
    with pytest.raises(DisagreementError, match=rf"on at most 0\.0 % of the held-out inputs; {said}"):
        defend(mlp(), draw(100, 6), strength=5.0, max_disagreement=0.0)


def test_refusals():
    model, inputs = mlp(), draw(100, 6)
    for options, said in [
        ({"strength": 0.0}, "number above 0"),
        ({"strength": "strong"}, "number above 0"),
        ({"max_disagreement": 2.0}, "between 0 and 1"),
        ({"layers": "0"}, r"give \['0'\]"),
        ({"batch": 0}, "at least 1"),
    ]:
        with pytest.raises(InputError, match=said):
            defend(model, inputs, **options)
    with pytest.raises(InputError, match="at least 5 are needed"):
        defend(model, inputs[:4])
    with pytest.raises(InputError, match="finite scores"):
        defend(nn.Sequential(nn.Linear(6, 1)), inputs)
    with pytest.raises(InputError, match="max_disagreement needs a network"):
        defend(nn.Sequential(nn.Linear(6, 1)), inputs, strength=0.1, max_disagreement=0.1)
    assert math.isnan(defend(nn.Sequential(nn.Linear(6, 1)), inputs, strength=0.1).chosen.disagreement)
    with pytest.raises(InputError, match="none is"):
        defend(nn.Sequential(nn.LayerNorm(6)), inputs)
    broken = mlp()
    with torch.no_grad():
        broken[0].weight[0, 0] = math.nan
    with pytest.raises(InputError, match="finite"):
        defend(broken, inputs, strength=0.1)


def test_options_of_other_policies_do_not_exist():
    with pytest.raises(TypeError, match="rank"):
        Defend(rank=3)
    with pytest.raises(TypeError, match="initial"):
        Defend(initial=mlp())


@pytest.mark.parametrize("factory", [mlp, residual, lambda: seeded(lambda: nn.Linear(6, 3))])
def test_loading_refuses_guards_that_were_damaged(factory):
    model = factory()
    inputs = draw(30, 2, 5, 5) if isinstance(model, Residual) else draw(30, 6)
    state = defend(model, inputs, strength=STRENGTH).model.state_dict()
    name = next(name for name in state if name.endswith("guard.low")).removesuffix("low")
    for part, value in [
        ("low", None),
        ("spread", None),
        ("centre", torch.full_like(state[name + "centre"], math.nan)),
        ("high", torch.full_like(state[name + "high"], math.inf)),
        ("spread", -torch.ones_like(state[name + "spread"])),
        ("low", state[name + "low"][:1]),
    ]:
        broken = {key: item for key, item in state.items() if key != name + part}
        with pytest.raises(InputError, match=r"not whole|from low to high"):
            load_defended(model, broken if value is None else {**broken, name + part: value})
    short = {key: item[:1] if ".guard." in f".{key}" else item for key, item in state.items()}
    with pytest.raises(InputError, match="not whole"):
        load_defended(model, short)


def test_a_network_of_one_layer_keeps_its_guard_in_a_file():
    model, inputs = seeded(lambda: nn.Linear(6, 3)), draw(30, 6)
    found = defend(model, inputs, strength=STRENGTH).model
    assert not torch.equal(found(9 * inputs), defend(model, inputs, strength=STRENGTH, guard=False).model(9 * inputs))
    assert torch.equal(load_defended(model, found.state_dict())(9 * inputs), found(9 * inputs))


def test_a_network_with_a_module_called_guard_of_its_own_is_read_as_it_is():
    own = nn.Module()
    own.guard = Guard(*(torch.full((3,), value) for value in (5.0, 1.0, 0.0, 1.0)))
    assert torch.equal(load_defended(own, own.state_dict()).guard.low, own.guard.low)
