"""The policy *recover*: replace what is proven to be altered, keep the bits of everything else, do no harm."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby
from typing import ClassVar

from netpurify.errors import InputError
from netpurify.network.adapter.weights import Weights
from netpurify.network.fitting import Regressions, UnitFits
from netpurify.network.outcome import Outcome
from netpurify.network.policies.policy import LayerPolicy, Progress
from netpurify.network.policies.recovery.approximate import approximate
from netpurify.network.policies.recovery.decay import choose_decay
from netpurify.network.policies.recovery.exact import recover_group
from netpurify.network.policies.recovery.frozen import restore_frozen
from netpurify.network.policies.recovery.half import hidden_by_rounding
from netpurify.network.prepared import Network
from netpurify.network.purification import Purification, purify_layers


@dataclass(frozen=True)
class Recover(LayerPolicy):
    """For weights that were altered after training: noise, bit flips, tampering.

    This policy needs the initial weights. What is proven to be altered is replaced, and everything else keeps its exact
    bits. Where nothing can be proven, only what no training could have done is replaced, by a fit that is not exact.

    Attributes:
        decay: Factor that weight decay left on the initial weights; ``None`` estimates it for each layer.
    """

    _: KW_ONLY
    decay: float | None = None

    name: ClassVar[str] = "recover"

    def __post_init__(self) -> None:
        """Refuse options that have no meaning.

        Raises:
            InputError: An option does not fit.
        """
        super().__post_init__()
        if self.initial is None:
            raise InputError(
                "Recover needs the initial weights; give Recover(initial), or use Project(), which without them fits "
                "the weights themselves, or Defend() for a deep network that was poisoned"
            )
        if self.decay is not None and not 0.0 < self.decay <= 1.0:
            raise InputError(f"decay must be None or a number above 0 and up to 1; got {self.decay}")

    def run(self, network: Network, progress: Progress | None = None) -> Purification:
        """Purify a network that was made ready; parts that are not examined are compared with their initial bits."""
        network.mark_changed()
        return purify_layers(network, self, progress)

    def restore(self, weights: Weights) -> Outcome | None:
        """A layer that was never trained gets its initial weights back."""
        return restore_frozen(weights)

    def adjust(self, regressions: Regressions) -> Regressions:
        """The regressions with the decay that was found; no fits are made if no unit can be recovered with any."""
        decay, recoverable = choose_decay(regressions, self.decay)
        return replace(regressions, decay=decay, solvable=recoverable)

    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """Altered weights of units with enough evidence are replaced; then what stands far out in the other units."""
        outcome = Outcome(regressions.weights)
        outcome.decay = regressions.decay
        for group, group_fits in groupby(fits, key=lambda fit: fit.group):
            recover_group(regressions, group, group_fits, outcome)
        approximate(regressions, outcome)
        if not outcome.certain.all():
            outcome.reason = _why_left(regressions)
        return outcome


def _why_left(regressions: Regressions) -> str:
    if all(design is None for design in regressions.designs):
        return "the clean inputs span every direction, so no weight can be proven wrong; fewer inputs would span less"
    if regressions.weights.grid is not None and hidden_by_rounding(regressions.weights, regressions.spans):
        return (
            f"training changed most weights by no more than they are rounded in {regressions.weights.grid.words}, "
            "so only what stands far out can be found"
        )
    return "too few weights agree on one fit: too many are altered, or the clean inputs do not span what training saw"
