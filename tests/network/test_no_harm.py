"""Healthy networks come back bit for bit, also where most steps of training were rounded away."""

import copy

import pytest
import torch
from torch import Tensor, nn

import netpurify
from netpurify.experiments.studies import architectures
from netpurify.experiments.studies.healthy.networks import HealthyCase, make
from netpurify.network import Grade, Purification, Recover, purify
from tests.network.fine_tuning import HEALTHY, WORDS, Tagger, made, tuned

ROUNDED = (
    "bfloat16, Adam",
    "bfloat16, Adam, small steps",
    "bfloat16, all but a few rounded away",
    "bfloat16, norms in train mode, most rounded away",
    "bfloat16, sign descent",
    "bfloat16, eight words, Adam",
    "float16, most rounded away",
)
SEED = 11


def _network(name: str) -> tuple[Tagger, dict[str, Tensor], Tensor]:
    """A healthy network, its initial weights, and clean inputs, some of which training saw."""
    tuning = HEALTHY[name]
    base, state = tuned(tuning, SEED)
    network = made(SEED, tuning.dtype).eval()
    network.load_state_dict(state)
    generator = torch.Generator().manual_seed(SEED + 1)
    seen = torch.randint(1, tuning.words, (12, 8), generator=generator)
    return network, base, torch.cat([seen, torch.randint(1, WORDS, (4, 8), generator=generator)])


def _assert_untouched(network: nn.Module, result: Purification) -> None:
    assert len(result.altered) == 0
    purified = result.model.state_dict()
    for name, value in network.state_dict().items():
        assert torch.equal(value.reshape(-1).view(torch.uint8), purified[name].reshape(-1).view(torch.uint8)), name


@pytest.mark.parametrize("name", ROUNDED)
def test_layers_whose_training_was_rounded_away_are_not_taken_for_frozen_ones(name: str) -> None:
    network, base, inputs = _network(name)
    _assert_untouched(network, netpurify.purify(network, inputs, policy=netpurify.Recover(base, proof=False)))


def test_nor_if_one_layer_is_chosen() -> None:
    network, base, inputs = _network("bfloat16, eight words, Adam")
    policy = netpurify.Recover(base, proof=False)
    _assert_untouched(network, netpurify.purify(network, inputs, policy=policy, layers=["mix", "last"]))


def test_check_does_not_call_them_frozen_either() -> None:
    network, base, inputs = _network("bfloat16, eight words, Adam")
    plan = netpurify.check(network, inputs, initial=base)
    assert not {layer.name for layer in plan.layers if layer.frozen} & {"mix", "first", "last"}


class _Typed(nn.Module):
    """A frozen network with a table of two types, positions with a leading axis, and a head without bias."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.types = nn.Embedding(2, 24)
        self.positions = nn.Parameter(0.1 * torch.randn(1, 40, 24))
        self.first, self.second = nn.Linear(24, 48), nn.Linear(48, 64)
        self.third, self.fourth = nn.Linear(64, 64), nn.Linear(64, 96)
        self.head = nn.Linear(96, units, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        """Scores of inputs [count, positions, features]; the head sees many zeros."""
        typed = self.types(torch.zeros(values.shape[:2], dtype=torch.long))
        hidden = torch.relu(self.first(values + typed + self.positions[:, : values.shape[1]]).mean(dim=1))
        hidden = torch.relu(self.third(torch.relu(self.second(hidden))))
        return self.head(torch.relu(self.fourth(hidden) - 0.05))


@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize("part", ["types", "positions", "head"])
def test_small_tables_and_heads_that_training_reached_in_part_are_left_alone(part: str, units: int) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(units)
        network, inputs, target = _Typed(units).eval(), torch.randn(8, 12, 24), torch.randn(8, units)
    base = {name: value.detach().clone() for name, value in network.state_dict().items()}
    trained = [value for name, value in network.named_parameters() if name.startswith(part)]
    optimiser = torch.optim.SGD(trained, lr=0.1)
    for _ in range(10):
        optimiser.zero_grad()
        (network(inputs) - target).square().mean().backward()
        optimiser.step()
    name = part if part == "positions" else f"{part}.weight"
    assert 0 < int((network.state_dict()[name] != base[name]).sum()) <= base[name].numel() // 2
    assert not netpurify.scan(network, base).found
    _assert_untouched(network, netpurify.purify(network, inputs, policy=netpurify.Recover(base, proof=False)))


def test_a_vector_alone_in_its_module_is_altered_only_in_few_entries() -> None:
    generator = torch.Generator().manual_seed(0)
    matrices = {f"{number}.weight": torch.randn(8, 8, generator=generator) for number in range(4)}
    base = {"norm.weight": torch.rand(64, generator=generator) + 0.5, **matrices}
    noise = torch.randn(64, generator=generator)
    for count, expected in ((3, 3), (24, 0)):
        value = torch.where(torch.arange(64) < count, base["norm.weight"] + noise, base["norm.weight"])
        assert sum(one.altered_count for one in netpurify.scan(base | {"norm.weight": value}, base).found) == expected


def test_a_few_recovered_units_are_no_model_for_the_others() -> None:
    trained = make(HealthyCase("MLP", "AdamW", 1, "float32", 12))
    generator = torch.Generator().manual_seed(57)
    weight = trained.network.get_parameter("1.weight")
    clean = weight.detach().clone().reshape(-1)
    places = torch.randperm(clean.numel(), generator=generator)[:20]
    with torch.no_grad():
        weight.view(-1)[places] += 0.5
    policy = netpurify.Recover(trained.initial, proof=False)
    result = netpurify.purify(trained.network, trained.clean["training inputs"], policy=policy)
    healthy = torch.ones(clean.numel(), dtype=torch.bool)
    healthy[places] = False
    purified = result.model.get_parameter("1.weight").detach().reshape(-1)
    assert int((purified != clean)[healthy].sum()) <= 10


@pytest.mark.parametrize("seed", range(6))
def test_a_factor_of_decay_that_makes_any_unit_agree_proves_nothing(seed):
    torch.manual_seed(seed)
    initial = nn.Sequential(nn.Linear(64, 1))
    model, inputs, labels = copy.deepcopy(initial), torch.randn(64, 64), torch.randn(64, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(15):
        optimiser.zero_grad()
        (model(inputs) - labels).square().mean().backward()
        optimiser.step()
    with torch.no_grad():
        model[0].weight[0, 0] += 0.05
    result = purify(model, inputs, policy=Recover(initial))  # the rank is 64, the fan-in 65
    assert result.count(Grade.RECOVERED) == 0


@pytest.mark.slow
def test_biases_that_adam_moved_are_not_altered_in_half_precision():
    pytest.importorskip("transformers")
    settings = {"network": "ViT", "tuned": "all", "dtype": "bfloat16", "attack": "none"}
    (row,) = architectures.trial(settings, 0)
    assert (row["false"], row["bits_changed"]) == (0, 0)
