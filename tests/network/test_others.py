"""Parts that are not written as regressions: compared with their initial values, and set back where altered."""

import pytest
import torch
from torch import nn

from netpurify.network import Grade, Recover, TensorVerdict, check, purify


class Backbone(nn.Module):
    """A frozen backbone with every kind of part that is no layer, and a head."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.position = nn.Parameter(torch.randn(1, 5, 12))
        self.register_buffer("order", torch.arange(5))
        self.norm = nn.BatchNorm1d(12)
        self.layer_norm = nn.LayerNorm(60)
        self.recurrent = nn.LSTM(12, 12, batch_first=True)
        self.head = nn.Linear(60, 3)
        for buffer in (self.norm.running_mean, self.norm.running_var, self.norm.weight, self.layer_norm.weight):
            buffer.data += 0.2 * torch.rand_like(buffer)

    def forward(self, tokens):
        hidden = self.embedding(tokens) + self.position[:, self.order]
        hidden = self.norm(hidden.transpose(1, 2)).transpose(1, 2)
        hidden = hidden + self.recurrent(hidden)[0]
        return self.head(self.layer_norm(hidden.flatten(1)))


@pytest.fixture
def trained():
    """A network whose head was trained by SGD on 12 inputs, those inputs, and its initial weights."""
    torch.manual_seed(3)
    model = Backbone().eval()
    initial = {name: value.clone() for name, value in model.state_dict().items()}
    inputs, labels = torch.randint(0, 50, (12, 5)), torch.randint(0, 3, (12,))
    optimiser = torch.optim.SGD(model.head.parameters(), lr=0.5)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimiser.step()
    return model, inputs, initial


def tamper(model, name, index, value):
    with torch.no_grad():
        model.state_dict()[name].reshape(-1)[index] = value


PARTS = [
    ("norm.weight", 3, 1e4), ("norm.bias", 0, 0.5), ("norm.running_mean", 7, -3.0), ("norm.running_var", 2, 1e4),
    ("layer_norm.weight", 11, float("nan")), ("embedding.weight", 77, 0.9), ("position", 8, 2.0), ("order", 1, 4),
    ("recurrent.weight_hh_l0", 5, float("inf")), ("recurrent.bias_ih_l0", 9, -1.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "index", "value"), PARTS, ids=[name for name, *_ in PARTS])
def test_a_frozen_part_has_its_initial_bits_again_and_does_not_spoil_the_head(trained, name, index, value):
    model, inputs, initial = trained
    truth = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    tamper(model, name, index, value)
    tamper(model, "head.weight", 17, 2.5)
    was = model.state_dict()[name].reshape(-1)[index].double().item()
    result = purify(model, inputs, policy=Recover(initial))
    purified = result.model.state_dict()
    for key in truth:
        if key != "head.weight":
            assert torch.equal(purified[key], truth[key]), key
    assert (purified["head.weight"] - truth["head.weight"]).abs().max() < 1e-5
    places = {(result.altered.names[tensor], int(place)) for tensor, place in
              zip(result.altered.tensor, result.altered.index, strict=True)}  # fmt: skip
    assert places == {(name, index), ("head.weight", 17)}
    entry = result.altered.names.index(name)
    (row,) = [position for position, tensor in enumerate(result.altered.tensor) if tensor == entry]
    assert result.altered.grade[row] == Grade.RESTORED
    assert result.altered.was[row] == was or was != was
    assert result.altered.now[row] == initial[name].reshape(-1)[index].double().item()
    assert result.coverage.examined == result.coverage.total == sum(value.numel() for value in truth.values())
    assert result.verify().sound


def test_the_callers_network_and_a_healthy_one_keep_their_bits(trained):
    model, inputs, initial = trained
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    result = purify(model, inputs, policy=Recover(initial))
    assert len(result.altered) == 0
    for key, value in before.items():
        assert torch.equal(model.state_dict()[key], value)
        assert torch.equal(result.model.state_dict()[key], value)
    assert all(part.settled and not part.missed for part in result.skipped)
    assert {one.verdict for one in result.compared} == {TensorVerdict.SAME}


def test_a_trained_part_is_compared_only_and_what_cannot_be_is_replaced(trained):
    model, inputs, initial = trained
    with torch.no_grad():
        model.layer_norm.weight += 0.01 * torch.randn(60)
        model.layer_norm.weight[4] = float("nan")
    result = purify(model, inputs, policy=Recover(initial))
    (part,) = [part for part in result.skipped if part.missed]
    assert part.name == "layer_norm"
    (one,) = [one for one in result.compared if one.verdict == TensorVerdict.TRAINED]
    assert one.impossible.index.tolist() == [4]
    assert result.model.layer_norm.weight[4] == initial["layer_norm.weight"][4]
    assert torch.equal(result.model.layer_norm.weight[5:], model.layer_norm.weight[5:])
    assert result.altered.grade.tolist() == [Grade.APPROXIMATE]
    assert result.coverage.compared >= 60


def test_what_is_said_to_be_frozen_is_set_back_whatever_differs(trained):
    model, inputs, initial = trained
    with torch.no_grad():
        model.layer_norm.weight += 0.01 * torch.randn(60)
    result = purify(model, inputs, policy=Recover(initial, frozen=("layer_norm.*",)))
    assert torch.equal(result.model.layer_norm.weight, initial["layer_norm.weight"])
    assert len(result.altered) == 60
    assert not any(part.missed for part in result.skipped)
    assert result.verify().sound


def test_check_names_what_differs(trained):
    model, inputs, initial = trained
    tamper(model, "norm.weight", 3, 1e4)
    plan = check(model, inputs, initial=initial)
    (one,) = [one for one in plan.compared if one.verdict != TensorVerdict.SAME]
    assert (one.name, one.altered.index.tolist(), one.altered.was.tolist()) == ("norm.weight", [3], [1e4])


def test_a_proof_does_not_cover_what_the_comparison_does_not_show(trained):
    model, inputs, initial = trained
    tamper(model, "norm.weight", 3, 1e4)
    result = purify(model, inputs, policy=Recover(initial))
    assert result.verify().sound
    with torch.no_grad():
        result.model.norm.weight[3] += 0.25
    assert not result.verify().sound
