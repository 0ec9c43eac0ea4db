"""Exact repair: units whose L1 fit is proven to be the truth get their altered weights replaced by the fit."""

from collections.abc import Iterable

import numpy as np

from netpurify.network.adapter.weights import Array, Mask
from netpurify.network.fitting import Regressions, UnitFits
from netpurify.network.outcome import Outcome
from netpurify.network.policies.recovery import evidence, half
from netpurify.network.records import Grade


class _GroupFits:
    """What the fits of one group's units say, gathered block by block. Arrays are [units] or [fan-in, units].

    Attributes:
        proven: Units whose fit is the truth.
        altered: Weights of proven units that differ from the fit or are missing.
        fitted: The fitted weights, where they were kept.
        idle: Units in which most weights that agree with the fit never changed.
        moved: Units in which some weight changed.
        shown: Units in which most weights changed by more than rounding hides; all of them, except in half precision.
        equal_steps: Weights that changed by as much as others of their unit that agree with the fit.
        repeating: Units whose weights repeat one another, so that their agreement is no evidence.
        usual_change: The usual change in the unit that training changed most.
    """

    def __init__(self, regressions: Regressions, group: int) -> None:
        weights = regressions.weights
        shape, units = weights.contaminated.shape[1:], weights.units
        self._regressions, self._group = regressions, group
        self.proven = np.zeros(units, np.bool_)
        self.altered: Mask = np.zeros(shape, np.bool_)
        self.fitted = np.zeros(shape, weights.contaminated.dtype)
        self.idle = np.zeros(units, np.bool_)
        self.moved = np.zeros(units, np.bool_)
        self.shown = np.zeros(units, np.bool_)
        self.equal_steps: Mask = np.zeros(shape, np.bool_)
        self.repeating = np.zeros(units, np.bool_)
        self.usual_change = 0.0
        design = regressions.designs[group]
        self.dead = np.ones(shape[0], np.bool_)
        """Rows that no clean input reaches."""
        if design is not None:
            self.dead[design.live] = False

    def add(self, fit: UnitFits) -> None:
        """Take in what a block of fits says."""
        units, live, altered = fit.units, fit.design.live, fit.altered
        missing = self._regressions.weights.missing[self._group][:, units]
        floor = self._regressions.noise_floors[self._group][..., units]
        if fit.judgement is not None:
            floor = fit.judgement.explained
        change = self._regressions.difference(self._group, units)
        values = fit.fitted_values()
        self.proven[units] = self._proven(fit, missing)
        self.altered[:, units] = altered & self.proven[units]
        agreeing = ~altered & ~self.dead[:, None]
        unchanged = np.abs(change) <= floor
        self.idle[units] = 2 * (agreeing & unchanged).sum(axis=0) > agreeing.sum(axis=0)
        self.shown[units] = half.shown(change[live], floor[live]) if fit.judgement is not None else True
        self.moved[units] = (np.abs(change) > floor).any(axis=0)
        self.equal_steps[:, units] = evidence.equal_steps(change, floor, altered)
        self.fitted[:, units] = self._regressions.start(self._group, units) + values
        if fit.judgement is None:
            self.repeating[units] = evidence.repeated(
                change[live], (change - values)[live], floor, altered[live], fit.design.rank
            )
        else:
            self.repeating[units] = half.repeated(
                values[live], (change - values)[live], floor[live], altered[live], fit.design.rank
            )
        self.usual_change = max(self.usual_change, evidence.largest_usual(change, floor, altered))

    def require_company(self) -> None:
        """In half precision, trust no unit's fit where training shows in most units, and most of those are not proven.

        Training that left the span of the clean inputs, or was rounded at every step, left it in all units. Some units
        may look proven nevertheless, because rounding hides what speaks against them.
        """
        if 2 * (self.proven & self.shown).sum() < self.shown.sum():
            self.proven &= self._regressions.weights.untouched(self._group, slice(None))
            self.altered &= self.proven

    def _proven(self, fit: UnitFits, missing: Mask) -> Mask:
        """Units whose fit is the truth; in half precision also those of which every weight has its initial bits."""
        if fit.judgement is None:
            decayed = self._regressions.decay != 1.0
            return evidence.proven(fit.proven_certificate, fit.design, fit.altered, missing, decayed=decayed)
        return fit.judgement.proven | self._regressions.weights.untouched(self._group, fit.units)

    def unjudged(self) -> Mask:
        """Weights of proven units that differ from the fit, for a reason other than an alteration, as it seems."""
        regressions, weights = self._regressions, self._regressions.weights
        differs = self.altered & ~weights.missing[self._group]
        # Units that never changed, since no input ever reached them, do not speak against what the others share.
        common = evidence.common_rows(
            differs[:, self.proven & self.moved],
            self.dead,
            weights.bias_row,
            decayed=regressions.decay != 1.0,
            doubt=regressions.doubt,
        )
        unjudged = differs & (common[:, None] | self.equal_steps)
        # In an idle unit most agreeing weights equal the initial ones, so it may not have been trained on inputs like
        # these. Fewer than four idle units cannot tell; they are judged like the others if more units are not idle.
        idle = self.idle & self.proven
        many = 2 * idle.sum() > self.proven.sum() or idle.sum() >= evidence.FEW
        if many and not evidence.scattered(differs[:, idle]):
            unjudged |= differs & idle
        repeating = self.repeating & self.proven
        contaminated: Array = weights.contaminated[self._group][:, repeating].astype(np.float64)
        sizes = np.abs(contaminated - self.fitted[:, repeating])
        small = (sizes <= evidence.BEYOND * self.usual_change) | (self.usual_change == 0.0)
        unjudged[:, repeating] |= differs[:, repeating] & small
        return unjudged | (differs & self._own_biases())

    def _own_biases(self) -> Mask:
        """In half precision, biases that differ from the fit by no more than training changes weights.

        Rounding hides whether the weights of a unit changed in steps of equal size, as Adam makes them. A small bias is
        rounded less than the weights, and would be the only one to show that the fit is not the truth.
        """
        weights = self._regressions.weights
        if weights.grid is None:
            return np.zeros_like(self.altered)
        with np.errstate(invalid="ignore"):
            sizes = np.abs(weights.contaminated[self._group].astype(np.float64) - self.fitted)
        return weights.bias_row[:, None] & (sizes <= evidence.CLEAR * self.usual_change)


def recover_group(regressions: Regressions, group: int, fits: Iterable[UnitFits], outcome: Outcome) -> None:
    """Replace the altered weights of the units of one group whose fit is proven.

    Args:
        regressions: What was fitted.
        group: Number of the group.
        fits: The fits of its units.
        outcome: Takes the new weights and what is known of them.
    """
    gathered = _GroupFits(regressions, group)
    for fit in fits:
        outcome.take(fit, regressions.layer.name)
        gathered.add(fit)
    if regressions.weights.grid is not None:
        gathered.require_company()
    unjudged = gathered.unjudged()
    outcome.unjudged += int(unjudged.sum())
    chosen = gathered.altered & ~unjudged
    outcome.replace(group, chosen, gathered.fitted[chosen])
    if regressions.weights.grid is not None:
        known = gathered.proven & ~unjudged
        outcome.unrounded[group][known] = gathered.fitted[known]
    first = group * regressions.weights.units
    outcome.grade[first : first + regressions.weights.units][gathered.proven] = Grade.RECOVERED
