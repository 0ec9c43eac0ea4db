"""Lemma 1 and the limits of recovery for the two designs of one run, as rows of the table."""

import torch
from torch import Tensor

from netpurify import lad
from netpurify.findings import Verdict
from netpurify.paper.model import matrix
from netpurify.paper.purification import FittedLayer, Purified
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.constants import Interval, constants
from netpurify.paper.theory.row import Row


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


def limits_of(
    name: str, fit: FittedLayer, design: lad.Design, exact: float, setting: Setting, generator: torch.Generator
) -> list[Row]:
    """Lemma 1 and the limits of recovery for one design; ``exact`` is the share of its units that came back."""
    worst = lad.worst_case(design)
    found = constants(design.matrix, generator=generator, worst=worst)
    # Rows of zeros, such as pixels that no input inks, are no evidence for anything.
    live, units, rank = design.live.size, fit.difference.shape[1], design.rank
    positive = Verdict.HOLDS if found.lambda_low.low > 0.0 else Verdict.VACUOUS
    # A doubtful feature spoils its row of the design as surely as an alteration spoils the weight.
    spoilt = 1.0 - (1.0 - setting.share) * (1.0 - float(fit.doubtful.double().mean()))
    one, layer = (lad.recovery_probability(live, rank, spoilt, units=count) for count in (1, units))
    return [
        Row("(8)", f"sigma^2 of {name}, all c", "", None, found.sigma2, Verdict.MEASURED, "certified interval"),
        Row("(8)", f"sigma^2 of {name}, random signs", "", None, found.sigma2_signs, Verdict.MEASURED),
        Row("(9)", f"lambda_low of {name}", ">=", 0.0, found.lambda_low, positive, "certified interval"),
        Row("(10)", f"lambda_high of {name}", "", None, found.lambda_high, Verdict.MEASURED),
        Row("limit", f"{name}: eps that half of all units survive", "", None, lad.tolerance(live, rank),
            Verdict.MEASURED, f"fan-in {live} without rows of zeros, rank {rank}, generic design"),
        Row("limit", f"{name}: alterations that every unit survives", "", None, _survived(worst), Verdict.MEASURED,
            f"of {live} weights, chosen and sized by an adversary; certified interval"),
        Row("limit", f"{name}: P(one unit recovered)", "predicted", one, exact, Verdict.MEASURED,
            f"measured: share of {units} exact" if units > 1 else "measured: this run"),
        Row("limit", f"{name}: P(every unit recovered)", "predicted", layer, float(exact == 1.0), Verdict.MEASURED,
            f"{units} unit{'s' if units > 1 else ''}; measured: this run"),
    ]  # fmt: skip
