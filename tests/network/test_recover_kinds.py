"""Layers of every kind, trained by torch, altered, and recovered exactly where the theory says so."""

import copy

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from netpurify.contaminate import Normal
from netpurify.errors import InputError
from netpurify.network import Grade, Project, Recover, check, load_proof, purify, save_proof, verify_proof
from netpurify.network.proof.verification import RepairClaim
from netpurify.report.purification.mosaic import mosaic
from tests.network import made_networks as networks


def train(network, call, names, *, steps=30, lr=0.5, **options):
    """Full-batch SGD on the named parameters, on a loss that depends on every output."""
    chosen = [value for name, value in network.named_parameters() if name in names]
    assert len(chosen) == len(set(names))
    optimiser = torch.optim.SGD(chosen, lr=lr, **options)
    target = networks.seeded(lambda: torch.randn(call(network).shape), seed=5)
    for _ in range(steps):
        optimiser.zero_grad()
        (call(network) - target).square().mean().backward()
        optimiser.step()


def assert_recovered(network, initial, data, names, *, forward=None, share=0.05, tolerance=3e-6):
    """Alterations of the named tensors are found, all of them and no others; the healthy network keeps its bits."""
    healthy = purify(network, data, policy=Recover(initial), forward=forward)
    assert networks.same_bits(healthy.model, network)
    dirty, masks = networks.altered(network, Normal(), share, names=names)
    result = purify(dirty, data, policy=Recover(initial), forward=forward)
    assert networks.positions(result.altered) == networks.truth(masks)
    assert networks.largest_error(result.model, network) < tolerance
    table = result.altered
    for tensor, index, was, now in zip(table.tensor, table.index, table.was, table.now, strict=True):
        name = table.names[tensor]
        assert result.contaminated[name].flatten()[index] == was
        assert result.model.state_dict()[name].flatten()[index] == np.float32(now)
    assert result.verify().sound
    return result


class Named(nn.Module):
    """One module, called as ``call`` says, so that its parameters have names like those of a network."""

    def __init__(self, it, call=None):
        super().__init__()
        self.it, self.call = it, call or (lambda it, inputs: it(inputs))

    def forward(self, inputs):
        return self.call(self.it, inputs)


ALONE = {
    "conv1d of transformers": (lambda: Named(transformers.pytorch_utils.Conv1D(8, 96)), (24, 96), ["weight", "bias"]),
    "transposed convolution": (
        lambda: Named(nn.ConvTranspose2d(96, 8, 3, stride=2, padding=1, output_padding=1)), (2, 96, 3, 3),
        ["weight", "bias"],
    ),
    "transposed convolution with gaps": (
        lambda: Named(nn.ConvTranspose2d(96, 8, 2, stride=3)), (2, 96, 3, 3), ["weight"],
    ),
    "grouped transposed convolution": (
        lambda: Named(nn.ConvTranspose1d(120, 10, 2, stride=2, groups=2, bias=False)), (4, 120, 5), ["weight"],
    ),
    "bilinear": (
        lambda: Named(nn.Bilinear(12, 14, 8), lambda it, inputs: it(inputs[:, :12], inputs[:, 12:])), (30, 26),
        ["weight", "bias"],
    ),
    "inputs of an lstm": (
        lambda: Named(nn.LSTM(90, 6, batch_first=True), lambda it, inputs: it(inputs)[0]), (5, 4, 90),
        ["weight_ih_l0", "bias_ih_l0"],
    ),
    "inputs of a gru in both directions": (
        lambda: Named(nn.GRU(90, 5, bidirectional=True, bias=False), lambda it, inputs: it(inputs)[0]), (4, 5, 90),
        ["weight_ih_l0", "weight_ih_l0_reverse"],
    ),
    "queries, keys and values": (
        lambda: Named(nn.MultiheadAttention(80, 4, batch_first=True), lambda it, inputs: it(inputs, inputs, inputs)[0]),
        (5, 4, 80), ["in_proj_weight", "in_proj_bias"],
    ),
    "output of an attention": (
        lambda: Named(nn.MultiheadAttention(80, 4, batch_first=True), lambda it, inputs: it(inputs, inputs, inputs)[0]),
        (5, 4, 80), ["out_proj.weight", "out_proj.bias"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_layer_that_was_trained_alone_is_recovered_exactly(name, tmp_path):
    build, shape, tensors = ALONE[name]
    initial = networks.seeded(build)
    network, inputs = copy.deepcopy(initial), networks.seeded(lambda: torch.randn(*shape), seed=1)
    names = [f"it.{tensor}" for tensor in tensors]
    train(network, lambda model: model(inputs), names)
    result = assert_recovered(network, initial, inputs, names)
    recovered = {layer.name for layer in result.layers if layer.count(Grade.RECOVERED) == layer.units}
    assert recovered == {layer.name for layer in result.layers if not layer.frozen}
    assert len(recovered) == sum("weight" in tensor for tensor in tensors)
    save_proof(result, tmp_path / "proof.safetensors")
    proof = load_proof(tmp_path / "proof.safetensors")
    purified = {key: value.clone() for key, value in result.model.state_dict().items()}
    claim = RepairClaim(result.contaminated, result.initial, purified, "recover", proof.decays)
    assert verify_proof(proof.proofs, claim).sound
    tensor = names[0]
    purified[tensor].view(-1)[7] += 0.5
    assert not verify_proof(proof.proofs, claim).sound


class Tagger(nn.Module):
    """Tokens through an embedding and a Linear layer."""

    def __init__(self, tokens=300, width=24, padding=None):
        super().__init__()
        self.words, self.out = nn.Embedding(tokens, width, padding_idx=padding), nn.Linear(width, 3)

    def forward(self, tokens):
        return self.out(self.words(tokens).mean(dim=1))


def tagger(decay=0.0, padding=None):
    """A trained one, its initial weights, and the tokens that it was trained on, which are all below 40."""
    initial = networks.seeded(lambda: Tagger(padding=padding))
    network, tokens = copy.deepcopy(initial), networks.seeded(lambda: torch.randint(0, 40, (16, 6)), seed=1)
    train(network, lambda model: model(tokens), ["words.weight"], weight_decay=decay)
    return network, initial, tokens


def alter(network, name, *places):
    dirty = copy.deepcopy(network)
    with torch.no_grad():
        for place in places:
            dirty.get_parameter(name)[place] += 1.0
    return dirty


def test_rows_of_tokens_that_no_input_uses_are_restored_to_the_bit():
    network, initial, tokens = tagger(padding=0)
    assert networks.same_bits(purify(network, tokens, policy=Recover(initial)).model, network)
    places = [(100, 3), (101, 7), (250, 3), (299, 23), (0, 5), (200, 11)]
    result = purify(alter(network, "words.weight", *places, (1, 2)), tokens, policy=Recover(initial))
    assert networks.positions(result.altered) == {("words.weight", token * 24 + row) for token, row in places}
    expected = alter(network, "words.weight", (1, 2))  # the row of a token that is used is free
    assert networks.same_bits(result.model, expected)
    (words, _) = result.layers
    used = torch.unique(tokens).tolist()
    assert np.flatnonzero(words.grade == Grade.LEFT_ALONE).tolist() == [token for token in used if token]
    assert words.count(Grade.RESTORED) == 300 - words.count(Grade.LEFT_ALONE)
    assert words.unjudged == 0
    assert "tokens that clean inputs use" in words.reason
    assert result.verify().sound


def test_proof_of_an_embedding_is_checked(tmp_path):
    network, initial, tokens = tagger()
    result = purify(alter(network, "words.weight", (100, 3), (250, 9)), tokens, policy=Recover(initial))
    save_proof(result, tmp_path / "proof")
    proof = load_proof(tmp_path / "proof")
    purified = {name: value.clone() for name, value in result.model.state_dict().items()}
    claim = RepairClaim(result.contaminated, result.initial, purified, "recover", proof.decays)
    assert verify_proof(proof.proofs, claim).sound
    purified["words.weight"][100, 4] += 1.0  # neither as it was nor as it began
    assert sum(layer.unexplained for layer in verify_proof(proof.proofs, claim).layers) == 1
    purified["words.weight"][100, 4] -= 1.0
    purified["words.weight"][int(tokens[0, 0]), 4] = initial.words.weight[int(tokens[0, 0]), 4].detach()
    assert sum(layer.unexplained for layer in verify_proof(proof.proofs, claim).layers) == 1


def test_token_that_training_saw_and_the_inputs_lack_is_left_alone():
    network, initial, tokens = tagger()
    rest = tokens[(tokens != 5).all(dim=1) & (tokens != 6).all(dim=1)]
    assert 0 < len(rest) < len(tokens)
    lacking = set(torch.unique(tokens).tolist()) - set(torch.unique(rest).tolist())
    result = purify(alter(network, "words.weight", (100, 3), (250, 9)), rest, policy=Recover(initial))
    assert networks.positions(result.altered) == {("words.weight", 2403), ("words.weight", 6009)}
    assert result.layers[0].unjudged >= 20 * len(lacking)
    assert networks.same_bits(result.model, network)
    assert result.verify().sound


def test_decayed_rows_keep_their_bits_and_single_differences_are_listed():
    network, initial, tokens = tagger(decay=0.01)
    healthy = purify(network, tokens, policy=Recover(initial))
    assert networks.same_bits(healthy.model, network)
    assert not len(healthy.suspicious)
    assert healthy.layers[0].decay == pytest.approx(0.995**30, rel=1e-5)
    dirty = alter(network, "words.weight", (100, 3), (250, 9))
    result = purify(dirty, tokens, policy=Recover(initial))
    assert networks.same_bits(result.model, dirty)
    assert networks.positions(result.suspicious) == {("words.weight", 2403), ("words.weight", 6009)}


def test_missing_weights_of_an_embedding_are_rebuilt_and_later_layers_are_seen_through_trained_tokens():
    network, initial, tokens = tagger()
    train(network, lambda model: model(tokens), ["out.weight", "out.bias"])
    dirty = alter(network, "out.weight", (1, 5))
    with torch.no_grad():
        dirty.words.weight[int(tokens[0, 0]), 1] = torch.nan
        dirty.words.weight[100, 1] = torch.inf
    result = purify(dirty, tokens, policy=Recover(initial))
    state = result.model.state_dict()
    assert state["words.weight"].isfinite().all()
    assert torch.equal(state["words.weight"][100], initial.words.weight[100])
    plan = check(network, tokens, initial=initial)
    (words, _) = plan.layers
    assert not words.repairable
    assert "tokens" in words.reason


def test_projection_leaves_an_embedding_and_a_free_bias_as_they_are():
    network, initial, tokens = tagger()
    result = purify(network, tokens, policy=Project(initial))
    assert torch.equal(result.model.words.weight, network.words.weight)
    initial = networks.seeded(lambda: Named(nn.ConvTranspose1d(60, 5, 2, stride=3)))
    network, inputs = copy.deepcopy(initial), networks.seeded(lambda: torch.randn(3, 60, 4), seed=1)
    train(network, lambda model: model(inputs), ["it.weight", "it.bias"])
    result = purify(network, inputs, policy=Project(initial))
    assert torch.equal(result.model.it.bias, network.it.bias)
    assert not torch.equal(network.it.bias, initial.it.bias)
    assert result.verify().sound


class Shared(nn.Module):
    """Two Linear layers with one weight, each with a bias of its own or none."""

    def __init__(self, bias):
        super().__init__()
        self.a, self.b = nn.Linear(120, 8, bias=bias), nn.Linear(120, 8, bias=bias)
        self.b.weight = self.a.weight

    def forward(self, inputs):
        return torch.cat([self.a(inputs[:, 0]), self.b(inputs[:, 1])])


@pytest.mark.parametrize("bias", [True, False])
def test_rows_of_all_uses_explain_a_tied_weight(bias, tmp_path):
    initial = networks.seeded(lambda: Shared(bias))
    network, inputs = copy.deepcopy(initial), networks.seeded(lambda: torch.randn(12, 2, 120), seed=1)
    names = ["a.weight", "a.bias", "b.bias"] if bias else ["a.weight"]
    train(network, lambda model: model(inputs), names)
    assert networks.same_bits(purify(network, inputs, policy=Recover(initial)).model, network)
    dirty = alter(network, "a.weight", *((unit, 11 * unit + 3) for unit in range(8)))
    if bias:
        dirty = alter(dirty, "b.bias", (2,), (5,))
    result = purify(dirty, inputs, policy=Recover(initial))
    expected = {("a.weight", unit * 120 + 11 * unit + 3) for unit in range(8)}
    assert networks.positions(result.altered) == expected | ({("b.bias", 2), ("b.bias", 5)} if bias else set())
    assert networks.largest_error(result.model, network) < 3e-6
    assert result.model.b.weight is result.model.a.weight
    (layer,) = result.layers
    assert layer.rank == 24
    assert layer.count(Grade.RECOVERED) == 8
    assert result.verify().sound
    save_proof(result, tmp_path / "proof")
    proof = load_proof(tmp_path / "proof")
    purified = result.model.state_dict()
    claim = RepairClaim(result.contaminated, result.initial, purified, "recover", proof.decays)
    assert verify_proof(proof.proofs, claim).sound
    purified["b.weight"] = purified["b.weight"] + 1.0  # no longer the same tensor
    assert not verify_proof(proof.proofs, claim).sound


class SharedBias(nn.Module):
    """Two Linear layers with one bias: neither layer alone explains how the bias changed."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(120, 8), nn.Linear(120, 8)
        self.b.bias = self.a.bias

    def forward(self, inputs):
        return torch.cat([self.a(inputs[:, 0]), self.b(inputs[:, 1])])


def test_bias_that_another_layer_uses_too_is_left_out_of_the_regressions():
    initial = networks.seeded(SharedBias)
    network, inputs = copy.deepcopy(initial), networks.seeded(lambda: torch.randn(12, 2, 120), seed=1)
    train(network, lambda model: model(inputs), ["a.weight", "a.bias", "b.weight"])
    assert networks.same_bits(purify(network, inputs, policy=Recover(initial)).model, network)
    dirty = alter(alter(network, "a.weight", (3, 7)), "b.weight", (4, 119))
    result = purify(dirty, inputs, policy=Recover(initial))
    assert networks.positions(result.altered) == {("a.weight", 367), ("b.weight", 599)}
    assert [layer.fan_in for layer in result.layers] == [120, 120]
    assert [(skip.name, skip.missed) for skip in result.skipped] == [("a", True)]  # the shared bias, by its first name
    assert result.verify().sound


def test_initial_weights_may_have_a_tied_tensor_once():
    initial = networks.seeded(lambda: Shared(True))
    network, inputs = copy.deepcopy(initial), networks.seeded(lambda: torch.randn(12, 2, 120), seed=1)
    train(network, lambda model: model(inputs), ["a.weight"])
    state = {name: value for name, value in initial.state_dict().items() if name != "a.weight"}
    dirty = alter(network, "a.weight", (3, 7))
    result = purify(dirty, inputs, policy=Recover(state))
    assert networks.positions(result.altered) == {("a.weight", 367)}
    assert result.verify().sound


class Head(nn.Module):
    """A language model's ends: tokens are looked up in the weight by which they are predicted."""

    def __init__(self, own_bias):
        super().__init__()
        self.words, self.out = nn.Embedding(90, 64), nn.Linear(64, 90, bias=own_bias)
        self.out.weight = self.words.weight
        if own_bias:
            self.bias = self.out.bias  # as in BERT, whose head keeps a second name of the bias

    def forward(self, tokens):
        return self.out(self.words(tokens).mean(dim=1).tanh())


@pytest.mark.parametrize("own_bias", [False, True])
def test_head_tied_with_an_embedding_is_exact_for_tokens_that_no_input_uses(own_bias):
    initial = networks.seeded(lambda: Head(own_bias))
    network, tokens = copy.deepcopy(initial), networks.seeded(lambda: torch.randint(0, 20, (8, 5)), seed=1)
    # Tokens below 20 are looked up: their rows change in any direction. Then the others are trained by the head, so
    # that what the head sees does not move.
    with torch.no_grad():
        network.words.weight[:20] += networks.seeded(lambda: 0.1 * torch.randn(20, 64), seed=3)
        hidden = network.words(tokens).mean(dim=1).tanh()
    target = networks.seeded(lambda: torch.randn(8, 90), seed=4)
    optimiser = torch.optim.SGD([network.words.weight], lr=1.0)
    for _ in range(20):
        optimiser.zero_grad()
        (network.out(hidden) - target).square().mean().backward()
        network.words.weight.grad[:20] = 0.0
        optimiser.step()
    assert networks.same_bits(purify(network, tokens, policy=Recover(initial)).model, network)
    dirty = alter(network, "words.weight", (40, 7), (77, 1), (88, 63))
    result = purify(dirty, tokens, policy=Recover(initial))
    name = "out.weight"
    assert networks.positions(result.altered) == {(name, 40 * 64 + 7), (name, 77 * 64 + 1), (name, 88 * 64 + 63)}
    assert networks.largest_error(result.model, network) < 3e-6
    assert result.model.out.weight is result.model.words.weight
    (layer,) = result.layers
    assert np.flatnonzero(layer.grade == Grade.LEFT_ALONE).tolist() == list(range(20))
    assert layer.count(Grade.RECOVERED) == 70
    assert result.verify().sound


def test_weights_that_are_tied_in_part_or_elsewhere_are_refused():
    class Elsewhere(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
            self.own = self.a.weight

        def forward(self, inputs):
            return self.b(self.a(inputs) @ self.own)

    plan = check(networks.seeded(Elsewhere), torch.ones(2, 6))
    reasons = {skip.name: skip.reason for skip in plan.skipped}
    assert reasons["a"] == "its weights are tied with own, whose use of them is not known"
    assert [layer.name for layer in plan.layers] == ["b"]


def encoder():
    part = nn.TransformerEncoderLayer(96, 4, 48, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(part, 2, enable_nested_tensor=False)


def test_every_layer_of_a_transformer_encoder_is_seen_in_spite_of_the_fast_path():
    initial = networks.seeded(encoder).eval()
    network, inputs = copy.deepcopy(initial), networks.seeded(lambda: torch.randn(4, 5, 96), seed=1)
    names = ["layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias"]
    train(network, lambda model: model(inputs), names)
    result = assert_recovered(network, initial, inputs, names)
    parts = ("self_attn.in_proj", "self_attn.out_proj", "linear1", "linear2")
    assert [layer.name for layer in result.layers] == [f"layers.{number}.{part}" for number in (0, 1) for part in parts]
    assert {skip.kind for skip in result.skipped} == {"LayerNorm"}
    assert torch.backends.mha.get_fastpath_enabled()


def test_parts_are_chosen_by_the_name_of_their_module_or_their_own():
    network = networks.seeded(lambda: Named(nn.LSTM(5, 3, num_layers=2), lambda it, inputs: it(inputs)[0]))
    inputs = torch.ones(4, 2, 5)
    everything = [layer.name for layer in check(network, inputs).layers]
    assert everything == [f"it.weight_{which}_l{number}" for number in (0, 1) for which in ("ih", "hh")]
    assert [layer.name for layer in check(network, inputs, layers=["it"]).layers] == everything
    assert [layer.name for layer in check(network, inputs, layers=["it.weight_hh_l0"]).layers] == ["it.weight_hh_l0"]
    with pytest.raises(InputError, match=r"'it\.nope' is none of"):
        check(network, inputs, layers=["it.nope"])


class Decoder(nn.Module):
    """Layers that a defence can fit, among others that it leaves as they are."""

    def __init__(self):
        super().__init__()
        self.first, self.up = transformers.pytorch_utils.Conv1D(24, 12), nn.ConvTranspose1d(6, 5, 3, stride=2)
        self.cell, self.out = nn.GRU(5, 7, batch_first=True), nn.Linear(7, 3)

    def forward(self, inputs):
        values = self.up(self.first(inputs).relu().unflatten(1, (6, 4)))
        return self.out(self.cell(values.transpose(1, 2))[0][:, -1])


def test_defence_fits_layers_of_new_kinds_and_names_those_that_it_cannot():
    network, inputs = networks.seeded(Decoder), networks.seeded(lambda: torch.randn(60, 12), seed=1)
    defence = networks.defend(network, inputs, strength=1e-9, guard=False)
    assert [layer.name for layer in defence.layers] == ["first", "up", "out"]
    assert {skip.name for skip in defence.skipped} == {"cell.weight_ih_l0", "cell.weight_hh_l0"}
    assert networks.largest_error(defence.model, network) < 1e-2
    torch.testing.assert_close(defence.model(inputs), network(inputs), rtol=1e-3, atol=1e-3)


def test_picture_of_a_transposed_weight_has_units_as_rows():
    initial = networks.seeded(lambda: Named(transformers.pytorch_utils.Conv1D(8, 96)))
    dirty = alter(initial, "it.weight", (5, 3), (90, 7))
    (layer,) = purify(dirty, torch.ones(2, 96), policy=Recover(initial)).layers
    pixels = mosaic(layer).pixels
    assert pixels.shape[:2] == (8, 96)
    marked = (pixels != pixels[0, 0]).any(axis=2)
    assert np.argwhere(marked).tolist() == [[3, 5], [7, 90]]
