"""Third-party networks: ResNet-18, ConvNeXt and ViT of Hugging Face transformers, built from their configs.

Random weights are trained for a few steps on random images, so that every layer differs from its initial weights. Then
the highest exponent bit of some weights is flipped in every layer that can be written as a regression.
"""

import copy
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import netpurify
from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.study import RunFacts, Study, Tables, always
from netpurify.findings import Experiment, Mode, TableRow
from netpurify.network import Purification, Seeded

FLIPS = 3
IMAGES = 32
PAGE = """# Third-party networks

Made by `{commands}` in {core_time} of one core ([the table itself](results/transformers.csv.gz)). A ResNet-18 (224 x
224 images), a small ConvNeXt and a small ViT (96 x 96) of Hugging Face transformers, built from their configs and
trained for five steps on random images. `check` sees {images} other random images; the first two networks are purified
with 16 of them, cut to 64 x 64, the ViT with all. In every layer that can be written as a regression, the highest
exponent bit of three weights is flipped: these weights become about 1e37, or infinite.

{table}

*Repairable exactly*: layers of which the clean images leave directions free. Whether such a layer is repaired exactly
depends on whether the clean images span what training saw, which here they do not, so nothing is called recovered.
*Largest error left*: of any weight of these layers after purification, over the spread (standard deviation) of the
weights of its tensor.
"""
COLUMNS = (
    "network", "layers", "repairable exactly", "not examined", "check, s", "healthy: changed", "flips", "found",
    "false", "largest error left / spread of the weights", "purify, s",
)  # fmt: skip


def resnet18(library: Any) -> nn.Module:
    """ResNet-18, for images of any size."""
    sizes = {"embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}
    return library.ResNetForImageClassification(library.ResNetConfig(**sizes, layer_type="basic", num_labels=10))


def convnext(library: Any) -> nn.Module:
    """A small ConvNeXt, for images of any size."""
    config = library.ConvNextConfig(hidden_sizes=[32, 64, 128, 256], depths=[2, 2, 2, 2], num_labels=10)
    return library.ConvNextForImageClassification(config)


def vit(library: Any) -> nn.Module:
    """A small vision transformer for images of 96 x 96."""
    config = library.ViTConfig(
        hidden_size=192, num_hidden_layers=4, num_attention_heads=3, intermediate_size=768, image_size=96,
        patch_size=16, num_labels=10,
    )  # fmt: skip
    return library.ViTForImageClassification(config)


NETWORKS: dict[str, tuple[Callable[[Any], nn.Module], int]] = {
    "ResNet-18": (resnet18, 224),
    "ConvNeXt": (convnext, 96),
    "ViT": (vit, 96),
}
"""How each network is built, and the size of its images."""


def grid(mode: Mode) -> list[TableRow]:
    """All networks; the quick grid has the one that is purified soonest."""
    return [{"network": name} for name in (("ViT",) if mode == "quick" else NETWORKS)]


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """Check the network, purify it while it is healthy, flip bits, purify it again."""
    name = str(settings["network"])
    size = NETWORKS[name][1]
    initial = Seeded(partial(build, name), seed).build()
    generator = torch.Generator().manual_seed(seed + 1)
    network = trained(initial, torch.rand(16, 3, size, size, generator=generator))
    images = torch.rand(IMAGES, 3, size, size, generator=generator)
    begun = time.perf_counter()
    plan = netpurify.check(network, images, initial=initial)
    check_seconds = time.perf_counter() - begun
    if name != "ViT":  # convolutions take images of any size, and smaller ones purify sooner
        images = images[:16, :, :64, :64]
    healthy = netpurify.purify(network, images, policy=netpurify.Recover(initial, proof=False))
    dirty, flips = flipped(network, [layer.name for layer in plan.layers], seed)
    begun = time.perf_counter()
    result = netpurify.purify(dirty, images, policy=netpurify.Recover(initial, proof=False))
    purify_seconds = time.perf_counter() - begun
    return [
        {
            "layers": len(plan.layers),
            "repairable": len(plan.repairable),
            "not_examined": len(plan.skipped),
            "check_seconds": check_seconds,
            "healthy_changed": sum(layer.changed for layer in healthy.layers),
            **judged(result, network, flips),
            "purify_seconds": purify_seconds,
        }
    ]


def build(name: str) -> nn.Module:
    """A network with random weights, drawn after those of the networks that stand before it in ``NETWORKS``."""
    import transformers

    for other, (make, _) in NETWORKS.items():
        network = make(transformers)
        if other == name:
            return network
    raise KeyError(name)


def trained(initial: nn.Module, images: Tensor) -> nn.Module:
    """The network after a few steps with momentum, in training mode, so that BatchNorm has statistics too."""
    network = copy.deepcopy(initial).train()
    labels = torch.arange(len(images)) % 10
    optimiser = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    for _ in range(5):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(images).logits, labels).backward()
        optimiser.step()
    return network.eval()


def flipped(network: nn.Module, names: list[str], seed: int) -> tuple[nn.Module, set[tuple[str, int]]]:
    """A copy with the highest exponent bit of a few weights of each layer flipped, and the tensor and index of each."""
    dirty, generator, flips = copy.deepcopy(network), torch.Generator().manual_seed(seed), set()
    for name in names:
        weight = dirty.get_parameter(f"{name}.weight").data
        chosen = torch.randperm(weight.numel(), generator=generator)[:FLIPS]
        weight.view(-1).view(torch.int32)[chosen] ^= 1 << 30
        flips |= {(f"{name}.weight", int(index)) for index in chosen}
    return dirty, flips


def judged(result: Purification, network: nn.Module, flips: set[tuple[str, int]]) -> TableRow:
    """Which flips were found, and the largest error that is left in the flipped tensors."""
    table = result.altered
    called = {(table.names[tensor], int(index)) for tensor, index in zip(table.tensor, table.index, strict=True)}
    true, now = network.state_dict(), result.model.state_dict()
    left = max(float((now[name] - true[name]).abs().max() / true[name].std()) for name in {name for name, _ in flips})
    return {"flips": len(flips), "found": len(called & flips), "false": len(called - flips), "largest_error": left}


def page(tables: Tables, facts: RunFacts) -> str:
    """The page: one line for each network."""
    lines = [
        [
            *(str(row[name]) for name in ("network", "layers", "repairable", "not_examined")),
            f"{row['check_seconds']:.0f}",
            *(str(row[name]) for name in ("healthy_changed", "flips", "found", "false")),
            f"{row['largest_error']:.2f}",
            f"{row['purify_seconds']:.0f}",
        ]
        for row in tables["transformers"]
    ]
    table = markdown.table(COLUMNS, lines)
    return PAGE.format(table=table, images=IMAGES, commands=facts.commands, core_time=facts.core_time)


EXPERIMENT = Experiment(
    name="transformers",
    title="flipped bits in networks of Hugging Face transformers",
    grid=grid,
    trial=trial,
    cost=lambda cell: {"ResNet-18": 90.0, "ConvNeXt": 60.0}.get(str(cell["network"]), 30.0),
    trials={"quick": 1, "default": 1, "full": 1},
)
STUDY = Study(
    name="transformers",
    title="Are flipped bits found in networks of Hugging Face transformers?",
    document="transformers-results.md",
    experiments=always(EXPERIMENT),
    page=page,
    libraries=("transformers",),
)
