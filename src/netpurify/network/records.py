"""What is known of a network before it is purified, and what was done to it."""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network.adapter.reference import Skipped

EDGES = np.logspace(-20.0, 20.0, 161)
"""Borders of the bins in which sizes of residuals are counted."""


class Grade(IntEnum):
    """How good the evidence for a unit is; never mixed up."""

    RECOVERED = 0
    APPROXIMATE = 1
    LEFT_ALONE = 2
    PROJECTED = 3

    @property
    def label(self) -> str:
        """In tables and reports."""
        return self.name.lower().replace("_", " ")

    @property
    def meaning(self) -> str:
        """What this grade says of a unit's weights."""
        return _MEANINGS[self]


_MEANINGS = {
    Grade.RECOVERED: "enough weights agree to prove it: altered ones are replaced, exact to rounding; the rest stays",
    Grade.APPROXIMATE: "what no training could have done is replaced by a fit that is not exact; no proof",
    Grade.LEFT_ALONE: "not enough evidence: nothing was changed",
    Grade.PROJECTED: "every weight took the fitted value, whatever was altered (Algorithm 2 as written)",
}


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """What can be expected of one layer.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        groups: Independent regressions.
        units: Units of all groups.
        fan_in: Length of a unit's weight vector, bias included.
        live: Coordinates of it that the clean inputs ever light (the least over groups).
        rank: Directions that the clean inputs span (the most over groups).
        rows: Rows of clean inputs.
        frozen: Whether it differs from the initial weights in few places or none, so that it was never trained.
        unit_tolerance: Share of altered weights that one unit survives with probability .95.
        layer_tolerance: The same for all units together.
        repairable: Whether exact recovery is possible.
        reason: Why not, or on what it depends.
        seconds: Estimated time to recover it.
        bytes: Estimated working memory.
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
    unit_tolerance: float
    layer_tolerance: float
    repairable: bool
    reason: str
    seconds: float
    bytes: int

    @property
    def ratio(self) -> float:
        """Fan-in over rank, which decides what can be repaired."""
        return self.live / self.rank if self.rank else float("inf")


@dataclass(frozen=True, slots=True)
class Plan:
    """What can be expected of a network.

    Attributes:
        layers: The layers that can be written as regressions, in the order of execution.
        skipped: Everything else that has weights, with the reason.
        seconds: Estimated time to recover it all.
        bytes: Estimated working memory of the largest layer.
    """

    layers: tuple[LayerPlan, ...]
    skipped: tuple[Skipped, ...]
    seconds: float
    bytes: int

    @property
    def repairable(self) -> tuple[str, ...]:
        """Names of the layers in which exact recovery is possible."""
        return tuple(layer.name for layer in self.layers if layer.repairable)


@dataclass(frozen=True, slots=True)
class Altered:
    """Weights that were called altered and replaced, or suspicious and left as they are, one entry each.

    Attributes:
        tensor: Position of its tensor in ``names``.
        index: Position in the flattened tensor.
        was: The contaminated value.
        now: The value in the purified network.
        grade: ``Grade`` of the unit.
        names: Names of the tensors.
    """

    tensor: NDArray[np.int32]
    index: NDArray[np.int64]
    was: NDArray[np.float64]
    now: NDArray[np.float64]
    grade: NDArray[np.int8]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return self.index.size

    @classmethod
    def join(cls, parts: "list[Altered]") -> "Altered":
        """All entries of several tables."""
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        place = {name: number for number, name in enumerate(names)}
        moved = [np.array([place[name] for name in part.names], np.int32)[part.tensor] for part in parts]
        return cls(
            tensor=np.concatenate([np.zeros(0, np.int32), *moved]),
            index=np.concatenate([np.zeros(0, np.int64), *(part.index for part in parts)]),
            was=np.concatenate([np.zeros(0), *(part.was for part in parts)]),
            now=np.concatenate([np.zeros(0), *(part.now for part in parts)]),
            grade=np.concatenate([np.zeros(0, np.int8), *(part.grade for part in parts)]),
            names=names,
        )


@dataclass(frozen=True, slots=True)
class Proof:
    """What anyone needs, besides the two files of weights, to check one group of a layer again.

    Attributes:
        layer: Name of the layer.
        group: Number of the group.
        units: Positions of the units in the layer, [p].
        columns: Independent columns of the design, [fan-in, rank].
        coefficients: Of these columns, [rank, p].
        dual: [fan-in, p].
        groups: How many groups the layer has.
    """

    layer: str
    group: int
    units: NDArray[np.int64]
    columns: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    dual: NDArray[np.float64]
    groups: int


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """What was done to one layer.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        shape: Shape of its weight.
        groups: Independent regressions.
        fan_in: Length of a unit's weight vector, bias included.
        live: Coordinates of it that the clean inputs ever light.
        rank: Directions that the clean inputs span.
        frozen: Whether it was never trained, so that any difference from the initial weights is an alteration.
        decay: Factor that training left on the initial weights; 1 without weight decay.
        grade: ``Grade`` of each unit, [units].
        status: ``lad.Status`` of each unit's L1 fit, [units]; -1 where none was made.
        certificate: What was proven of the units with a status, in the order of ``certified_units``.
        certified_units: Positions of those units, [p].
        noise_floor: Residuals up to this are rounding, [units]; NaN where no fit was made.
        error_scale: Scale of the dense misfit, [units]; NaN where the fit is exact.
        unjudged: Weights that differ from the fit and were left alone all the same, because nearly all units differ on
            their row.
        altered: Weights that were replaced.
        suspicious: Weights that stand far out of a fit that is not exact, and were left as they are, because training
            may have made them; ``now`` is the same as ``was``.
        changed: How many weights differ from the contaminated ones.
        rebuilt: How many of those were missing (NaN, infinite or absurd).
        tolerance: Share of altered weights that all its units survive with probability .95.
        histogram: Sizes of residuals, counted in the bins of ``EDGES``; none, or one count less than edges.
        zeros: Residuals that are exactly zero or at most the noise floor.
        energies: Energies of the clean inputs in their principal directions, largest first.
        reason: Why units were left alone, if any were.
        seconds: Time it took.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    groups: int
    fan_in: int
    live: int
    rank: int
    frozen: bool
    decay: float
    grade: NDArray[np.int8]
    status: NDArray[np.int8]
    certificate: lad.Certificate | None
    certified_units: NDArray[np.int64]
    noise_floor: NDArray[np.float64]
    error_scale: NDArray[np.float64]
    unjudged: int
    altered: Altered
    suspicious: Altered
    changed: int
    rebuilt: int
    tolerance: float
    histogram: NDArray[np.int64]
    zeros: int
    energies: NDArray[np.float64]
    reason: str
    seconds: float
    proofs: tuple[Proof, ...] = field(default=())

    @property
    def units(self) -> int:
        """Units of all groups."""
        return self.grade.size

    def count(self, grade: Grade) -> int:
        """Units of this grade."""
        return int(np.count_nonzero(self.grade == grade))

    @property
    def share_altered(self) -> float:
        """Share of its weights that were called altered."""
        return len(self.altered) / (self.fan_in * self.units)
