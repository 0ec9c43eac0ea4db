"""What can be expected of a network before it is purified."""

from dataclasses import dataclass

from netpurify.network.adapter.reference import Skipped
from netpurify.network.comparison.records import Coverage, TensorComparison, coverage_of
from netpurify.network.shown import Shown
from netpurify.network.tolerance import Tolerance


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """What can be expected of one layer.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        groups: How many independent regressions the layer is.
        units: Units of all groups.
        fan_in: Length of a unit's weight vector, bias included.
        live: How many coordinates of it are reached by a clean input (the smallest over groups).
        rank: How many directions the clean inputs span (the largest over groups).
        rows: How many rows of clean inputs the layer sees.
        frozen: Whether it was never trained: it differs from the initial weights in few places or none.
        tolerances: Shares of altered weights up to which one unit and all units are recovered with probability 0.95,
            simulated on the clean inputs: for alterations of both signs equally often, and for N(1, 1).
        probed: How many units were fitted, as ``Recover`` does it, to see whether recovery is possible; 0 if there was
            no need or no use.
        agreeing: How many of those agree on a fit, and would be recovered.
        provisional: Whether the units were tried on inputs that come through trained layers which ``Recover`` repairs
            first. If weights of those layers are altered, more units may agree then.
        repairable: Whether exact recovery is possible: the layer is frozen, or a unit that was tried agrees on a fit.
        reason: Why not, or under which condition.
        seconds: Estimated time to recover it.
        bytes: Estimated working memory.
        visible: In half precision, about how large an alteration of the median weight must be to be seen: twice what
            its own rounding and that of the fit explain. 0 in float32 and float64, where rounding is negligible.
    """

    name: str
    kind: str
    groups: int
    units: int
    fan_in: int
    live: int
    rank: int
    rows: int
    frozen: bool
    tolerances: tuple[Tolerance, ...]
    probed: int
    agreeing: int
    provisional: bool
    repairable: bool
    reason: str
    seconds: float
    bytes: int
    visible: float = 0.0

    @property
    def undecided(self) -> bool:
        """Whether no unit agrees on a fit, but some may once the layers before this one are repaired."""
        return self.provisional and self.probed > 0 and not self.agreeing

    @property
    def ratio(self) -> float:
        """Reached coordinates per direction of the clean inputs; the larger, the more alterations can be repaired."""
        return self.live / self.rank if self.rank else float("inf")


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Shown):
    """What can be expected of a network. ``print`` shows it.

    Attributes:
        layers: The layers that can be written as regressions, in the order of execution.
        skipped: Every other module with weights, and why it is left as it is.
        compared: Every tensor that is not part of a layer, beside its initial value.
        seconds: Estimated time to recover all layers.
        bytes: Estimated working memory of the largest layer.
        weights: How many weights the network has.
    """

    layers: tuple[LayerPlan, ...]
    skipped: tuple[Skipped, ...]
    compared: tuple[TensorComparison, ...]
    seconds: float
    bytes: int
    weights: int = 0

    @property
    def coverage(self) -> Coverage:
        """How many weights ``Recover`` can be expected to examine, to compare only, and to leave unknown.

        Weights of layers in which no exact recovery is possible count as compared only.
        """
        sizes = [(layer.fan_in * layer.units, layer.repairable) for layer in self.layers]
        can, cannot = (sum(size for size, repairable in sizes if repairable == wanted) for wanted in (True, False))
        looked_at = Coverage(can, cannot, 0) + coverage_of(self.compared)
        return looked_at + Coverage(0, 0, max(0, self.weights - looked_at.total))

    def _brief(self) -> str:
        return f"layers={len(self.layers)}, repairable={len(self.repairable)}, skipped={len(self.skipped)}"

    @property
    def repairable(self) -> tuple[str, ...]:
        """Names of the layers in which exact recovery is possible."""
        return tuple(layer.name for layer in self.layers if layer.repairable)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Names of the layers of which more is known only once the layers before them are repaired."""
        return tuple(layer.name for layer in self.layers if layer.undecided)
