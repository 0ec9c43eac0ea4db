"""What a layer tolerates, in words and numbers: the same in tables, pages and pictures."""

from netpurify.lad import OddsEstimate
from netpurify.network import LayerPlan
from netpurify.report.kit.names import module_name
from netpurify.report.kit.numbers import count, ranged, share

TOLERANCES = (
    "layer",
    "alterations",
    "half of the units",
    "one unit",
    "all units",
    "generic random design: one unit, all units",
    "columns",
)
"""Columns of ``tolerance_rows``."""
MEANING = (
    "Shares of altered weights, at random places, up to which half of the units come back, one unit does with "
    "probability 0.95, and all units do; simulated on the layer's clean inputs, a large layer's on a sample of its "
    "rows, with intervals of 95 % confidence. ~ is extrapolated by a normal law and may promise too much: its "
    "interval says what the columns bear out. Of a law of alteration, only the share and the signs "
    "matter. The formula for a generic random design can promise more than inputs that are not negative keep."
)


def tolerated(found: OddsEstimate) -> str:
    """A share with its interval, and a sign of about where it is extrapolated."""
    return ("~ " if found.extrapolated else "") + ranged(found.value, found.low, found.high)


def tolerance_rows(layers: tuple[LayerPlan, ...]) -> list[tuple[str, ...]]:
    """A row for each layer and law; nothing is said of a layer that was never trained, or in which all is spanned."""
    return [
        (
            module_name(layer.name),
            found.law,
            *map(tolerated, (found.half, found.unit, found.layer)),
            f"{share(found.generic_unit)}, {share(found.generic_layer)}",
            count(found.columns) + ("" if found.rows == layer.live else f", {count(found.rows)} rows"),
        )
        for layer in layers
        for found in layer.tolerances
        if found.columns
    ]
