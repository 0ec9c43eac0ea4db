"""Records: what can be expected of a network before it is purified, and what was done to it."""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network.adapter.form import Form
from netpurify.network.tolerance import Tolerance

EDGES = np.logspace(-20.0, 20.0, 161)
"""Edges of the bins of histograms of residual sizes."""


class Grade(IntEnum):
    """How strong the evidence for a unit is. Units of different grades are never counted together."""

    RECOVERED = 0
    APPROXIMATE = 1
    LEFT_ALONE = 2
    PROJECTED = 3
    RESTORED = 4
    LOW_RANK = 5

    @property
    def label(self) -> str:
        """The grade's name in tables and reports."""
        return self.name.lower().replace("_", " ")

    @property
    def meaning(self) -> str:
        """What this grade says of a unit's weights."""
        return _MEANINGS[self]

    @property
    def certain(self) -> bool:
        """Whether every weight of such a unit is known to be what training left, or was set back to it."""
        return self in (Grade.RECOVERED, Grade.RESTORED)


_MEANINGS = {
    Grade.RECOVERED: "enough weights agree to prove it: altered ones are replaced, exact to rounding; the rest stays",
    Grade.APPROXIMATE: "what no training could have done is replaced by a fit that is not exact; no proof",
    Grade.LEFT_ALONE: "not enough evidence: nothing was changed",
    Grade.PROJECTED: "every weight took the fitted value, whatever was altered (Algorithm 2 as written)",
    Grade.RESTORED: "never trained: what differs from the initial weights is altered, and was set back to the bit",
    Grade.LOW_RANK: "enough weights agree on a change of low rank that was estimated from the layer itself; no proof",
}


@dataclass(frozen=True, slots=True, repr=False)
class Altered:
    """A table with one entry for each weight that was altered and replaced, or is suspicious and was left as it is.

    Attributes:
        tensor: Position of the weight's tensor in ``names``.
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

    def __repr__(self) -> str:
        return f"Altered(weights={len(self)}, tensors={len(set(self.tensor.tolist()))})"

    @classmethod
    def join(cls, tables: "list[Altered]") -> "Altered":
        """All entries of several tables."""
        names = tuple(dict.fromkeys(name for table in tables for name in table.names))
        position = {name: number for number, name in enumerate(names)}
        tensors = [np.array([position[name] for name in table.names], np.int32)[table.tensor] for table in tables]
        return cls(
            tensor=np.concatenate([np.zeros(0, np.int32), *tensors]),
            index=np.concatenate([np.zeros(0, np.int64), *(table.index for table in tables)]),
            was=np.concatenate([np.zeros(0), *(table.was for table in tables)]),
            now=np.concatenate([np.zeros(0), *(table.now for table in tables)]),
            grade=np.concatenate([np.zeros(0, np.int8), *(table.grade for table in tables)]),
            names=names,
        )


@dataclass(frozen=True, slots=True)
class Proof:
    """What is needed, besides the weights before and after, to check the fits of some units of a layer again.

    Attributes:
        layer: Name of the layer.
        group: Number of the group.
        units: Positions of the units in the layer, [p].
        columns: Independent columns of the design, [fan-in, rank].
        coefficients: Coefficients of these columns for each unit, [rank, p].
        dual: Dual variables of each unit's L1 regression, [fan-in, p]; [fan-in, 0] if the units are restored.
        groups: How many groups the layer has.
        form: How the layer's tensors become its matrix; ``None`` for a module with a weight [units, ...] and a bias.
        restored: Whether the units were never trained, so that altered weights have their initial bits again. Then
            there are neither columns nor coefficients.
    """

    layer: str
    group: int
    units: NDArray[np.int64]
    columns: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    dual: NDArray[np.float64]
    groups: int
    form: Form | None = None
    restored: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class LayerRecord:
    """What was done to one layer.

    Attributes:
        name: Its name in the network.
        kind: Name of its class.
        shape: Shape of its weight.
        groups: How many independent regressions the layer is.
        fan_in: Length of a unit's weight vector, bias included.
        live: How many coordinates of it are reached by a clean input.
        rank: How many directions the clean inputs span.
        frozen: Whether it was never trained, so that any difference from the initial weights is an alteration.
        decay: Factor by which training shrank the initial weights; 1 without weight decay.
        grade: ``Grade`` of each unit, [units].
        status: ``lad.Status`` of each unit's L1 fit, [units]; -1 for a unit that was not fitted.
        certificate: What was proven of the units with a status, in the order of ``certified_units``.
        certified_units: Positions of those units, [p].
        noise_floor: Residuals up to this size are rounding, [units]; NaN for a unit that was not fitted.
        error_scale: Robust standard deviation of the residuals of a fit that is not exact, [units]; otherwise NaN.
        unjudged: How many weights differ from the fit but were kept, because training may be the cause: nearly all
            units differ on the same row, or several units on rows that no clean input reaches.
        altered: Weights that were replaced.
        replaced: How many of them each unit has, [units].
        kept: How many weights of each unit differ from its L1 fit and were not replaced, [units].
        suspicious: Weights that lie far from a fit that is not exact, and were left as they are, because training may
            have made them; ``now`` is the same as ``was``.
        changed: How many weights differ from the contaminated ones.
        rebuilt: How many of those were missing (NaN, infinite or absurd).
        tolerance: Shares of altered weights up to which one unit and all units are recovered with probability 0.95,
            simulated on the clean inputs with as many positive alterations as were found; ``None`` if it is frozen.
        histogram: How many residuals have a size in each bin of ``EDGES``; empty if there are no residuals.
        zeros: How many residuals are zero or at most the noise floor.
        energies: Energy of the clean inputs in each of their principal directions, largest first.
        reason: Why units were left alone, if any were.
        seconds: Time that the layer took.
        proofs: What is needed to check the fits again; empty if no proof was asked for.
        low_rank: Rank of the layer's change, if it has a low one that was estimated from the layer itself; else
            ``None``. The largest over groups.
        singular_values: Of that change in the units that were fitted, largest first; empty if there is none.
        form: How the layer's tensors become its matrix, if it is known.
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
    replaced: NDArray[np.int64]
    kept: NDArray[np.int64]
    suspicious: Altered
    changed: int
    rebuilt: int
    tolerance: Tolerance | None
    histogram: NDArray[np.int64]
    zeros: int
    energies: NDArray[np.float64]
    reason: str
    seconds: float
    proofs: tuple[Proof, ...] = field(default=())
    low_rank: int | None = None
    singular_values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    form: Form | None = None

    def __repr__(self) -> str:
        altered = f"altered={len(self.altered)}, unjudged={self.unjudged}, uncertain={self.uncertain}"
        return f"LayerRecord({self.name!r}, {self.kind!r}, units={self.units}, intact={self.intact}, {altered})"

    @property
    def units(self) -> int:
        """Units of all groups."""
        return self.grade.size

    def count(self, grade: Grade) -> int:
        """Units of this grade."""
        return int(np.count_nonzero(self.grade == grade))

    def repaired(self, grade: Grade) -> int:
        """Units of this grade in which weights were replaced."""
        return int(np.count_nonzero((self.grade == grade) & (self.replaced > 0)))

    @property
    def intact(self) -> int:
        """Units that are known to be what training left, and in which nothing had to be replaced."""
        return sum(self.unaltered(grade) for grade in Grade if grade.certain)

    def unaltered(self, grade: Grade) -> int:
        """Units of this grade in which nothing was replaced, and nothing that differs from the fit was kept."""
        return int(np.count_nonzero((self.grade == grade) & (self.replaced == 0) & (self.kept == 0)))

    @property
    def affected(self) -> bool:
        """Whether there is something to say of it: weights that were replaced, or of which not all is known."""
        return bool(len(self.altered) or len(self.suspicious) or self.unjudged or self.uncertain or self.reason)

    @property
    def shape_by_units(self) -> tuple[int, ...]:
        """Shape of the weight with the units first: [units, ...]."""
        if self.form is None or self.form.layout == "plain":
            return self.shape
        return self.units, self.shape[0] // self.groups, *self.shape[2:]

    def places_of(self, table: Altered) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The unit, and the place among the unit's weights, of each entry of a table of this layer's weights."""
        form = self.form or Form("weight", tuple(table.names[1:]), groups=self.groups)
        return form.units_at(self.shape, table.tensor, table.index)

    @property
    def uncertain(self) -> int:
        """Units of which some weight may still be wrong."""
        return self.units - sum(self.count(grade) for grade in Grade if grade.certain)

    @property
    def share_altered(self) -> float:
        """Share of its weights that were called altered."""
        return len(self.altered) / (self.fan_in * self.units)
