"""Lemma 1 and the limits of recovery for the two designs of one run, as rows of the table."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify import lad
from netpurify.contaminate import Law
from netpurify.findings import Verdict
from netpurify.paper.model import matrix
from netpurify.paper.purification import FittedLayer, Purified
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.constants import Interval, constants, fixed_sigma2
from netpurify.paper.theory.row import Row

Floats = NDArray[np.float64]
_DRAWS = 2000
"""Alterations of an entry from which the odds of its sign are counted."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What recovery sees of a law of alteration, besides its share.

    Attributes:
        positive: Probability that an alteration of each entry is positive, if it leaves a number, [fan-in].
        missing: Probability that it leaves none (NaN or infinite): such weights take no part in the fit, [fan-in].
    """

    positive: Floats
    missing: Floats

    @property
    def c(self) -> Floats:
        """c_i = 1 - 2 Q_i(0) of Lemma 2's proof, the mean sign of an alteration; a missing weight has none."""
        return (1.0 - self.missing) * (2.0 * self.positive - 1.0)

    @property
    def mixed(self) -> Floats:
        """``positive`` with missing weights counted as altered with either sign."""
        return (1.0 - self.missing) * self.positive + 0.5 * self.missing


def _survived(worst: lad.WorstCase) -> Interval:
    """Between how many arbitrary alterations are always repaired, and one less than some that are not."""
    return Interval(worst.alterations, worst.alterations if worst.breaking is None else worst.breaking - 1)


def designs_of(purified: Purified, inputs: Tensor) -> list[lad.Design]:
    """A_W and A_beta. A layer whose inputs span every direction has no design in its record, so it is made here."""
    model = purified.model
    patches = model.patches(inputs)
    features = model.pool((patches @ matrix(model.layers[0])).relu())
    layers = zip(purified.layers, (patches, features), strict=True)
    return [lad.Design.prepare(rows.T) if fit.design is None else fit.design for fit, rows in layers]


def signs_of(law: Law, weights: Tensor) -> Signs:
    """Signs of the alterations of a layer [fan-in, units].

    They may depend on the weight: the sign of beta is that of the fit itself, where beta was trained from 0. Over the
    units of W they are a mean.
    """
    generator = torch.Generator().manual_seed(0)
    drawn = weights.repeat(1, max(1, _DRAWS // weights.shape[1]))
    altered = law.alter(drawn, generator)
    there = torch.isfinite(altered).double()
    count = there.sum(dim=1)
    positive = torch.where(count > 0, ((altered > drawn).double() * there).sum(dim=1) / count.clamp_min(1.0), 0.5)
    return Signs(positive.numpy(), (1.0 - there.mean(dim=1)).numpy())


def limits_of(
    name: str,
    fit: FittedLayer,
    design: lad.Design,
    exact: float,
    setting: Setting,
    generator: torch.Generator,
    signs: Signs,
) -> list[Row]:
    """Lemma 1 and the limits of recovery for one design; ``exact`` is the share of its units that came back.

    The last two rows predict ``exact``, for alterations of these signs.
    """
    worst = lad.worst_case(design)
    found = constants(design.matrix, generator=generator, worst=worst)
    # Rows of zeros, such as pixels that no input inks, are no evidence for anything.
    live, rank = design.live.size, design.rank
    low = Verdict.HOLDS if found.lambda_low.low > 0.0 else Verdict.VACUOUS
    return [
        Row("(8)", f"sigma^2 of {name}, the law's c", "", None, fixed_sigma2(design.matrix, signs.c), Verdict.MEASURED,
            "c_i = 1 - 2 Q_i(0), all that Lemma 2 needs"),
        Row("(8)", f"sigma^2 of {name}, all c", "", None, found.sigma2, Verdict.MEASURED, "certified interval"),
        Row("(8)", f"sigma^2 of {name}, random signs", "", None, found.sigma2_signs, Verdict.MEASURED),
        Row("(9)", f"lambda_low of {name}", ">=", 0.0, found.lambda_low, low, "certified interval"),
        Row("(10)", f"lambda_high of {name}", "", None, found.lambda_high, Verdict.MEASURED),
        Row("limit", f"{name}: alterations that every unit survives", "", None, _survived(worst), Verdict.MEASURED,
            f"of {live} weights, chosen and sized by an adversary; certified interval"),
        Row("limit", f"{name}: eps that half of all units survive, generic random design", "", None,
            lad.tolerance(live, rank), Verdict.MEASURED, f"fan-in {live} without rows of zeros, rank {rank}"),
        *_predictions(name, fit, design, exact, setting, signs),
    ]  # fmt: skip


def _predictions(
    name: str, fit: FittedLayer, design: lad.Design, exact: float, setting: Setting, signs: Signs
) -> list[Row]:
    """What the design at hand survives, simulated on it, and the formula for a generic random design beside it."""
    # A doubtful feature spoils its row of the design as surely as an alteration spoils the weight, with either sign. So
    # are missing weights counted, which do less harm: the prediction is on the safe side for laws that erase.
    doubtful = float(fit.doubtful.double().mean())
    spoilt = 1.0 - (1.0 - setting.share) * (1.0 - doubtful)
    mixed = (setting.share * signs.mixed + (spoilt - setting.share) * 0.5) / spoilt if spoilt else signs.mixed
    odds = lad.simulate(design, positive=np.clip(mixed, 0.0, 1.0), seed=1)  # rounding can leave [0, 1]
    units = fit.difference.shape[1]
    half = odds.largest_share(probability=0.5)
    one, layer = (odds.recovery(spoilt, units=count) for count in (1, units))
    generic = lad.recovery_probability(design.live.size, design.rank, spoilt)
    law = f"{100.0 * odds.positive:.0f} % of alterations positive"
    if signs.missing.any():
        law += "; missing weights counted as altered with either sign, which is too many"
    return [
        Row("limit", f"{name}: eps that half of all units survive, this design", "", None,
            Interval(half.low, half.high), Verdict.MEASURED, f"{odds.columns} simulated columns, {law}"),
        Row("limit", f"{name}: P(one unit recovered), generic random design", "", None, generic, Verdict.MEASURED,
            "a forecast only where the design's span is random, as for Gaussian inputs"),
        Row("limit", f"{name}: P(one unit recovered)", "predicted", one.value, exact, Verdict.MEASURED,
            f"on this design {one.low:.3g} to {one.high:.3g}; measured: "
            + (f"share of {units} exact" if units > 1 else "this run")),
        Row("limit", f"{name}: P(every unit recovered)", "predicted", layer.value, float(exact == 1.0),
            Verdict.MEASURED, f"on this design {layer.low:.3g} to {layer.high:.3g}"
            f"{', extrapolated' if layer.extrapolated else ''}; {units} unit{'s' if units > 1 else ''}, this run"),
    ]  # fmt: skip
