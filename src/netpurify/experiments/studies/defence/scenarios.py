"""The attacked networks: architectures, attacks, target classes and seeds, and which of them were set aside.

The settings of ``defend`` were chosen on ``DEVELOPMENT`` alone. All else was set aside before any of it was trained:
the whole third architecture, the warp, seeds 1 and 2, and with the seeds other initial weights, other target classes
and other draws of the poisoned and the clean images.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from netpurify import data
from netpurify.contaminate import Blended, Patch, Poisoned, Recipe, Sinusoid, Trained, Trigger, Warp, poison, train
from netpurify.experiments.studies.defence.networks import build

TARGETS = (0, 3, 7)
"""Target class of each seed."""
CLEAN = 1000
"""Images that training never sees and from which the defences draw."""
TESTED = 2000
"""Number of test images on which every network is judged."""

FASTEST = torch.channels_last
"""Memory layout of clean and test images, the same for all defences: the fastest for convolutions on a CPU."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A trigger and how the training data are poisoned with it.

    Attributes:
        trigger: The pattern that is stamped.
        ratio: Share of the training images that are stamped.
        cover: Share of the training images with WaNet's noisy warp, which keep their label.
    """

    trigger: Trigger
    ratio: float
    cover: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainingSetting:
    """What is trained, on which data, and how.

    Attributes:
        architecture: Name of the network in ``networks``.
        data: Name of the data set.
        images: Number of training images; the first so many of the data set are taken.
        recipe: Optimiser, epochs and augmentation.
    """

    architecture: str
    data: str
    images: int
    recipe: Recipe


SETTINGS = {
    "sample_cnn": TrainingSetting("mnist_cnn", "mnist-sample", 3_000, Recipe(epochs=12, rate=0.05)),
    "mnist_cnn": TrainingSetting("mnist_cnn", "mnist", 20_000, Recipe(epochs=4, rate=0.05, momentum=0.9)),
    "fashion_cnn": TrainingSetting("mnist_cnn", "fashion-mnist", 20_000, Recipe(epochs=4, rate=0.05, momentum=0.9)),
    "resnet": TrainingSetting("resnet", "cifar10", 48_000, Recipe(epochs=5, rate=0.2, flips=True)),
    "vgg": TrainingSetting("vgg", "cifar10", 48_000, Recipe(epochs=5, rate=0.1, flips=True)),
    "short_resnet": TrainingSetting("resnet", "cifar10", 12_000, Recipe(epochs=4, rate=0.2, flips=True)),
    "short_vgg": TrainingSetting("vgg", "cifar10", 12_000, Recipe(epochs=4, rate=0.1, flips=True)),
}
COMPARED = ("mnist_cnn", "resnet", "vgg")
"""Networks on which defences are compared; hunts for backdoors are measured on the others too."""
ATTACKS: dict[str, Attack | None] = {
    "none": None,
    "patch": Attack(Patch(), 0.05),
    "blended": Attack(Blended(alpha=0.2), 0.05),
    "sig": Attack(Sinusoid(amplitude=20 / 255, frequency=6), 0.05),
    "wanet": Attack(Warp(), 0.1, cover=0.2),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One network, trained on data that may have been poisoned."""

    network: str
    attack: str
    seed: int

    @property
    def held_out(self) -> bool:
        """Whether no setting of ``defend`` was ever chosen on this network."""
        return self not in (*DEVELOPMENT, *QUICK)

    @property
    def target(self) -> int:
        """The class to which the backdoor leads."""
        return TARGETS[self.seed % len(TARGETS)]

    @property
    def trigger(self) -> Trigger | None:
        """The pattern that triggers the backdoor; ``None`` without an attack."""
        attack = ATTACKS[self.attack]
        return None if attack is None else attack.trigger

    def initial(self) -> nn.Module:
        """The network before training."""
        return build(SETTINGS[self.network].architecture, self.seed)

    def train(self, folder: Path) -> Trained:
        """The network after training; taken from the folder if it was trained there before."""
        return self.train_poisoned(self.poisoned, folder)

    def train_poisoned(self, poisoning: Callable[[Tensor, Tensor], Poisoned | None], folder: Path) -> Trained:
        """The same with another poisoning of training images and labels; ``None`` leaves them clean."""
        setting = SETTINGS[self.network]
        images, labels = images_of(setting.data, "train")
        images, labels = images[: setting.images], labels[: setting.images]
        dirty = poisoning(images, labels)
        if dirty is not None:
            images, labels = dirty.inputs, dirty.labels
        return train(self.initial(), images, labels, recipe=setting.recipe, seed=self.seed, folder=folder)

    def clean(self, count: int) -> tuple[Tensor, Tensor]:
        """The first ``count`` images of one balanced draw from images outside training, and their labels."""
        name = SETTINGS[self.network].data
        source = data.load(name)
        kept = data.take(source, range(len(source) - 2 * CLEAN, len(source)))
        generator = torch.Generator().manual_seed(1000 + self.seed)
        drawn = data.balanced(kept, CLEAN, generator=generator)
        images = _floats(data.take(drawn, range(count)))
        return images.contiguous(memory_format=FASTEST), drawn.labels[:count]

    def poisoned(self, images: Tensor, labels: Tensor, trigger: Trigger | None = None) -> Poisoned | None:
        """Training images and labels, poisoned, if need be with another trigger; ``None`` without an attack."""
        attack = ATTACKS[self.attack]
        if attack is None:
            return None
        trigger = trigger or attack.trigger
        generator = torch.Generator().manual_seed(self.seed)
        cover = None
        if attack.cover and isinstance(trigger, Warp):
            cover = (trigger.noisy(self.seed), attack.cover)
        return poison(
            images, labels, trigger, target=self.target, ratio=attack.ratio, generator=generator, source="other",
            cover=cover,
        )  # fmt: skip


DEVELOPMENT = tuple(
    Scenario(network, attack, 0)
    for network in ("mnist_cnn", "resnet")
    for attack in ("none", "patch", "blended", "sig")
)
QUICK = tuple(Scenario("sample_cnn", attack, 0) for attack in ("none", "patch", "blended"))


@cache
def images_of(name: str, split: Literal["train", "test"]) -> tuple[Tensor, Tensor]:
    """Images [n, c, h, w] in [0, 1] and their labels."""
    source = data.load(name, split=split)
    return _floats(source), source.labels


def _floats(images: data.Images) -> Tensor:
    pixels = images.pixels.float() / 255
    return pixels[:, None] if pixels.dim() == 3 else pixels.permute(0, 3, 1, 2).contiguous()
