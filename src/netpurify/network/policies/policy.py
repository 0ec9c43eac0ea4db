"""What a policy is: a value that holds its own options and knows how to purify a network that was made ready."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from netpurify import lad
from netpurify.engine import check_engine
from netpurify.errors import InputError
from netpurify.network.adapter.reference import Initial
from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Array, Weights
from netpurify.network.fitting import FitOptions, Regressions, UnitFits, build_design
from netpurify.network.outcome import Outcome
from netpurify.network.prepared import Network
from netpurify.network.records import Grade

Progress = Callable[[str, int, int], None]
"""Called with (name of the layer, layers done, layers in all)."""
_WILD = 4.0
"""A unit without evidence that changed this many times more than is usual in its layer is not fed forward."""


Result = TypeVar("Result", covariant=True)


class Policy(Protocol[Result]):
    """Anything that ``purify`` can carry out; ``Result`` is what it gives.

    Attributes:
        name: Name of the policy, in results, reports and on the command line.
        initial: The initial weights, if the policy takes any.
    """

    name: ClassVar[str]

    @property
    def initial(self) -> Initial | None: ...  # noqa: D102

    def run(self, network: Network, progress: Progress | None = None) -> Result:
        """Purify a network that was made ready; gives the result."""
        ...


@dataclass(frozen=True)
class LayerPolicy(ABC):
    """A policy that purifies layer by layer, by L1 regressions on each layer's clean inputs; see ``layer_by_layer``.

    Attributes:
        initial: The network before training: a module, a state dict, a file, or ``Seeded(factory, seed)``.
        noise_floor: Residuals up to this are rounding; ``None`` for 256 rounding units of a unit's typical weight.
        proof: Whether coefficients and duals are kept, which ``verify`` needs: two numbers for each weight.
        engine: Where fits run: ``None`` in this process on all cores, else as in ``netpurify.engine``.
        jobs: Most blocks of fits at the same time, on an engine.
    """

    initial: Initial | None = None
    _: KW_ONLY
    noise_floor: float | None = None
    proof: bool = True
    engine: str | None = None
    jobs: int | None = None

    name: ClassVar[str]

    def __post_init__(self) -> None:
        """Refuse options that have no meaning.

        Raises:
            InputError: An option does not fit.
        """
        if self.noise_floor is not None and not 0.0 <= self.noise_floor < float("inf"):
            raise InputError(f"noise_floor must be None or a finite number, at least 0; got {self.noise_floor}")
        if self.engine is not None:
            check_engine(self.engine, self.jobs)
        elif self.jobs is not None:
            raise InputError('jobs is an option of engine; without one all cores work; give engine="processes"')

    @abstractmethod
    def decide(self, regressions: Regressions, fits: Iterator[UnitFits]) -> Outcome:
        """What becomes of a layer, from the fits of its units. Fits that are not asked for are not made."""

    def restore(self, weights: Weights) -> Outcome | None:
        """What becomes of a layer for which neither inputs nor a fit are needed; ``None`` if they are."""
        del weights
        return None

    def design(self, span: Span) -> lad.Design | None:
        """The design of one group of a layer; ``None`` if its units are not to be fitted."""
        return build_design(span)

    def adjust(self, regressions: Regressions) -> Regressions:
        """The regressions to make, such as with the decay that was found."""
        return regressions

    def fit_options(self) -> FitOptions:
        """How the regressions are solved, and what of the solutions is kept."""
        return FitOptions(proof=self.proof, engine=self.engine, jobs=self.jobs)

    def temporary_weights(self, outcome: Outcome) -> Array:
        """The weights of a layer while later ones are purified.

        A unit that was left alone and changed far more than the others would drown what they feed forward. Its initial
        weights are the better guess. In half precision, weights that are known are fed forward as they were before they
        were rounded.
        """
        weights = outcome.weights
        changes = np.abs(outcome.matrix.astype(np.float64) - weights.initial)
        sizes = np.sqrt(np.mean(np.square(changes), axis=1)).reshape(-1)
        compared = sizes[outcome.grade == Grade.LEFT_ALONE] if outcome.free else sizes
        usual = max(float(np.median(compared)) if compared.size else 0.0, np.finfo(np.float32).tiny)
        wild = (outcome.grade == Grade.LEFT_ALONE) & ~(sizes <= _WILD * usual)
        if not wild.any():
            return outcome.unrounded
        chosen = wild.reshape(weights.groups, 1, weights.units)
        return np.where(chosen, outcome.decay * weights.initial, outcome.unrounded).astype(outcome.matrix.dtype)


def settings_of(policy: Any, layers: list[str] | None) -> dict[str, Any]:
    """The options of a policy that decide its result, for the provenance: not the weights, nor where fits were made."""
    options = {one.name: getattr(policy, one.name) for one in fields(policy)}
    kept = {name: value for name, value in options.items() if name not in ("initial", "engine", "jobs")}
    return {"policy": policy.name, "layers": layers, **kept}
