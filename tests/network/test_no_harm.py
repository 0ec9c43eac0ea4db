"""Healthy networks come back bit for bit, also where most steps of training were rounded away."""

import pytest
import torch
from torch import Tensor, nn

import netpurify
from netpurify.network import Purification
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
