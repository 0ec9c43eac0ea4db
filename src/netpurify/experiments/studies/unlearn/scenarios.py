"""The attacked networks: those of the defence study as they are, and those with attacks that were set aside."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from netpurify.contaminate import Blended, Patch, Poisoned, Sinusoid, Trained, Trigger, Warp, poison
from netpurify.errors import InputError
from netpurify.experiments.studies.defence.scenarios import ATTACKS, SETTINGS, TARGETS, Scenario
from netpurify.experiments.studies.unlearn.attacks import SET_ASIDE

VARIED_SEED = 2
"""The seed of networks whose triggers are others than those on which anything was developed."""
VARIED: dict[str, Trigger] = {
    "patch": Patch(colour=0.7, top=3, left=8, height=2, width=4),
    "blended": Blended(alpha=0.15, seed=5),
    "sig": Sinusoid(amplitude=16 / 255, frequency=4.5),
    "wanet": Warp(seed=5, grid=5),
}
"""These triggers: another place, size and colour, another picture, another wave, another warp."""
DEVELOPED = ("sample_cnn", "mnist_cnn", "resnet")
"""Networks of which seed 0 was developed on, but for WaNet."""
CHOSEN_LATER = {("mnist_cnn", "wanet", 0), *(("resnet", attack, 1) for attack in ("patch", "blended", "sig", "wanet"))}
"""Networks of other seeds on which something was chosen nevertheless: sizes of several families on the first, and the
family ``faint`` on the ResNet with the blended trigger. The recipe itself comes from a prototype whose ResNets had the
triggers, the target class and the images of the ResNets of seed 1, and were trained more briefly."""


@dataclass(frozen=True, slots=True)
class UnlearnScenario:
    """One network with one attack: of the defence study, whose networks are not trained again, or set aside."""

    network: str
    attack: str
    seed: int

    def __post_init__(self) -> None:
        if self.network not in SETTINGS:
            raise InputError(f"the network must be one of {', '.join(SETTINGS)}; got {self.network!r}")
        if self.attack not in ATTACKS | SET_ASIDE:
            raise InputError(f"the attack must be one of {', '.join(ATTACKS | SET_ASIDE)}; got {self.attack!r}")
        if self.seed not in range(len(TARGETS)) and (self.attack != "none" or self.seed < 0):
            raise InputError(
                f"the seed must be one of 0 .. {len(TARGETS) - 1}, or any other of a healthy network; got {self.seed!r}"
            )

    @property
    def set_aside(self) -> bool:
        """Whether nothing of ``hunt`` and ``Unlearn`` may be chosen on this network."""
        if (self.network, self.attack, self.seed) in CHOSEN_LATER:
            return False
        return self.attack in SET_ASIDE or self.attack == "wanet" or self.network not in DEVELOPED or self.seed != 0

    @property
    def target(self) -> int | Literal["next"]:
        """The class to which the backdoor leads, or "next": as ``measure`` takes it."""
        following = self.attack in SET_ASIDE and SET_ASIDE[self.attack].target == "next"
        return "next" if following else self._known.target

    @property
    def trigger(self) -> Trigger | None:
        """The pattern that triggers the backdoor; ``None`` without an attack."""
        if self.attack in SET_ASIDE:
            return SET_ASIDE[self.attack].trigger
        return VARIED[self.attack] if self._varied else self._known.trigger

    def initial(self) -> nn.Module:
        """The network before training."""
        return self._known.initial()

    def train(self, folder: Path) -> Trained:
        """The network after training; taken from the folder if it was trained there before."""
        return self._known.train_poisoned(self.poisoned, folder)

    def clean(self, count: int) -> tuple[Tensor, Tensor]:
        """The first ``count`` images of one balanced draw from images outside training, and their labels."""
        return self._known.clean(count)

    def poisoned(self, images: Tensor, labels: Tensor) -> Poisoned | None:
        """Training images and labels, poisoned; ``None`` without an attack."""
        if self.attack not in SET_ASIDE:
            return self._known.poisoned(images, labels, VARIED[self.attack] if self._varied else None)
        attack = SET_ASIDE[self.attack]
        return poison(
            images, labels, attack.trigger, target=self.target, ratio=attack.ratio, source=attack.source,
            generator=torch.Generator().manual_seed(self.seed),
            cover=None if attack.cover is None else (attack.cover, attack.cover_ratio),
        )  # fmt: skip

    @property
    def _varied(self) -> bool:
        return self.seed == VARIED_SEED and self.attack in VARIED

    @property
    def _known(self) -> Scenario:
        """The scenario of the defence study with the same network and seed, without a poisoning that it lacks."""
        return Scenario(self.network, "none" if self.attack in SET_ASIDE else self.attack, self.seed)
