"""How many altered weights a layer tolerates, simulated on its own clean inputs as far as time allows."""

from dataclasses import dataclass

import numpy as np

from netpurify import lad

LEANING = 0.8413447460685429
"""Probability that N(1, 1), the law of the paper, is positive."""
LAWS = {0.5: "both signs equally often", LEANING: "84 % of one sign, as N(1, 1)"}
"""Laws of alteration for which a plan is made, by the probability that an alteration is positive."""
COLUMNS = 200
_FEWEST = 6
_LAYER = 4e6
"""Rows times rank times columns that a layer usually gets: about a second for each law."""
_NETWORK = 4e7
"""The same for all layers of a network together: about ten seconds for each law."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Shares of altered weights, at random places, up to which a layer is recovered with probability 0.95.

    Attributes:
        positive: Probability that an alteration is positive; signs and share are all that matters of a law.
        half: Share at which half of all units are recovered, simulated on the layer's clean inputs; ``None`` if that
            would take too long.
        unit: Of one unit; ``None`` if that would take too long.
        layer: Of all units together; ``None`` if that would take too long.
        columns: How many columns were simulated; 0 if none had to be, or could be.
        generic_unit: Of one unit, for a generic random design of the same size. Inputs that are not negative, such as
            pixels, tolerate less, and far less if alterations lean to one sign.
        generic_layer: Of all units together, for a generic random design.
    """

    positive: float
    half: lad.OddsEstimate | None
    unit: lad.OddsEstimate | None
    layer: lad.OddsEstimate | None
    columns: int
    generic_unit: float
    generic_layer: float

    @property
    def law(self) -> str:
        """The law in words."""
        return LAWS.get(self.positive, f"{100.0 * self.positive:.0f} % of them positive")


def fixed(share: float, positive: float = 0.5) -> Tolerance:
    """A tolerance that needs no simulation."""
    known = lad.OddsEstimate(share, share, share)
    return Tolerance(positive, known, known, known, 0, share, share)


def simulate(design: lad.Design, units: int, *, positive: float, columns: int) -> Tolerance:
    """What a layer of ``units`` units on this design tolerates; the generic odds alone if there are no ``columns``."""
    generic = [lad.largest_share(design.live.size, design.rank, units=count) for count in (1, units)]
    if not columns:
        return Tolerance(positive, None, None, None, 0, *generic)
    odds = lad.simulate(design, positive=positive, columns=columns)
    unit, layer = (odds.largest_share(units=count) for count in (1, units))
    return Tolerance(positive, odds.largest_share(probability=0.5), unit, layer, columns, *generic)


class Budget:
    """How many columns may be simulated, so that a network of any size takes seconds."""

    def __init__(self) -> None:  # noqa: D107
        self.left = _NETWORK

    def columns(self, design: lad.Design) -> int:
        """Up to 200 columns for a design, fewer for a large one, none if even 6 would take too long."""
        size = design.live.size * design.rank
        if _FEWEST * size > self.left:
            return 0
        columns = int(np.clip(min(_LAYER, self.left) // max(size, 1), _FEWEST, COLUMNS))
        self.left -= columns * size
        return columns


def columns_beside_fits(design: lad.Design, units: int) -> int:
    """Columns that take no longer than the fits of a layer's ``units`` units, or a third of a second; at most 50."""
    columns = min(50, max(int(1e6 // max(design.live.size * design.rank, 1)), units // 20))
    return columns if columns >= _FEWEST else 0
