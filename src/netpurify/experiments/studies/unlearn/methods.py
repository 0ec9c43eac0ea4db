"""The repairs that are compared: ``Unlearn``, ``Defend``, both one after the other, and the strongest with labels."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

import netpurify
from netpurify.experiments.studies.defence.adversarial_pruning import AdversarialPruning
from netpurify.experiments.studies.defence.attention_distillation import AttentionDistillation
from netpurify.experiments.studies.defence.baseline import Baseline, CleanData
from netpurify.experiments.studies.defence.defences import NoDefence, OwnDefence
from netpurify.experiments.studies.defence.implicit_unlearning import ImplicitUnlearning
from netpurify.experiments.studies.defence.reconstructive_pruning import ReconstructivePruning
from netpurify.experiments.studies.defence.sharpness_aware import SharpnessAware


@dataclass(frozen=True, slots=True)
class OwnUnlearning(Baseline):
    """The policy ``Unlearn`` with its defaults; the seed is that of the hunt."""

    name: ClassVar[str] = "unlearn"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The repaired network."""
        return netpurify.purify(network, clean.images, policy=netpurify.Unlearn(seed=clean.seed)).model


@dataclass(frozen=True, slots=True)
class OneAfterTheOther(Baseline):
    """Two repairs without labels, one after the other.

    Attributes:
        first: The first one.
        second: What is done to its result.
    """

    name: ClassVar[str] = "both"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    first: Baseline
    second: Baseline

    def mend(self, network: nn.Module, clean: CleanData, /) -> nn.Module:
        """The network after both."""
        return self.second.repair(self.first.repair(network, clean), clean)


METHODS: dict[str, Baseline] = {
    "nothing": NoDefence(),
    "unlearn": OwnUnlearning(),
    "defend": OwnDefence(),
    "unlearn, then defend": OneAfterTheOther(OwnUnlearning(), OwnDefence()),
    "defend, then unlearn": OneAfterTheOther(OwnDefence(), OwnUnlearning()),
    "I-BAU": ImplicitUnlearning(rate=1e-3, rounds=10),
    "RNP": ReconstructivePruning(threshold=None),
    "NAD": AttentionDistillation(),
    "FT-SAM": SharpnessAware(),
    "ANP, 2,000 iterations": AdversarialPruning(),
}
"""Every repair by its name in the table. I-BAU has the rate of its authors' code, since BackdoorBench's does next to
nothing with 500 images, and twice its rounds, so that it makes the 50 steps that five rounds are there. The threshold
of RNP is chosen on the clean images, as its authors choose it with the attack at hand."""
