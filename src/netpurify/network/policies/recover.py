"""The policy *recover*: replace what is proven to be altered, keep the bits of everything else, do no harm."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby
from typing import ClassVar

from netpurify.errors import InputError
from netpurify.network.adapter.tokens import TokenSpan
from netpurify.network.adapter.weights import Weights
from netpurify.network.comparison.others import restore_others
from netpurify.network.fitting import Regressions, UnitFits
from netpurify.network.outcome import Outcome
from netpurify.network.policies.policy import LayerPolicy, Progress
from netpurify.network.policies.recovery.approximate import approximate
from netpurify.network.policies.recovery.decay import choose_decay
from netpurify.network.policies.recovery.exact import recover_group
from netpurify.network.policies.recovery.frozen import restore_frozen
from netpurify.network.policies.recovery.half import hidden_by_rounding
from netpurify.network.policies.recovery.low_rank import recover_low_rank
from netpurify.network.policies.recovery.unreached import restore_unreached
from netpurify.network.policies.recovery.unused import restore_unused
from netpurify.network.prepared import Network
from netpurify.network.purification import Purification, purify_layers


@dataclass(frozen=True)
class Recover(LayerPolicy):
    """For weights that were altered after training: noise, bit flips, tampering.

    This policy needs the initial weights. What is proven to be altered is replaced, and everything else keeps its exact
    bits. Where nothing can be proven, only what no training could have done is replaced, by a fit that is not exact.

    Attributes:
        decay: Factor that weight decay left on the initial weights; ``None`` estimates it for each layer.
        frozen: Patterns of names of tensors that were never trained, such as ``"backbone.*"``: any difference from
            their initial value is an alteration. Of other tensors it is told from the tensors themselves.
    """

    _: KW_ONLY
    decay: float | None = None
    frozen: tuple[str, ...] = ()

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
        if isinstance(self.frozen, str):
            raise InputError(
                f"frozen must be patterns of names; got the single text {self.frozen!r}; put it in a tuple"
            )
        if self.decay is not None and not 0.0 < self.decay <= 1.0:
            raise InputError(f"decay must be None or a number above 0 and up to 1; got {self.decay}")

    def run(self, network: Network, progress: Progress | None = None) -> Purification:
        """Purify a network that was made ready; what is not written as regressions is compared and restored first."""
        before = network.outputs() if network.layers else []  # without a layer, the network need not run at all
        if network.layers:
            network.in_order()
        compared = restore_others(network, self.frozen)
        return purify_layers(network, self, progress, before=before, compared=compared)

    def restore(self, weights: Weights) -> Outcome | None:
        """A layer that was never trained gets its initial weights back."""
        return restore_frozen(weights)

    def adjust(self, regressions: Regressions) -> Regressions:
        """The regressions with the decay that was found; no fits are made if no unit can be recovered with any."""
        if isinstance(regressions.spans[0], TokenSpan):  # there is no fit for an embedding
            return replace(regressions, solvable=False)
        decay, recoverable = choose_decay(regressions, self.decay)
        return replace(regressions, decay=decay, solvable=recoverable)

    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """Replace what is altered in units with enough evidence, by inputs or by a low rank; then what is far out."""
        span = regressions.spans[0]
        if isinstance(span, TokenSpan):
            return restore_unused(regressions, span)
        outcome = Outcome(regressions.weights)
        outcome.decay = regressions.decay
        for group, group_fits in groupby(fits, key=lambda fit: fit.group):
            recover_group(regressions, group, group_fits, outcome)
        recover_low_rank(regressions, outcome)
        approximate(regressions, outcome)
        unreached = restore_unreached(regressions, outcome)
        if not outcome.certain.all():
            outcome.reason = _why_left(regressions) if outcome.low_rank is None else _low_rank(outcome)
        if unreached:
            outcome.reason += (
                f"; weights that no input reaches, where nothing was trained, were set back: {unreached:,}"
            )
        return outcome


def _low_rank(outcome: Outcome) -> str:
    return f"the layer's change has rank {outcome.low_rank}, in directions that were estimated from the layer itself"


def _why_left(regressions: Regressions) -> str:
    if all(design is None for design in regressions.designs):
        return "the clean inputs span every direction, so no weight can be proven wrong; fewer inputs would span less"
    if regressions.weights.grid is not None and hidden_by_rounding(regressions.weights, regressions.spans):
        return (
            f"training changed most weights by no more than they are rounded in {regressions.weights.grid.words}, "
            "so only what stands far out can be found"
        )
    return (
        "too few weights agree on one fit: too many are altered, the clean inputs do not span what training saw, the "
        "layer was trained with Adam, RMSprop or another optimiser that rescales each weight's step, or the initial "
        "weights are not those of its training"
    )
