"""All figures of the paper that show a measurement, by number."""

from netpurify.experiments import (
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
)
from netpurify.experiments.figure import Figure

_MODULES = (
    figure02, figure03, figure04, figure05, figure06, figure07,
    figure08, figure09, figure10, figure11, figure12, figure13,
)  # fmt: skip
FIGURES: dict[int, Figure] = {module.FIGURE.number: module.FIGURE for module in _MODULES}
