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
    assert result.count(Grade.RECOVERED) == sum(layer.units for layer in result.layers)
    assert {skip.kind for skip in result.skipped} == {"BatchNorm2d"}
