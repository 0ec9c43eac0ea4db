"""Networks that nobody here wrote: small ones of Hugging Face transformers, built from their configs."""

import copy

import pytest
import torch
import transformers
from torch import nn

from netpurify.network import Grade, Recover, check, purify
from tests.network import made_networks as networks


def resnet():
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=4
    )
    return transformers.ResNetForImageClassification(config)


def convnext():
    config = transformers.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=4)
    return transformers.ConvNextForImageClassification(config)


def vit():
    sizes = {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(**sizes, image_size=32, patch_size=8, num_labels=4)
    )


def trained(build):
    initial = networks.seeded(build).eval()
    network = copy.deepcopy(initial).train()
    images = networks.seeded(lambda: torch.rand(8, 3, 32, 32), seed=1)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    for _ in range(4):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(images).logits, torch.arange(8) % 4).backward()
        optimiser.step()
    return network.eval(), initial, networks.seeded(lambda: torch.rand(12, 3, 32, 32), seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("build", [resnet, convnext, vit])
def test_healthy_network_is_left_alone_and_exponent_flips_are_undone_in_every_layer(build):
    network, initial, images = trained(build)
    plan = check(network, images, initial=initial)
    named = {name for name, module in network.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)}
    assert {layer.name for layer in plan.layers} | {skip.name for skip in plan.skipped} >= named
    assert {layer.name for layer in plan.layers} <= named
    assert networks.same_bits(purify(network, images, policy=Recover(initial, proof=False)).model, network)

    dirty, places = copy.deepcopy(network), set()
    for number, layer in enumerate(plan.layers):
        weight = dirty.get_parameter(f"{layer.name}.weight").data
        index = (7919 * (number + 1)) % weight.numel()
        weight.view(-1).view(torch.int32)[index] ^= 1 << 30
        places.add((f"{layer.name}.weight", index))
    result = purify(dirty, images, policy=Recover(initial, proof=False))
    assert networks.positions(result.altered) == places
    assert result.count(Grade.APPROXIMATE) >= 1
    for name, index in places:
        now, true = result.model.state_dict()[name].reshape(-1)[index], network.state_dict()[name]
        assert abs(now - true.reshape(-1)[index]) < 3.0 * true.std()


@pytest.mark.slow
def test_head_over_a_frozen_backbone_is_exact():
    initial = networks.seeded(resnet).eval()
    network = copy.deepcopy(initial)
    images = networks.seeded(lambda: torch.rand(5, 3, 32, 32), seed=1)
    head = network.classifier[1]
    optimiser = torch.optim.SGD(head.parameters(), lr=0.5)
    for _ in range(50):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(images).logits, torch.arange(5) % 4).backward()
        optimiser.step()
    names = [name for name in network.state_dict() if name.endswith(("convolution.weight", "1.weight"))]
    generator = torch.Generator().manual_seed(0)
    dirty = copy.deepcopy(network)
    with torch.no_grad():
        for name in names:
            value = dirty.get_parameter(name)
            value[torch.rand(value.shape, generator=generator) < 0.05] += 1.0
    result = purify(dirty, images, policy=Recover(initial))
    assert networks.largest_error(result.model, network) < 2e-6
    assert result.count(Grade.RECOVERED) == result.layers[-1].units
    assert result.count(Grade.RESTORED) == sum(layer.units for layer in result.layers[:-1])
    assert {skip.kind for skip in result.skipped} == {"BatchNorm2d"}


SMALL = {"vocab_size": 300, "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}


def gpt2():
    sizes = {"vocab_size": 300, "n_embd": 96, "n_layer": 2, "n_head": 4, "n_positions": 32}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    return transformers.GPT2LMHeadModel(config)


def bert():
    return transformers.BertForMaskedLM(
        transformers.BertConfig(**SMALL, intermediate_size=128, max_position_embeddings=32)
    )


def llama():
    sizes = {"intermediate_size": 128, "num_key_value_heads": 2, "max_position_embeddings": 32}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, **sizes, bos_token_id=0, eos_token_id=0))


LANGUAGE = {
    "transformer.h.1.mlp.c_fc": (gpt2, {"transformer.wpe", "lm_head"}),
    "bert.encoder.layer.1.intermediate.dense": (
        bert,
        {"bert.embeddings.position_embeddings", "bert.embeddings.token_type_embeddings", "cls.predictions.decoder"},
    ),
    "model.layers.1.mlp.up_proj": (llama, {"model.embed_tokens", "lm_head"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("trained", LANGUAGE)
def test_language_model_of_which_one_layer_was_trained_is_exact(trained):
    build, others = LANGUAGE[trained]
    initial = networks.seeded(build).eval()
    network, tokens = copy.deepcopy(initial), networks.seeded(lambda: torch.randint(0, 100, (3, 8)), seed=1)
    layer = network.get_submodule(trained)
    optimiser = torch.optim.SGD(layer.parameters(), lr=20.0)
    for _ in range(20):
        optimiser.zero_grad()
        logits = network(input_ids=tokens).logits
        nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
        optimiser.step()
    data = [{"input_ids": tokens}]
    assert networks.same_bits(purify(network, data, policy=Recover(initial)).model, network)
    # In an embedding of two tokens, such as that of BERT's token types, no pattern can be told from chance.
    names = [name for name, value in network.state_dict().items() if value.dim() == 2 and len(value) > 2]
    names += [name for name in network.state_dict() if name == f"{trained}.bias"]
    dirty, masks = copy.deepcopy(network), set()
    generator = torch.Generator().manual_seed(0)
    for name in names:
        value = dirty.state_dict()[name]
        chosen = torch.rand(value.shape, generator=generator) < 0.02
        if name not in ("lm_head.weight", "cls.predictions.decoder.weight") or "llama" in build.__name__:
            masks |= {(name, int(index)) for index in chosen.reshape(-1).nonzero()}
            value[chosen] += 1.0
    result = purify(dirty, data, policy=Recover(initial))
    assert others < {one.name for one in result.layers}
    assert networks.largest_error(result.model, network) < 2e-6
    assert result.count(Grade.RECOVERED) == next(one.units for one in result.layers if one.name == trained)
    assert all(one.frozen for one in result.layers if one.name != trained)
    tied = {"transformer.wte.weight": "lm_head.weight",
            "bert.embeddings.word_embeddings.weight": "cls.predictions.decoder.weight"}  # fmt: skip
    tied = {} if build is llama else tied
    assert networks.positions(result.altered) == {(tied.get(name, name), index) for name, index in masks}
    assert {one.kind for one in result.skipped} <= {"LayerNorm", "LlamaRMSNorm", "BertLMPredictionHead"}
    assert result.verify().sound
