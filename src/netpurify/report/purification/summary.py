"""A purification in a few sentences: what was proven, what was approximated, what was left alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from netpurify.lad import Status
from netpurify.network import Agreement, Grade, Purification
from netpurify.report.kit.numbers import count, number, plural, share

SYMBOLS = {Grade.RECOVERED: "✓", Grade.APPROXIMATE: "◐", Grade.LEFT_ALONE: "○", Grade.PROJECTED: "▣"}
"""Beside a grade's name, so that it is seen without its colour."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What was counted over all layers.

    Attributes:
        policy: ``"recover"`` or ``"project"``.
        weights: Weights of the layers that were examined, biases included.
        altered: Weights that were called altered and replaced, by the grade of their unit.
        units: Units by grade.
        untrained: Recovered units of layers that were never trained: compared with the initial weights, not fitted.
        fits: Units with an L1 fit.
        minima: Fits that are proven minima.
        changed: Weights that differ from the contaminated ones.
        rebuilt: Replaced weights that were missing (NaN, infinite or absurd).
        unjudged: Weights that differ from the fit and were left alone all the same.
        suspicious: Weights that stand far out of a fit that is not exact and were left as they are.
        error: Median scale of the error in approximate units; NaN if there are none.
        skipped: Modules that were not examined.
        missed: Those among them that nobody knows to be right.
    """

    policy: str
    weights: int
    altered: Mapping[Grade, int]
    units: Mapping[Grade, int]
    untrained: int
    fits: int
    minima: int
    changed: int
    rebuilt: int
    unjudged: int
    suspicious: int
    error: float
    skipped: int
    missed: int

    @classmethod
    def of(cls, result: Purification) -> "Summary":
        """Counts a result."""
        grades = np.concatenate([np.zeros(0, np.int8), *(layer.altered.grade for layer in result.layers)])
        errors = [layer.error_scale[layer.grade == Grade.APPROXIMATE] for layer in result.layers]
        scales = np.concatenate([np.zeros(0), *errors])
        fitted = [layer.status[layer.status >= 0] for layer in result.layers]
        certified = [code for code in Status if code.certified]
        return cls(
            policy=result.policy,
            weights=sum(layer.fan_in * layer.units for layer in result.layers),
            altered={grade: int((grades == grade).sum()) for grade in Grade},
            units={grade: result.count(grade) for grade in Grade},
            untrained=sum(layer.count(Grade.RECOVERED) for layer in result.layers if layer.frozen),
            fits=sum(codes.size for codes in fitted),
            minima=sum(int(np.isin(codes, certified).sum()) for codes in fitted),
            changed=sum(layer.changed for layer in result.layers),
            rebuilt=sum(layer.rebuilt for layer in result.layers),
            unjudged=sum(layer.unjudged for layer in result.layers),
            suspicious=len(result.suspicious),
            error=float(np.median(scales)) if scales.size else float("nan"),
            skipped=len(result.skipped),
            missed=sum(part.missed for part in result.skipped),
        )

    @property
    def whole(self) -> bool:
        """Whether every unit that was examined is recovered and every weight of it is judged."""
        return 0 < sum(self.units.values()) == self.units[Grade.RECOVERED] and not self.unjudged

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        if not sum(self.units.values()):
            return "No layer was examined"
        parts = self._projected() if self.policy == "project" else self._recovered()
        if self.missed:
            parts.append(f"{plural(self.missed, 'module')} not examined and not known to be right")
        return "; ".join(parts)

    @property
    def statements(self) -> list[tuple[Grade | None, str]]:
        """One sentence for each fact, with the grade that it speaks of."""
        found: list[tuple[Grade | None, str]] = [(grade, self._of_grade(grade)) for grade in Grade if self.units[grade]]
        rest = []
        if self.rebuilt:
            rest.append(f"{plural(self.rebuilt, 'replaced weight')} had been NaN, infinite or absurdly large.")
        if self.unjudged:
            rest.append(
                f"{plural(self.unjudged, 'weight')} left unjudged: they differ from the fit, but so do nearly all "
                "units at that input, which no alteration of single weights explains."
            )
        if self.suspicious:
            rest.append(
                f"{plural(self.suspicious, 'suspicious weight')} left unchanged: far out of a fit that is not exact, "
                "but not beyond what training could have done."
            )
        if self.fits:
            proven = f"{count(self.minima)} of {plural(self.fits, 'L1 fit')} are proven minima"
            more = "; a unit counts as recovered only with surplus evidence besides" if self.policy == "recover" else ""
            rest.append(f"{proven}. That proves the fits, not the weights{more}.")
        if self.skipped:
            rest.append(f"{plural(self.skipped, 'module')} with weights not examined; see below.")
        return [*found, *((None, text) for text in rest)]

    def _recovered(self) -> list[str]:
        altered, far = self.altered[Grade.RECOVERED], self.altered[Grade.APPROXIMATE]
        parts = []
        if altered:
            was = "was" if altered == 1 else "were"
            parts.append(f"{count(altered)} of {count(self.weights)} weights {was} altered")
        elif self.whole:
            parts.append(f"nothing was altered in {plural(self.weights, 'weight')} examined")
        else:
            parts.append(f"no weight of {count(self.weights)} is proven to be altered")
        if far:
            more = f"{count(far)} more" if altered else plural(far, "weight")
            parts.append(f"{more} far out of the fit replaced approximately")
        parts.append(self._units())
        if self.units[Grade.LEFT_ALONE]:
            parts.append(f"{self._of_all(Grade.LEFT_ALONE)} could not be judged")
        if self.unjudged:
            parts.append(f"{plural(self.unjudged, 'weight')} left unjudged")
        if self.suspicious:
            parts.append(f"{plural(self.suspicious, 'suspicious weight')} left unchanged")
        parts[0] = parts[0][0].upper() + parts[0][1:]
        return parts

    def _units(self) -> str:
        """How many units are recovered, and on what evidence."""
        good = self.units[Grade.RECOVERED]
        if not good:
            return "no unit recovered"
        certified = good - self.untrained
        if not self.untrained:
            evidence = ", certified"
        elif not certified:
            evidence = ", never trained"
        else:
            evidence = f" ({count(certified)} certified, {count(self.untrained)} never trained)"
        return f"{self._of_all(Grade.RECOVERED)} recovered{evidence}"

    def _projected(self) -> list[str]:
        parts = [
            f"{self._of_all(Grade.PROJECTED, capital=True)} took the fitted value in every weight",
            f"{count(self.changed)} of {count(self.weights)} weights changed",
        ]
        if self.units[Grade.LEFT_ALONE]:
            parts.append(f"{self._of_all(Grade.LEFT_ALONE)} left alone")
        return parts

    def _of_all(self, grade: Grade, *, capital: bool = False) -> str:
        all_units, some = sum(self.units.values()), self.units[grade]
        if some == all_units:
            words = f"all {plural(some, 'unit')}" if some > 1 else "the only unit"
            return words.capitalize() if capital else words
        return f"{count(some)} of {plural(all_units, 'unit')}"

    def _of_grade(self, grade: Grade) -> str:
        altered, units = self.altered[grade], plural(self.units[grade], "unit")
        if grade == Grade.RECOVERED:
            if not altered:
                return f"{units}: nothing to replace; every weight keeps its bits."
            return f"{units}: {plural(altered, 'weight')} replaced, exact to rounding; all others keep their bits."
        if grade == Grade.APPROXIMATE:
            return (
                f"{units}: {plural(altered, 'weight')} far out of the fit replaced by what it says, with an error of "
                f"about {number(self.error)} each; no proof, and smaller alterations stay."
            )
        if grade == Grade.LEFT_ALONE:
            return f"{units}: nothing was changed; whether anything is altered there is not known."
        return (
            f"{units}: every weight took the fitted value, whatever was altered (Algorithm 2 as written); which "
            "weights had been altered is not said."
        )


def status_label(code: int) -> str:
    """An L1 fit's status in words; a fit without residuals says nothing about the network as a whole."""
    if code < 0:
        return "no fit"
    return "no residual" if code == Status.CLEAN else Status(code).name.lower().replace("_", " ")


def in_words(found: Agreement) -> str:
    """How two networks compare on the clean inputs."""
    if not found.inputs:
        return "Outputs on the clean inputs were not compared: they are no tensors."
    inputs = f"On {plural(found.inputs, 'clean input')}"
    if math.isnan(found.change):
        return f"{inputs}, outputs cannot be compared: those of the contaminated network are not finite."
    same = "" if math.isnan(found.same) else f", and the largest output is the same for {share(found.same)}"
    return f"{inputs}, outputs changed by {share(found.change)} of their size{same}."
