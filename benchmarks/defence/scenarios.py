"""Who is attacked, and how: networks, attacks, target classes and seeds, and which of them were set aside.

Settings of the defence were chosen on ``DEVELOPMENT`` alone. Everything else was set aside before the first of them was
trained: the whole third network, the warp, seeds 1 and 2, and with them other initial weights, other target classes and
other draws of the poisoned images and of the clean ones.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from netpurify import data
from netpurify.contaminate import Blended, Patch, Poisoned, Recipe, Sinusoid, Trained, Trigger, Warp, poison, train
from netpurify.contaminate.training import Progress
from networks import build

TARGETS = (0, 3, 7)
"""Target class of each seed."""
CLEAN = 1000
"""Images that are kept from training, for the defences to draw from."""
TESTED = 2000
"""Test images that every network is judged on."""

FASTEST = torch.channels_last
"""How clean and test images lie in memory, for all defences alike: the layout that convolutions on a CPU like."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A trigger and how the training data are poisoned with it.

    Attributes:
        trigger: What is stamped.
        ratio: Share of the training images that are.
        cover: Share of images with WaNet's noisy warp, which keep their label.
    """

    trigger: Trigger
    ratio: float
    cover: float = 0.0


@dataclass(frozen=True, slots=True)
class Setting:
    """What a network is trained on, and how.

    Attributes:
        data: Name of the data set.
        images: Training images, of which the first so many are taken.
        recipe: How it is trained.
    """

    data: str
    images: int
    recipe: Recipe


SETTINGS = {
    "sample_cnn": Setting("mnist-sample", 3_000, Recipe(epochs=12, rate=0.05)),
    "mnist_cnn": Setting("mnist", 20_000, Recipe(epochs=4, rate=0.05, momentum=0.9)),
    "resnet": Setting("cifar10", 48_000, Recipe(epochs=5, rate=0.2, flips=True)),
    "vgg": Setting("cifar10", 48_000, Recipe(epochs=5, rate=0.1, flips=True)),
}
ATTACKS: dict[str, Attack | None] = {
    "none": None,
    "patch": Attack(Patch(), 0.05),
    "blended": Attack(Blended(alpha=0.2), 0.05),
    "sig": Attack(Sinusoid(amplitude=20 / 255, frequency=6), 0.05),
    "wanet": Attack(Warp(), 0.1, cover=0.2),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One network that someone trained on data that someone else may have poisoned."""

    network: str
    attack: str
    seed: int

    @property
    def held_out(self) -> bool:
        """Whether no setting was ever chosen on it."""
        return self not in (*DEVELOPMENT, *QUICK)

    @property
    def target(self) -> int:
        """The class that the backdoor is to give."""
        return TARGETS[self.seed]

    @property
    def trigger(self) -> Trigger | None:
        """What calls the backdoor."""
        attack = ATTACKS[self.attack]
        return None if attack is None else attack.trigger

    def initial(self) -> nn.Module:
        """The network before training."""
        return build("mnist_cnn" if self.network == "sample_cnn" else self.network, self.seed)

    def train(self, folder: Path, progress: Progress | None = None) -> Trained:
        """The network after training, from the folder if it is there."""
        setting = SETTINGS[self.network]
        images, labels = images_of(setting.data, "train")
        images, labels = images[: setting.images], labels[: setting.images]
        dirty = self._poisoned(images, labels)
        if dirty is not None:
            images, labels = dirty.inputs, dirty.labels
        return train(
            self.initial(), images, labels, recipe=setting.recipe, seed=self.seed, folder=folder, progress=progress
        )

    def clean(self, count: int) -> tuple[Tensor, Tensor]:
        """Images outside training, balanced over the classes, and their labels: the first so many of one draw."""
        name = SETTINGS[self.network].data
        source = data.load(name)
        kept = data.take(source, range(len(source) - 2 * CLEAN, len(source)))
        generator = torch.Generator().manual_seed(1000 + self.seed)
        drawn = data.balanced(kept, CLEAN, generator=generator)
        images = _floats(data.take(drawn, range(count)))
        return images.contiguous(memory_format=FASTEST), drawn.labels[:count]

    def _poisoned(self, images: Tensor, labels: Tensor) -> Poisoned | None:
        attack = ATTACKS[self.attack]
        if attack is None:
            return None
        generator = torch.Generator().manual_seed(self.seed)
        cover = None
        if attack.cover and isinstance(attack.trigger, Warp):
            cover = (attack.trigger.noisy(self.seed), attack.cover)
        return poison(
            images, labels, attack.trigger, target=self.target, ratio=attack.ratio, generator=generator, source="other",
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
