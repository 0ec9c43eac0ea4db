"""Lemma 1 and the limits of recovery for the two designs of one run, as rows of the table."""

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
from netpurify.paper.theory.constants import Interval, constants
from netpurify.paper.theory.row import Row

Floats = NDArray[np.float64]
_DRAWS = 2000
"""Alterations of an entry from which the odds of its sign are counted."""


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


def positive_share(law: Law, weights: Tensor) -> Floats:
    """Probability that an alteration of each entry [fan-in] of a layer [fan-in, units] is positive.

    Of the law, only this and the share count. It may depend on the weight: the sign of beta is that of the fit itself,
    where beta was trained from 0. Over the units of W it is a mean.
    """
    generator = torch.Generator().manual_seed(0)
    units = weights.shape[1]
    drawn = weights.repeat(1, max(1, _DRAWS // units))
    return (law.alter(drawn, generator) > drawn).double().mean(dim=1).numpy()


def limits_of(
    name: str,
    fit: FittedLayer,
    design: lad.Design,
    exact: float,
    setting: Setting,
    generator: torch.Generator,
    positive: Floats,
) -> list[Row]:
    """Lemma 1 and the limits of recovery for one design; ``exact`` is the share of its units that came back.

    The last two rows predict ``exact``, if alterations are ``positive`` with these probabilities [fan-in].
    """
    worst = lad.worst_case(design)
    found = constants(design.matrix, generator=generator, worst=worst)
    # Rows of zeros, such as pixels that no input inks, are no evidence for anything.
    live, rank = design.live.size, design.rank
    low = Verdict.HOLDS if found.lambda_low.low > 0.0 else Verdict.VACUOUS
    return [
        Row("(8)", f"sigma^2 of {name}, all c", "", None, found.sigma2, Verdict.MEASURED, "certified interval"),
        Row("(8)", f"sigma^2 of {name}, random signs", "", None, found.sigma2_signs, Verdict.MEASURED),
        Row("(9)", f"lambda_low of {name}", ">=", 0.0, found.lambda_low, low, "certified interval"),
        Row("(10)", f"lambda_high of {name}", "", None, found.lambda_high, Verdict.MEASURED),
        Row("limit", f"{name}: alterations that every unit survives", "", None, _survived(worst), Verdict.MEASURED,
            f"of {live} weights, chosen and sized by an adversary; certified interval"),
        Row("limit", f"{name}: eps that half of all units survive, generic random design", "", None,
            lad.tolerance(live, rank), Verdict.MEASURED, f"fan-in {live} without rows of zeros, rank {rank}"),
        *_predictions(name, fit, design, exact, setting, positive),
    ]  # fmt: skip


def _predictions(
    name: str, fit: FittedLayer, design: lad.Design, exact: float, setting: Setting, positive: Floats
) -> list[Row]:
    """What the design at hand survives, simulated on it, and the formula for a generic random design beside it."""
    # A doubtful feature spoils its row of the design as surely as an alteration spoils the weight, with either sign.
    doubtful = float(fit.doubtful.double().mean())
    spoilt = 1.0 - (1.0 - setting.share) * (1.0 - doubtful)
    mixed = (setting.share * positive + (spoilt - setting.share) * 0.5) / spoilt if spoilt else positive
    odds = lad.simulate(design, positive=np.clip(mixed, 0.0, 1.0), seed=1)  # rounding can leave [0, 1]
    units = fit.difference.shape[1]
    half = odds.largest_share(probability=0.5)
    one, layer = (odds.recovery(spoilt, units=count) for count in (1, units))
    generic = lad.recovery_probability(design.live.size, design.rank, spoilt)
    law = f"{100.0 * odds.positive:.0f} % of alterations positive"
    return [
        Row("limit", f"{name}: eps that half of all units survive, this design", "", None,
            Interval(half.low, half.high), Verdict.MEASURED, f"{odds.columns} simulated columns, {law}"),
        Row("limit", f"{name}: P(one unit recovered), generic random design", "", None, generic, Verdict.MEASURED,
            "for a uniformly random span of this size; no forecast for this design"),
        Row("limit", f"{name}: P(one unit recovered)", "predicted", one.value, exact, Verdict.MEASURED,
            f"on this design {one.low:.3g} to {one.high:.3g}; measured: "
            + (f"share of {units} exact" if units > 1 else "this run")),
        Row("limit", f"{name}: P(every unit recovered)", "predicted", layer.value, float(exact == 1.0),
            Verdict.MEASURED, f"on this design {layer.low:.3g} to {layer.high:.3g}"
            f"{', extrapolated' if layer.extrapolated else ''}; {units} unit{'s' if units > 1 else ''}, this run"),
    ]  # fmt: skip
