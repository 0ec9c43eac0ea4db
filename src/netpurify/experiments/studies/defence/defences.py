"""The defences of the table, each with its published settings; none ever sees the attack.

    for defence in BASELINES:
        repaired = defence.repair(network, CleanData(images, labels, initial, seed=0))

Thresholds are fixed, or chosen on the labelled clean images alone.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

import netpurify
from netpurify.experiments.studies.defence.adversarial_pruning import AdversarialPruning
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData
from netpurify.experiments.studies.defence.channel_lipschitz import ChannelLipschitz
from netpurify.experiments.studies.defence.fine_tuning import FinePruning, Finetuning
from netpurify.experiments.studies.defence.projections import LeastSquares, Projection


@dataclass(frozen=True, slots=True)
class NoDefence(Baseline):
    """Leaves the network as it is."""

    name: ClassVar[str] = "nothing"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = False
    initial: ClassVar[bool] = False

    def mend(self, network: nn.Module, _: CleanData, /) -> nn.Module:
        """The network as it is."""
        return network


@dataclass(frozen=True, slots=True)
class OwnDefence(Baseline):
    """The policy ``defend`` of this library with its defaults: no labels, no training, automatic strength."""

    name: ClassVar[str] = "defend"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    strength: float | Literal["auto"] = "auto"

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The defended network."""
        return netpurify.purify(network, clean.images, policy=netpurify.Defend(strength=self.strength)).model


BASELINES: tuple[Baseline, ...] = (
    NoDefence(), Finetuning(), FinePruning(), ChannelLipschitz(), AdversarialPruning(), Projection(), LeastSquares(),
)  # fmt: skip
SHORTER = Finetuning(epochs=20)
"""A fifth of the published epochs, as ANP has a tenth of its iterations, to save time."""
SHORTENED: dict[str, Baseline] = {
    "fine-tuning": SHORTER,
    "fine-pruning": FinePruning(tuning=SHORTER),
    "ANP": AdversarialPruning(iterations=200),
}
DEFENCES: dict[str, Baseline] = {
    defence.name: SHORTENED.get(defence.name, defence) for defence in (*BASELINES, OwnDefence())
}
PUBLISHED: dict[str, Baseline] = {"fine-tuning, 100 epochs": Finetuning(), "fine-pruning, 100 epochs": FinePruning()}
"""The shortened defences with all their epochs."""
