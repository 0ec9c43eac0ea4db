"""Networks that nobody here wrote: ResNet-18, ConvNeXt and ViT of Hugging Face transformers, built from their configs.

    python benchmarks/transformers_models.py --markdown docs/transformers-results.md

Random weights, trained for a few steps on random images so that every layer differs from its initial weights. Then, in
every layer that can be written as a regression, the highest exponent bit of some weights is flipped.
"""

import argparse
import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

import netpurify

FLIPS = 3
CONVOLUTIONAL = (transformers.ResNetForImageClassification, transformers.ConvNextForImageClassification)
IMAGES = 32
COLUMNS = (
    "network", "layers", "repairable exactly", "not examined", "check, s", "healthy: changed", "flips", "found",
    "false", "largest error left / spread of the weights", "purify, s",
)  # fmt: skip


def networks() -> Iterator[tuple[str, nn.Module, int]]:
    """Name, network, size of its images."""
    hf: Any = transformers  # its configs take more than their signatures say

    sizes = {"embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}
    yield "ResNet-18", hf.ResNetForImageClassification(hf.ResNetConfig(**sizes, layer_type="basic", num_labels=10)), 224
    yield (
        "ConvNeXt",
        hf.ConvNextForImageClassification(
            hf.ConvNextConfig(hidden_sizes=[32, 64, 128, 256], depths=[2, 2, 2, 2], num_labels=10)
        ),
        96,
    )
    vit = hf.ViTConfig(hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768,
                       image_size=96, patch_size=16, num_labels=10)  # fmt: skip
    yield "ViT", hf.ViTForImageClassification(vit), 96


def trained(initial: nn.Module, images: Tensor) -> nn.Module:
    """A few steps with momentum, in training mode, so that BatchNorm has statistics too."""
    network = copy.deepcopy(initial).train()
    labels = torch.arange(len(images)) % 10
    optimiser = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    for _ in range(5):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(images).logits, labels).backward()
        optimiser.step()
    return network.eval()


def flipped(network: nn.Module, names: list[str]) -> tuple[nn.Module, set[tuple[str, int]]]:
    """A copy with the highest exponent bit of a few weights of each layer flipped, and where."""
    copied, generator, places = copy.deepcopy(network), torch.Generator().manual_seed(0), set()
    for name in names:
        weight = copied.get_parameter(f"{name}.weight").data
        chosen = torch.randperm(weight.numel(), generator=generator)[:FLIPS]
        weight.view(-1).view(torch.int32)[chosen] ^= 1 << 30
        places |= {(f"{name}.weight", int(index)) for index in chosen}
    return copied, places


def row(name: str, initial: nn.Module, size: int) -> tuple[str, ...]:
    """Check, purify the healthy network, flip, purify."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = trained(initial, torch.rand(16, 3, size, size))
        images = torch.rand(IMAGES, 3, size, size)
    begun = time.perf_counter()
    plan = netpurify.check(network, images, initial=initial)
    checked = time.perf_counter() - begun
    if isinstance(initial, CONVOLUTIONAL):  # any size will do, and smaller images purify sooner
        images = images[:16, :, :64, :64]
    healthy = netpurify.purify(network, images, policy=netpurify.Recover(initial, proof=False))
    changed = sum(layer.changed for layer in healthy.layers)
    dirty, places = flipped(network, [layer.name for layer in plan.layers])
    begun = time.perf_counter()
    result = netpurify.purify(dirty, images, policy=netpurify.Recover(initial, proof=False))
    took = time.perf_counter() - begun
    table = result.altered
    found = {(table.names[tensor], int(index)) for tensor, index in zip(table.tensor, table.index, strict=True)}
    true, now = network.state_dict(), result.model.state_dict()
    left = max(
        float((now[name] - true[name]).abs().max() / true[name].std()) for name in {place[0] for place in places}
    )
    return (
        name, str(len(plan.layers)), str(len(plan.repairable)), str(len(plan.skipped)), f"{checked:.0f}", str(changed),
        str(len(places)), str(len(found & places)), str(len(found - places)), f"{left:.2f}", f"{took:.0f}",
    )  # fmt: skip


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    options = parser.parse_args()
    begun = time.perf_counter()
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    print("\n".join(lines))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for name, initial, size in networks():
            lines.append("| " + " | ".join(row(name, initial, size)) + " |")
            print(lines[-1], flush=True)
    minutes = (time.perf_counter() - begun) / 60.0
    if options.markdown:
        text = Path(__file__).with_suffix(".md").read_text()
        options.markdown.write_text(text.format(table="\n".join(lines), minutes=f"{minutes:.0f}", images=IMAGES))


if __name__ == "__main__":
    main()
