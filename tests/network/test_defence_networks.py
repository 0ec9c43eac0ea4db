"""The policy *defend* on networks of unusual kinds: right, or left alone with a reason, or refused; never a guess."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from netpurify import InputError
from netpurify.network.adapter.layers import as_layers
from netpurify.network.policies.defence.moments import Moments
from tests.network.made_networks import defend

STRENGTH = 0.2


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Net(nn.Module):
    """Two layers with a norm between, and a way through them."""

    def __init__(self, forward):
        super().__init__()
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(0)
            self.first, self.norm, self.last = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.way = forward
        self.eval()

    def forward(self, inputs):
        return self.way(self, inputs)


def plain(net, inputs):
    return net.last(net.norm(net.first(inputs)).relu())


def state(result):
    return result.model.state_dict()


def test_arguments_by_name_are_arguments():
    expected = state(defend(Net(plain), draw(50, 6), strength=STRENGTH))
    by_name = Net(lambda net, inputs: net.last(input=net.norm(input=net.first(input=inputs)).relu()))
    found = defend(by_name, draw(50, 6), strength=STRENGTH)
    assert found.layers[0].guarded == "norm"
    assert all(torch.equal(value, expected[name]) for name, value in state(found).items())


def test_a_norm_behind_an_in_place_activation_is_not_the_layers_own():
    for way in (lambda net, inputs: net.last(net.norm(net.first(inputs).relu_())),
                lambda net, inputs: net.last(net.norm(net.first(inputs).relu()))):  # fmt: skip
        assert defend(Net(way), draw(50, 6), strength=STRENGTH).layers[0].guarded == "first"


def test_a_norm_that_others_use_too_is_not_guarded_for_one_of_them():
    shared = Net(lambda net, inputs: net.last(net.norm(net.norm(net.first(inputs)).relu())))
    assert defend(shared, draw(50, 6), strength=STRENGTH, layers=["first"]).layers[0].guarded == "first"


def test_hooks_of_the_callers_own_count():
    """With next to no ridge a network stays as it is, whatever its hooks make of a layer's output."""
    model = Net(plain)
    model.first.register_forward_hook(lambda *given: 3.0 * given[-1] + 1.0)
    model.last.register_forward_hook(lambda *given: given[-1] - 1.0, with_kwargs=True)
    assert defend(model, draw(200, 6), strength=1e-5, guard=False).agreement.change < 1e-3


def test_hooks_of_the_callers_own_run_once_in_each_call_of_their_layer():
    """One pass that traces the network, one that fits it, and one on held-out inputs with each of the two networks."""
    model, lengths = Net(plain), []
    model.first.register_forward_hook(lambda *given: lengths.append(len(given[-1])))
    defend(model, draw(50, 6), strength=STRENGTH)
    assert lengths == [40, 10, 80, 10]


def test_layers_that_do_not_see_inputs_one_by_one_are_left_as_they_are():
    across = Net(lambda net, inputs: net.last(net.first(inputs.transpose(0, 1)).mean(0)))
    result = defend(across, draw(50, 4, 6), strength=STRENGTH)
    assert [layer.name for layer in result.layers] == ["last"]
    reasons = {it.name: it.reason for it in result.skipped}
    assert reasons["first"] == "it sees 4 along the first dimension where 40 inputs go through, so not one by one"


def test_layers_that_are_called_by_what_weights_say_are_refused():
    def until_changed(net, inputs):
        hidden = net.first(inputs)
        if torch.equal(net.first.weight, weight):
            net.last(hidden)

    model = Net(until_changed)
    weight = model.first.weight.detach().clone()
    with pytest.raises(InputError, match="last is called no longer"):
        defend(model, draw(50, 6), strength=STRENGTH)


def test_chance_in_evaluation_is_refused():
    noisy = Net(lambda net, inputs: nn.functional.dropout(net.last(net.first(inputs))))
    with pytest.raises(InputError, match="switch off what draws random numbers"):
        defend(noisy, draw(50, 6), strength=STRENGTH)


@pytest.mark.parametrize(
    "last",
    [
        lambda scores: scores > 0,
        lambda scores: scores + 1j,
        lambda scores: scores[:, :0],
        lambda scores: scores.log(),
        lambda scores: torch.where(scores > 0, scores, -math.inf),
        lambda scores: scores.argmax(1),
        lambda _: {"text": "none"},
        lambda scores: scores.repeat_interleave(2, dim=0),  # two rows for an input
    ],
)
def test_outputs_that_are_no_scores_of_the_inputs_cost_what_nobody_can_count(last):
    model = Net(lambda net, inputs: last(net.last(net.first(inputs))))
    found = defend(model, draw(50, 6), strength=STRENGTH)
    assert (found.chosen.inputs, len(found.layers)) == (0, 2)
    assert math.isnan(found.bound)
    with pytest.raises(InputError, match=r'^strength="auto" needs a network that gives finite scores'):
        defend(model, draw(50, 6))
    with pytest.raises(InputError, match=r"^max_disagreement needs a network that gives finite scores"):
        defend(model, draw(50, 6), strength=STRENGTH, max_disagreement=0.5)


def test_weights_that_are_not_there_are_refused_before_anything_runs():
    with pytest.raises(InputError, match="on the meta device"):
        defend(Net(plain).to("meta"), draw(50, 6))
    with pytest.raises(InputError, match="is lazy"):
        defend(nn.Sequential(nn.LazyLinear(3)), draw(50, 6))


def test_what_progress_raises_comes_out_as_it_is():
    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match=r"^enough$"):
        defend(Net(plain), draw(50, 6), progress=stop)


def test_errors_name_the_layer():
    wide = nn.Sequential(nn.Linear(60, 3))
    with pytest.raises(InputError, match=r"^0: strength must be above the rounding of torch.float32; 1e-12 is not"):
        defend(wide, draw(200, 10) @ draw(10, 60), strength=1e-12)
    with pytest.raises(InputError, match=r"^first: strength must leave a finite ridge"):
        defend(Net(plain), draw(50, 6), strength=1.7e308)
    broken = Net(plain)
    with torch.no_grad():
        broken.last.weight[0, 0] = math.inf
    with pytest.raises(InputError, match=r"^last: weights and what layers see must be finite"):
        defend(broken, draw(50, 6), strength=STRENGTH)


@pytest.mark.parametrize(("images", "width"), [(800, 28), (400, 14), (300, 15)])
def test_moments_see_every_column_of_images(images, width):
    """Each column carries its own number, so that the mean of the rows tells which of them were seen."""
    layer = as_layers("", nn.Conv2d(1, 1, 1, bias=False))[0]
    columns = torch.arange(float(width)).expand(images, 1, width, width)
    moments = Moments(layer, columns, columns)
    assert 8_000 < moments.count < 20_000
    np.testing.assert_allclose(moments._second.item() / moments.count, (np.arange(width) ** 2).mean(), rtol=0.01)
