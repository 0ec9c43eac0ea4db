"""The policy *project*: Algorithm 2 of the paper as written. Every weight takes the fitted value."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from netpurify import lad
from netpurify.network.adapter.span import Span
from netpurify.network.fitting import FitOptions, Regressions, UnitFits, build_design, check_rank
from netpurify.network.outcome import Outcome
from netpurify.network.policies.policy import LayerPolicy, Progress
from netpurify.network.prepared import Network
from netpurify.network.purification import Purification, purify_layers
from netpurify.network.records import Grade


@dataclass(frozen=True)
class Project(LayerPolicy):
    """For weights that were poisoned during training: Algorithm 2, where every weight takes the fitted value.

    Without initial weights the weights themselves are fitted, as if training had begun at zero. Groups of units whose
    clean inputs span every direction are left alone.

    Attributes:
        rank: Number of the strongest directions to keep, or the share of energy that they hold; ``None`` for all that
            the clean inputs span.
    """

    rank: float | None = None

    name: ClassVar[str] = "project"

    def __post_init__(self) -> None:
        """Refuse options that have no meaning.

        Raises:
            InputError: An option does not fit.
        """
        super().__post_init__()
        check_rank(self.rank)

    def run(self, network: Network, progress: Progress | None = None) -> Purification:
        """Purify a network that was made ready."""
        return purify_layers(network, self, progress)

    def design(self, span: Span) -> lad.Design | None:
        """The strongest directions of the clean inputs."""
        return build_design(span, self.rank)

    def fit_options(self) -> FitOptions:
        """As for every policy, and the fitted values of all weights are kept."""
        return replace(super().fit_options(), all_values=True, refit=False)

    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """Every weight takes the fitted value."""
        outcome = Outcome(regressions.weights)
        if any(design is None for design in regressions.designs):
            outcome.reason = "the clean inputs span every direction, so the fit changes nothing; set a rank"
        for fit in fits:
            outcome.grade[outcome.take(fit, regressions.layer.name)] = Grade.PROJECTED
            chosen = np.zeros(outcome.matrix.shape[1:], np.bool_)
            # A bias that is left out of the rows is one that training may set freely: no fit speaks of it.
            rows = ~regressions.weights.bias_row | regressions.spans[fit.group].live()
            chosen[rows, fit.units] = True
            values = regressions.start(fit.group, fit.units) + fit.fitted_values()
            outcome.replace(fit.group, chosen, values[rows].reshape(-1))
        return outcome
