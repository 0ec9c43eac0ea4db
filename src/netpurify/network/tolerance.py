"""How many altered weights a layer tolerates, simulated on its own clean inputs, in as many seconds as it is given."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netpurify import lad

LEANING = 0.8413447460685429
"""Probability that N(1, 1), the law of the paper, is positive."""
LAWS = {0.5: "both signs equally often", LEANING: "84 % of one sign, as N(1, 1)"}
"""Laws of alteration for which a plan is made, by the probability that an alteration is positive."""
_MOST, _FEWEST = 200, 20
"""Columns: more are not needed, and before there are fewer a sample of the design is taken."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Shares of altered weights, at random places, up to which a layer is recovered with probability 0.95.

    Attributes:
        positive: Probability that an alteration is positive; signs and share are all that matters of a law.
        half: Share at which half of all units are recovered, simulated on the layer's clean inputs.
        unit: Of one unit.
        layer: Of all units together.
        columns: How many columns were simulated; 0 if none had to be.
        rows: On how many rows of the design. If these are fewer than the layer's live ones, a random sample of rows and
            as large a share of the clean inputs stood for the whole, which took too long.
        generic_unit: Of one unit, for a generic random design of the same size. Inputs that are not negative, such as
            pixels, may tolerate less, and far less if alterations lean to one sign.
        generic_layer: Of all units together, for a generic random design.
    """

    positive: float
    half: lad.OddsEstimate
    unit: lad.OddsEstimate
    layer: lad.OddsEstimate
    columns: int
    rows: int
    generic_unit: float
    generic_layer: float

    @property
    def law(self) -> str:
        """The law in words."""
        return LAWS.get(self.positive, f"{100.0 * self.positive:.0f} % of them positive")


def fixed(share: float) -> Tolerance:
    """A tolerance that needs no simulation."""
    known = lad.OddsEstimate(share, share, share)
    return Tolerance(0.5, known, known, known, 0, 0, share, share)


def tolerance_of(designs: Sequence[lad.Design | None], units: int, *, positive: float, seconds: float) -> Tolerance:
    """What a layer of ``units`` units tolerates, simulated in about so many ``seconds``.

    Of several groups, that with the largest rank for its rows speaks. Where clean inputs span everything (``None`` in
    place of a design), nothing is tolerated.
    """
    known = [design for design in designs if design is not None]
    if not known or len(known) < len(designs):
        return fixed(0.0)
    design = max(known, key=lambda one: one.rank / max(one.live.size, 1))
    generic = [lad.largest_share(max(design.live.size, 1), design.rank, units=count) for count in (1, units)]
    part = _affordable(design, seconds)
    columns = int(np.clip(seconds / max(_cost(part.live.size, part.rank), 1e-9), _FEWEST, _MOST))
    odds = _of_the_whole(lad.simulate(part, positive=positive, columns=columns), design)
    half, unit, layer = (
        odds.largest_share(units=count, probability=chance) for count, chance in ((1, 0.5), (1, 0.95), (units, 0.95))
    )
    return Tolerance(positive, half, unit, layer, columns, part.live.size, *generic)


def _cost(live: float, rank: float) -> float:
    """Seconds for one column of ``lad.simulate``, roughly."""
    return 1e-9 * live * rank * (200.0 + rank)


def _affordable(design: lad.Design, seconds: float) -> lad.Design:
    """The design, or a random sample of its rows and as large a share of its columns on which 20 columns take as long.

    The ratio of rows to rank, and the signs and shapes of the inputs, stay what they are; they decide.
    """
    live, rank = design.live.size, design.rank
    part = 1.0
    while _FEWEST * _cost(part * live, part * rank) > seconds:
        part *= 0.95
    if part == 1.0:
        return design
    random = np.random.default_rng(0)
    rows = np.sort(random.choice(design.live, max(1, round(part * live)), replace=False))
    columns = np.sort(random.choice(design.pivots, max(1, round(part * rank)), replace=False))
    return lad.Design.prepare(design.matrix[np.ix_(rows, columns)])


def _of_the_whole(odds: lad.SimulatedOdds, design: lad.Design) -> lad.SimulatedOdds:
    """The odds of a sample as those of the design: shares have the same mean, and spread as one over sqrt(rows)."""
    whole = design.live.size
    if odds.live in (0, whole):
        return odds
    shares = odds.counts / odds.live
    spread = (shares - shares.mean()) * np.sqrt(odds.live / whole)
    counts = np.round(whole * np.clip(shares.mean() + spread, 0.0, 1.0)).astype(np.int64)
    return lad.SimulatedOdds(counts, whole, design.rank, odds.positive)
