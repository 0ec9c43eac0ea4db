"""What was counted over all layers of a purification: the figures behind its sentences."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor, nn

from netpurify.lad import Status
from netpurify.network import Coverage, Grade, Guard, LayerRecord, Purification
from netpurify.report.kit.names import policy_name
from netpurify.report.kit.summary import Outlook

SYMBOLS = {
    Grade.RECOVERED: "✓", Grade.APPROXIMATE: "◐", Grade.LEFT_ALONE: "○", Grade.PROJECTED: "▣", Grade.RESTORED: "↺",
    Grade.LOW_RANK: "≈",
}  # fmt: skip
"""Beside a grade's name, so that it is seen without its colour."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted over all layers of a purification.

    Attributes:
        policy: ``"recover"`` or ``"project"``.
        weights: Weights that were looked at: of layers, biases included, and of tensors that were compared.
        altered: Weights of layers that were called altered and replaced, by the grade of their unit.
        others: Weights of other tensors that were set back to their initial bits, because these were never trained.
        others_rebuilt: Weights of other tensors that no training leaves, and that took their initial values.
        units: Units by grade.
        repaired: Units in which weights were replaced, by grade.
        intact: Units in which nothing was replaced and nothing that differs from the fit was kept, by grade.
        fits: Units with an L1 fit.
        minima: Fits that are proven minima.
        changed: Weights that differ from the contaminated ones.
        rebuilt: Replaced weights that were missing (NaN, infinite or absurdly large).
        unjudged: Weights that differ from the fit and were left alone, because training may have made the pattern.
        suspicious: Weights that stand far out of a fit that is not exact and were left as they are.
        not_finite: Weights of the purified network that are NaN or infinite.
        error: Median scale of the error in approximate units; NaN if there are none.
        skipped: Modules that were neither examined nor found to have their initial bits.
        missed: Those among them whose weights nobody knows to be right.
        coverage: How many weights are known, compared only, and unknown.
    """

    policy: str
    weights: int
    altered: Mapping[Grade, int]
    others: int
    others_rebuilt: int
    units: Mapping[Grade, int]
    repaired: Mapping[Grade, int]
    intact: Mapping[Grade, int]
    fits: int
    minima: int
    changed: int
    rebuilt: int
    unjudged: int
    suspicious: int
    not_finite: int
    error: float
    skipped: int
    missed: int
    coverage: Coverage

    @classmethod
    def of(cls, result: Purification) -> "Counts":
        """Counts a result."""
        grades = np.concatenate([np.zeros(0, np.int8), *(layer.altered.grade for layer in result.layers)])
        errors = [layer.error_scale[layer.grade == Grade.APPROXIMATE] for layer in result.layers]
        scales = np.concatenate([np.zeros(0), *errors])
        fitted = [layer.status[layer.status >= 0] for layer in result.layers]
        certified = [status for status in Status if status.certified]
        return cls(
            policy=policy_name(result),
            weights=result.coverage.examined + result.coverage.compared,
            altered={grade: int((grades == grade).sum()) for grade in Grade},
            others=sum(one.altered_count for one in result.compared),
            others_rebuilt=sum(len(one.impossible) for one in result.compared),
            units={grade: result.count(grade) for grade in Grade},
            repaired={grade: sum(layer.repaired(grade) for layer in result.layers) for grade in Grade},
            intact={grade: sum(layer.unaltered(grade) for layer in result.layers) for grade in Grade},
            fits=sum(codes.size for codes in fitted),
            minima=sum(int(np.isin(codes, certified).sum()) for codes in fitted),
            changed=sum(layer.changed for layer in result.layers),
            rebuilt=sum(layer.rebuilt for layer in result.layers),
            unjudged=sum(layer.unjudged for layer in result.layers),
            suspicious=len(result.suspicious),
            not_finite=_not_finite(result.model),
            error=float(np.median(scales)) if scales.size else math.nan,
            skipped=sum(not module.settled for module in result.skipped),
            missed=sum(module.missed for module in result.skipped),
            coverage=result.coverage,
        )

    @property
    def all_units(self) -> int:
        """Units of every grade."""
        return sum(self.units.values())

    @property
    def unclear(self) -> int:
        """Units that are certain but for weights that were left unjudged."""
        return sum(self.units[one] - self.repaired[one] - self.intact[one] for one in Grade if one.certain)

    @property
    def certain(self) -> int:
        """Units that are recovered or restored."""
        return sum(units for grade, units in self.units.items() if grade.certain)

    @property
    def whole(self) -> bool:
        """Whether every unit that was examined is recovered or restored and every weight of it is judged."""
        looked_at = self.all_units or self.coverage.examined
        return bool(looked_at) and self.all_units == self.certain and not self.unjudged

    @property
    def outlook(self) -> Outlook:
        """Whether everything that should be known is known, some of it, or nothing."""
        if self.whole and not self.not_finite and not self.missed:
            return "holds"
        nothing = self.all_units == self.units[Grade.LEFT_ALONE] and not self.coverage.examined
        return "unseen" if nothing else "limits"

    @property
    def replaced(self) -> int:
        """Weights that were replaced, of layers and of other tensors."""
        return sum(self.altered.values()) + self.others + self.others_rebuilt

    @property
    def exit_code(self) -> int:
        """1 if a weight was altered, is not finite or was not judged, or if evidence or a proof is missing; else 0."""
        unproven = self.fits - self.minima if self.policy == "project" else 0
        weak = (Grade.LEFT_ALONE, Grade.APPROXIMATE, Grade.LOW_RANK)
        without_evidence = sum(self.units[grade] for grade in weak) + unproven
        findings = self.replaced + without_evidence + self.unjudged + self.not_finite + self.missed
        return 1 if findings else 0


def _not_finite(model: nn.Module) -> int:
    """Weights that are not finite. Guards are left out: where they limit nothing, their spread is infinite."""
    guards = tuple(name for name, module in model.named_modules() if isinstance(module, Guard))
    state = {name: value for name, value in model.state_dict().items() if name.rpartition(".")[0] not in guards}
    return sum(int((~value.isfinite()).sum()) for value in state.values() if isinstance(value, Tensor))


@dataclass(frozen=True, slots=True)
class UnitColumn:
    """A column of a table of layers that counts units.

    Attributes:
        label: What it counts, such as *intact* or a grade.
        sign: Beside the label, so that it is seen without its colour.
        units: How many units of a layer it counts.
    """

    label: str
    sign: str
    units: Callable[[LayerRecord], int]


def unit_columns(result: Purification) -> list[UnitColumn]:
    """Columns that count units, as far as there are any: intact ones, repaired ones, and those of every other grade."""
    columns = [
        UnitColumn("intact", "✓", lambda layer: layer.intact),
        *(UnitColumn(grade.label, SYMBOLS[grade], partial(_of_grade, grade=grade)) for grade in Grade),
        UnitColumn("unjudged units", "◐", lambda it: it.units - it.uncertain - it.intact - _repaired(it)),
    ]
    return [column for column in columns if any(map(column.units, result.layers))]


def _of_grade(layer: LayerRecord, grade: Grade) -> int:
    """Units of a grade; of those that are certain, only the repaired ones: the others are intact."""
    return layer.repaired(grade) if grade.certain else layer.count(grade)


def _repaired(layer: LayerRecord) -> int:
    return sum(layer.repaired(grade) for grade in Grade if grade.certain)
