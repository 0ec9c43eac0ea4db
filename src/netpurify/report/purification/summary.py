"""A purification in a few sentences: what was proven, what was approximated, what was left alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from netpurify.lad import Status
from netpurify.network import Grade, Guard, Purification
from netpurify.report.kit.names import missed_modules, policy_name
from netpurify.report.kit.numbers import count, number, plural
from netpurify.report.kit.summary import Outlook, Statement, Summary, describe_agreement
from netpurify.report.purification.advice import advise

SYMBOLS = {
    Grade.RECOVERED: "✓", Grade.APPROXIMATE: "◐", Grade.LEFT_ALONE: "○", Grade.PROJECTED: "▣", Grade.RESTORED: "↺",
    Grade.LOW_RANK: "≈",
}  # fmt: skip
"""Beside a grade's name, so that it is seen without its colour."""
_BASIS = (
    "What this rests on: that the initial weights are those with which training began, and that the inputs are clean "
    "and like those of training. Neither can be seen from the weights."
)
_CHECKABLE = " The certificates can be checked again by anyone who has both files of weights and the proof."
_MISSED = "layers that could not be examined, so that nothing is known about them"


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted over all layers of a purification.

    Attributes:
        policy: ``"recover"`` or ``"project"``.
        weights: Weights of the layers that were examined, biases included.
        altered: Weights that were called altered and replaced, by the grade of their unit.
        units: Units by grade.
        fits: Units with an L1 fit.
        minima: Fits that are proven minima.
        changed: Weights that differ from the contaminated ones.
        rebuilt: Replaced weights that were missing (NaN, infinite or absurdly large).
        unjudged: Weights that differ from the fit and were left alone, because training may have made the pattern.
        suspicious: Weights that stand far out of a fit that is not exact and were left as they are.
        not_finite: Weights of the purified network that are NaN or infinite.
        error: Median scale of the error in approximate units; NaN if there are none.
        skipped: Modules that were not examined.
        missed: Those among them whose weights nobody knows to be right.
    """

    policy: str
    weights: int
    altered: Mapping[Grade, int]
    units: Mapping[Grade, int]
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
            weights=sum(layer.fan_in * layer.units for layer in result.layers),
            altered={grade: int((grades == grade).sum()) for grade in Grade},
            units={grade: result.count(grade) for grade in Grade},
            fits=sum(codes.size for codes in fitted),
            minima=sum(int(np.isin(codes, certified).sum()) for codes in fitted),
            changed=sum(layer.changed for layer in result.layers),
            rebuilt=sum(layer.rebuilt for layer in result.layers),
            unjudged=sum(layer.unjudged for layer in result.layers),
            suspicious=len(result.suspicious),
            not_finite=_not_finite(result.model),
            error=float(np.median(scales)) if scales.size else math.nan,
            skipped=len(result.skipped),
            missed=sum(module.missed for module in result.skipped),
        )

    @property
    def all_units(self) -> int:
        """Units of every grade."""
        return sum(self.units.values())

    @property
    def certain(self) -> int:
        """Units that are recovered or restored."""
        return sum(units for grade, units in self.units.items() if grade.certain)

    @property
    def whole(self) -> bool:
        """Whether every unit that was examined is recovered or restored and every weight of it is judged."""
        return 0 < self.all_units == self.certain and not self.unjudged

    @property
    def outlook(self) -> Outlook:
        """Whether everything that should be known is known, some of it, or nothing."""
        if self.whole and not self.not_finite and not self.missed:
            return "holds"
        return "unseen" if self.all_units == self.units[Grade.LEFT_ALONE] else "limits"

    @property
    def exit_code(self) -> int:
        """1 if a weight was altered, is not finite or was not judged, or if evidence or a proof is missing; else 0."""
        unproven = self.fits - self.minima if self.policy == "project" else 0
        weak = (Grade.LEFT_ALONE, Grade.APPROXIMATE, Grade.LOW_RANK)
        without_evidence = sum(self.units[grade] for grade in weak) + unproven
        findings = sum(self.altered.values()) + without_evidence + self.unjudged + self.not_finite + self.missed
        return 1 if findings else 0


def summarise_purification(result: Purification) -> Summary:
    """A purification in words."""
    counts = Counts.of(result)
    checkable = counts.fits and result.provenance["settings"]["proof"]
    return Summary(
        policy=counts.policy,
        headline=_headline(counts, result),
        outlook=counts.outlook,
        statements=(*_statements(counts), Statement(describe_agreement(result.agreement))),
        advice=advise(result),
        basis=_BASIS + (_CHECKABLE if checkable else ""),
        exit_code=counts.exit_code,
    )


def _headline(counts: Counts, result: Purification) -> str:
    if not counts.all_units:
        clauses = ["No layer was examined"]
    else:
        clauses = _projected(counts) if counts.policy == "project" else _recovered(counts)
    if counts.not_finite:
        are = "is" if counts.not_finite == 1 else "are"
        clauses.append(f"{plural(counts.not_finite, 'weight')} of the purified network {are} not finite")
    clauses += missed_modules(result.skipped, _MISSED)
    if others := counts.skipped - counts.missed:
        clauses.append(f"{plural(others, 'other module' if counts.missed else 'module')} not examined")
    return "; ".join(clauses)


def _recovered(counts: Counts) -> list[str]:
    altered = sum(found for grade, found in counts.altered.items() if grade.certain)
    far_out, low_rank = counts.altered[Grade.APPROXIMATE], counts.altered[Grade.LOW_RANK]
    clauses = []
    if altered:
        clauses.append(f"{count(altered)} of {plural(counts.weights, 'weight')} {_were(altered)} altered")
    elif counts.whole:
        clauses.append(f"Nothing was altered in {plural(counts.weights, 'weight')} examined")
    else:
        clauses.append(f"No weight of {count(counts.weights)} is proven to be altered")
    if far_out:
        more = f"{count(far_out)} more" if altered else plural(far_out, "weight")
        clauses.append(f"{more} far out of the fit replaced approximately")
    if low_rank:
        more = f"{count(low_rank)} more" if altered or far_out else plural(low_rank, "weight")
        clauses.append(f"{more} replaced by a low-rank fit that was estimated")
    clauses.append(_recovered_units(counts))
    if counts.units[Grade.LEFT_ALONE]:
        clauses.append(f"{_of_all(counts, Grade.LEFT_ALONE)} could not be judged")
    if counts.unjudged:
        clauses.append(f"{plural(counts.unjudged, 'weight')} left unjudged")
    if counts.suspicious:
        clauses.append(f"{plural(counts.suspicious, 'suspicious weight')} left unchanged")
    return clauses


def _recovered_units(counts: Counts) -> str:
    """How many units are recovered, and on what evidence."""
    recovered, restored = counts.units[Grade.RECOVERED], counts.units[Grade.RESTORED]
    if not counts.certain:
        return "no unit recovered"
    if not restored:
        return f"{_of_all(counts, Grade.RECOVERED)} recovered, certified"
    if not recovered:
        return f"{_of_all(counts, Grade.RESTORED)} as before training"
    return f"{_of_all(counts, Grade.RECOVERED)} recovered, certified; {count(restored)} as before training"


def _projected(counts: Counts) -> list[str]:
    units = _of_all(counts, Grade.PROJECTED)
    clauses = [
        f"{units[0].upper()}{units[1:]} took the fitted value in every weight",
        f"{count(counts.changed)} of {plural(counts.weights, 'weight')} changed",
    ]
    if counts.units[Grade.LEFT_ALONE]:
        clauses.append(f"{_of_all(counts, Grade.LEFT_ALONE)} left alone")
    if unproven := counts.fits - counts.minima:
        clauses.append(f"{plural(unproven, 'fit')} without a certificate")
    return clauses


def _of_all(counts: Counts, grade: Grade) -> str:
    units = counts.units[grade]
    if units < counts.all_units:
        return f"{count(units)} of {plural(counts.all_units, 'unit')}"
    return f"all {plural(units, 'unit')}" if units > 1 else "the only unit"


def _statements(counts: Counts) -> list[Statement]:
    by_grade = [
        Statement(_about_grade(counts, grade), f"{SYMBOLS[grade]} {grade.label}", grade.label.replace(" ", "-"))
        for grade in Grade
        if counts.units[grade]
    ]
    texts = []
    if counts.rebuilt:
        texts.append(f"{plural(counts.rebuilt, 'replaced weight')} had been NaN, infinite or absurdly large.")
    if counts.unjudged:
        texts.append(
            f"{plural(counts.unjudged, 'weight')} left unjudged: they differ from the fit in a pattern that training "
            "may have made, such as nearly all units at one input, or several at inputs that no clean one reaches. An "
            "attacker can make it too."
        )
    if counts.suspicious:
        texts.append(
            f"{plural(counts.suspicious, 'suspicious weight')} left unchanged: far out of a fit that is not exact, "
            "but not beyond what training could have done."
        )
    if counts.fits:
        proven = f"{count(counts.minima)} of {plural(counts.fits, 'L1 fit')} {_are(counts.minima)}"
        more = "; a unit counts as recovered only with surplus evidence besides" if counts.policy == "recover" else ""
        texts.append(f"{proven}. That proves the fits, not the weights{more}.")
    if counts.skipped:
        texts.append(f"{plural(counts.skipped, 'module')} with weights {_were(counts.skipped)} not examined.")
    return [*by_grade, *map(Statement, texts)]


def _about_grade(counts: Counts, grade: Grade) -> str:
    altered, units = counts.altered[grade], plural(counts.units[grade], "unit")
    if grade == Grade.RECOVERED:
        if not altered:
            return f"{units}: nothing to replace; every weight keeps its bits."
        return f"{units}: {plural(altered, 'weight')} replaced, exact to rounding; all others keep their bits."
    if grade == Grade.RESTORED:
        if not altered:
            return f"{units}: never trained, and every weight has its initial bits."
        return f"{units}: never trained; {plural(altered, 'weight')} set back to the initial bits."
    if grade == Grade.LOW_RANK:
        return (
            f"{units}: {plural(altered, 'weight')} replaced by a fit of low rank; its directions were estimated from "
            "the layer itself, so it is no proof."
        )
    if grade == Grade.APPROXIMATE:
        return (
            f"{units}: {plural(altered, 'weight')} far out of the fit replaced by the fitted value, with an error of "
            f"about {number(counts.error)} each; no proof, and smaller alterations stay."
        )
    if grade == Grade.LEFT_ALONE:
        return f"{units}: nothing was changed; whether anything is altered there is not known."
    return (
        f"{units}: every weight took the fitted value, whatever was altered (Algorithm 2 as written); which "
        "weights had been altered is not said."
    )


def _were(how_many: int) -> str:
    return "was" if how_many == 1 else "were"


def _are(minima: int) -> str:
    return "is a proven minimum" if minima == 1 else "are proven minima"


def _not_finite(model: nn.Module) -> int:
    """Weights that are not finite. Guards are left out: where they limit nothing, their spread is infinite."""
    guards = tuple(name for name, module in model.named_modules() if isinstance(module, Guard))
    state = {name: value for name, value in model.state_dict().items() if name.rpartition(".")[0] not in guards}
    return sum(int((~value.isfinite()).sum()) for value in state.values() if isinstance(value, Tensor))
