"""The defences that ours is compared with, each with its published settings; none ever sees the attack.

    for baseline in BASELINES:
        repaired = baseline.repair(network, images, labels, initial=initial, seed=0)

Thresholds are fixed, or chosen on the labelled clean images alone.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from anp import AdversarialPruning
from baseline import Baseline, Clean
from lipschitz import ChannelLipschitz
from projections import LeastSquares, Projection
from tuning import FinePruning, Finetuning


@dataclass(frozen=True, slots=True)
class Nothing(Baseline):
    """Leaves the network as it is."""

    name: ClassVar[str] = "nothing"
    labels: ClassVar[bool] = False
    data: ClassVar[bool] = False
    initial: ClassVar[bool] = False

    def mend(self, network: nn.Module, _: Clean, /) -> nn.Module:
        """The network as it is."""
        return network


BASELINES: tuple[Baseline, ...] = (
    Nothing(), Finetuning(), FinePruning(), ChannelLipschitz(), AdversarialPruning(), Projection(), LeastSquares(),
)  # fmt: skip

__all__ = [
    "BASELINES", "AdversarialPruning", "Baseline", "ChannelLipschitz", "Clean", "FinePruning", "Finetuning",
    "LeastSquares", "Nothing", "Projection",
]  # fmt: skip
