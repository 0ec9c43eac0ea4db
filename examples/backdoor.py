"""Three backdoors in a small CNN on the bundled sample of MNIST: poison, train, defend, save, load, measure.

    python examples/backdoor.py              one network for each trigger
    python examples/backdoor.py --seeds 5    five of each, and the range of what came

Training amplifies rounding, so another processor trains another network from the same seed: a range over seeds says
more than one line does.
"""

import argparse
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
WIDTHS = (15, 15, 20, 15, 15, 14)
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


def trial(trigger: Trigger, seed: int = 0) -> Trial:
    """Train on images of which a tenth carry the trigger; defend with 500 others, without their labels."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # of the initial weights
    digits, clean = data.draw(data.load("mnist-sample"), (4000, 500), generator=generator)
    dirty = poison(to_batch(digits), digits.labels, trigger, target=TARGET, ratio=0.1, generator=generator)
    contaminated = train(build(), dirty.inputs, dirty.labels, recipe=Recipe(epochs=6, batch=64), seed=seed).model
    result = netpurify.purify(contaminated, to_batch(clean), policy=netpurify.Defend())
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


def span(values: list[float], digits: int = 1) -> str:
    """The value, or the smallest and the largest of several."""
    low, high = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def main() -> None:
    """Print one line for each trigger."""
    parser = argparse.ArgumentParser(description="Poison, train and defend a small CNN with three triggers.")
    parser.add_argument("--seeds", type=int, default=1, help="how many networks to train for each trigger")
    seeds = range(parser.parse_args().seeds)
    begun = time.perf_counter()
    titles = ("accuracy, %", "afterwards", "attack success, %", "afterwards", "strength", "bound")
    print(f"{'trigger':9}" + "".join(f"{title:>{width}}" for title, width in zip(titles, WIDTHS, strict=True)))
    for name, trigger in TRIGGERS.items():
        trials = [trial(trigger, seed) for seed in seeds]
        assert all(each.same for each in trials), "the file must give the defended network back"
        cells = (
            span([100 * each.before.accuracy for each in trials]),
            span([100 * each.after.accuracy for each in trials]),
            span([100 * each.before.asr for each in trials]),
            span([100 * each.after.asr for each in trials]),
            span([each.defence.strength for each in trials], digits=2),
            span([100 * each.defence.bound for each in trials]),
        )
        print(f"{name:9}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)))
    print(f"{time.perf_counter() - begun:.0f} s; attack success is seen only by those who have the trigger")


if __name__ == "__main__":
    main()
