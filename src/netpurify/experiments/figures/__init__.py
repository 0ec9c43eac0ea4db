"""All figures by number: 2 to 13 are the paper's that show a measurement, those from 14 on are ours.

A file holds the claim, the grid, one trial, the plot and the findings of its figure, and is read from top to bottom.
"""

from netpurify.experiments.figures import (
    figure02,
    figure03,
    figure04,
    figure05,
    figure06,
    figure07,
    figure08,
    figure09,
    figure10,
    figure11,
    figure12,
    figure13,
    figure14,
    figure15,
    figure16,
    figure17,
    figure18,
    figure19,
)
from netpurify.experiments.figures.concluding import conclusion
from netpurify.findings import Figure

_MODULES = (
    figure02, figure03, figure04, figure05, figure06, figure07,
    figure08, figure09, figure10, figure11, figure12, figure13,
    figure14, figure15, figure16, figure17, figure18, figure19,
)  # fmt: skip
FIGURES: dict[int, Figure] = {module.FIGURE.number: module.FIGURE for module in _MODULES}

__all__ = ["FIGURES", "conclusion"]
