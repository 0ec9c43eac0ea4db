"""Our own policy as one more defence, judged like all others."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

import netpurify
from baseline import Baseline, Clean


@dataclass(frozen=True, slots=True)
class Defend(Baseline):
    """``netpurify.purify(policy=Defend())`` as it comes: no labels, no training, automatic strength."""

    name: ClassVar[str] = "defend"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = True
    initial: ClassVar[bool] = False

    strength: float | Literal["auto"] = "auto"

    def mend(self, network: nn.Module, clean: Clean, /) -> nn.Module:
        """The defended network."""
        return netpurify.purify(network, clean.images, policy=netpurify.Defend(strength=self.strength)).model
