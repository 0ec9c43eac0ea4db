"""Three backdoors in a small CNN on the bundled sample of MNIST: poison, train, defend, save, load, measure."""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

import netpurify
from netpurify import data
from netpurify.contaminate import Blended, Patch, Rates, Recipe, Trigger, Warp, measure, poison, train

TARGET = 0
TRIGGERS: dict[str, Trigger] = {"patch": Patch(), "blended": Blended(), "warp": Warp()}


class Trial(NamedTuple):
    """A network before and after, the defence, and whether its file gives the same network back."""

    before: Rates
    after: Rates
    defence: netpurify.Defence
    same: bool


def build() -> nn.Sequential:
    """Three convolutions with BatchNorm, and a linear layer."""
    layers: list[nn.Module] = []
    for channels, filters in ((1, 16), (16, 32), (32, 64)):
        convolution = nn.Conv2d(channels, filters, 3, stride=2, padding=1)
        layers += [convolution, nn.BatchNorm2d(filters), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, 10))


def to_batch(digits: data.Images) -> Tensor:
    """Images [n, 1, 28, 28] with values in [0, 1]."""
    return digits.pixels[:, None].float() / 255.0


def trial(trigger: Trigger) -> Trial:
    """Train on images of which a tenth carry the trigger; defend with 500 others, without their labels."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)  # of the initial weights
    digits, clean = data.draw(data.load("mnist-sample"), (4000, 500), generator=generator)
    dirty = poison(to_batch(digits), digits.labels, trigger, target=TARGET, ratio=0.1, generator=generator)
    contaminated = train(build(), dirty.inputs, dirty.labels, recipe=Recipe(epochs=6, batch=64), seed=0).model
    result = netpurify.purify(contaminated, to_batch(clean), policy="defend")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "defended.safetensors"
        netpurify.checkpoint.save_weights(result.model.state_dict(), file)
        loaded = netpurify.load_defended(build(), file).eval()
    test = data.load("mnist-sample", split="test")
    images = to_batch(test)
    before, after = (
        measure(network, images, test.labels, trigger=trigger, target=TARGET) for network in (contaminated, loaded)
    )
    return Trial(before, after, result, torch.equal(loaded(images), result.model(images)))


def main() -> None:
    """Print one line for each trigger."""
    begun = time.perf_counter()
    print(f"{'trigger':10}{'accuracy, %':>15}{'attack success, %':>20}{'strength':>11}{'other class':>14}{'bound':>8}")
    for name, trigger in TRIGGERS.items():
        before, after, defence, same = trial(trigger)
        assert same, "the file must give the defended network back"
        accuracy = f"{100 * before.accuracy:.1f} -> {100 * after.accuracy:4.1f}"
        success = f"{100 * before.asr:.1f} -> {100 * after.asr:4.1f}"
        changed = f"{defence.chosen.differing} of {defence.chosen.inputs}"
        bound = f"{100 * defence.bound:.1f}"
        print(f"{name:10}{accuracy:>15}{success:>20}{defence.strength:11g}{changed:>14}{bound:>8}")
    print(f"{time.perf_counter() - begun:.0f} s; attack success is seen only by those who have the trigger")


if __name__ == "__main__":
    main()
