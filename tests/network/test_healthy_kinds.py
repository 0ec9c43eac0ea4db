"""Networks of every kind of layer in which nothing is wrong: whatever trained them, not one bit is changed."""

import copy
import itertools

import pytest
import torch
from torch import nn

from netpurify.network import Recover, purify
from tests.network import made_networks as networks


class Tokens(nn.Module):
    """Tokens through an embedding, a recurrent part or an attention, and a head that may be tied with the embedding."""

    def __init__(self, middle, *, tied=False, decoder=False):
        super().__init__()
        self.words, self.middle, self.norm = nn.Embedding(60, 16), middle(), nn.LayerNorm(16)
        self.up = nn.ConvTranspose1d(16, 16, 3, stride=2) if decoder else nn.Identity()
        self.out = nn.Linear(16, 60, bias=not tied)
        if tied:
            self.out.weight = self.words.weight

    def forward(self, tokens):
        values = self.words(tokens)
        values = (
            self.middle(values, values, values)
            if isinstance(self.middle, nn.MultiheadAttention)
            else self.middle(values)
        )
        values = self.norm(values[0] if isinstance(values, tuple) else values)
        return self.out(self.up(values.transpose(1, 2)).mean(dim=2))


MIDDLES = {
    "lstm": lambda: nn.LSTM(16, 16, batch_first=True),
    "gru": lambda: nn.GRU(16, 8, num_layers=2, bidirectional=True, batch_first=True),
    "attention": lambda: nn.MultiheadAttention(16, 2, batch_first=True),
    "encoder": lambda: nn.TransformerEncoderLayer(16, 2, 24, batch_first=True),
}
OPTIMISERS = {
    "sgd": lambda values: torch.optim.SGD(values, lr=0.3),
    "decay": lambda values: torch.optim.SGD(values, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda values: torch.optim.Adam(values, lr=0.01),
    "adamw": lambda values: torch.optim.AdamW(values, lr=0.003, weight_decay=0.1),
    "rprop": lambda values: torch.optim.Rprop(values, lr=0.01),
}


def trained(middle, optimiser, tied, steps, tokens, seed):
    initial = networks.seeded(lambda: Tokens(MIDDLES[middle], tied=tied, decoder=seed % 2 == 0), seed)
    network = copy.deepcopy(initial)
    labels = networks.seeded(lambda: torch.randint(0, 60, (len(tokens),)), seed + 1)
    chosen = OPTIMISERS[optimiser](network.parameters())
    for _ in range(steps):
        chosen.zero_grad()
        nn.functional.cross_entropy(network(tokens), labels).backward()
        chosen.step()
    return network, initial


@pytest.mark.slow
@pytest.mark.parametrize("middle", MIDDLES)
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_healthy_networks_keep_their_bits(middle, optimiser):
    for seed, (tied, steps) in enumerate(itertools.product((False, True), (1, 3, 30))):
        tokens = networks.seeded(lambda: torch.randint(0, 40, (12, 5)), seed + 50)
        other = networks.seeded(lambda: torch.randint(0, 60, (12, 5)), seed + 90)
        network, initial = trained(middle, optimiser, tied, steps, tokens, seed)
        for inputs in (tokens, tokens[:4], other):
            result = purify(network, inputs, policy=Recover(initial, proof=False))
            assert networks.same_bits(result.model, network), (
                tied,
                steps,
                len(inputs),
                networks.positions(result.altered),
            )
